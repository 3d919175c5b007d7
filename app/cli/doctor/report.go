package doctor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"molrun/app/client"
	"molrun/app/server/config"
	"molrun/app/server/host"
)

// ReportOptions are the inputs of a report other than the configuration.
type ReportOptions struct {
	Version string
	LogFile string // the service's log; "" means the systemd journal, if there is one
	Counts  func(context.Context) (*client.StorageReport, []client.User, error)
}

// WriteReport writes a report. If a section is unavailable, the report says why and
// continues with the next one.
func WriteReport(ctx context.Context, w io.Writer, c config.Config, o ReportOptions) error {
	var all bytes.Buffer
	for _, part := range []struct {
		title string
		write func(context.Context, io.Writer, config.Config, ReportOptions) error
	}{
		{"Program and machine", writeMachine},
		{"Settings", writeSettings},
		{"Doctor", writeFindings},
		{"Counts", writeCounts},
		{"Readiness", writeReadiness},
		{"Metrics", writeMetrics},
		{"Last errors", writeErrors},
	} {
		fmt.Fprintf(&all, "\n== %s\n\n", part.title)
		if err := part.write(ctx, &all, c, o); err != nil {
			fmt.Fprintln(&all, "not available:", err)
		}
	}
	_, err := fmt.Fprintf(w, "molrun report, %s\n%s", time.Now().UTC().Format(time.RFC3339), cleanReport(withoutSettings(c).Replace(all.String())))
	return err
}

func writeMachine(_ context.Context, w io.Writer, _ config.Config, o ReportOptions) error {
	fmt.Fprintf(w, "molrun %s, %s, %s/%s, %d CPUs\n", o.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s %s\n", unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]))
	text, err := os.ReadFile("/etc/os-release")
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "PRETTY_NAME=") {
			fmt.Fprint(w, line)
		}
	}
	return err
}

// writeSettings writes the settings that differ from their defaults. Numbers and
// enumerated values reveal nothing about a site. Of any other string setting, it reveals
// only that it is set.
func writeSettings(_ context.Context, w io.Writer, c config.Config, _ ReportOptions) error {
	defaults := config.Default()
	before := map[string]string{}
	for _, s := range defaults.Settings() {
		before[s.Name] = s.Value
	}
	for _, s := range c.Settings() {
		switch {
		case before[s.Name] == s.Value:
		case s.Free && !plainSettings[s.Name]:
			fmt.Fprintf(w, "%s is set\n", s.Name)
		default:
			fmt.Fprintf(w, "%s = %s\n", s.Name, s.Value)
		}
	}
	fmt.Fprintf(w, "rules: %d, organizations with exceptions: %d\n", len(c.Runner.Rules), len(c.Organizations))
	return nil
}

// plainSettings holds the string settings whose values can be shown: enumerated values,
// and addresses of this machine.
var plainSettings = map[string]bool{
	"listen": true, "catalogue": true, "runner.executor": true, "runner.gpus": true, "runner.sandbox": true,
	"containers.runtime": true, "containers.pull": true, "database.file_system": true, "retention.keep_last_of": true,
	"mail.tls": true, "log.level": true, "log.format": true,
}

// withoutSettings returns a replacer that replaces the strings that the operator has
// configured with the names of their settings, and hides the names of organizations.
func withoutSettings(c config.Config) *strings.Replacer {
	defaults := config.Default()
	before := map[string]string{}
	for _, s := range defaults.Settings() {
		before[s.Name] = s.Value
	}
	names := map[string]string{} // text to placeholder
	hide := func(text, name string) {
		if len(text) >= 3 {
			names[text] = "<" + name + ">"
		}
	}
	for _, s := range c.Settings() {
		if s.Free && !plainSettings[s.Name] && s.Value != before[s.Name] {
			hide(s.Value, s.Name)
			for _, word := range strings.Fields(strings.Trim(s.Value, "[]")) {
				hide(word, s.Name)
			}
		}
	}
	if data, err := filepath.Abs(c.Data); err == nil {
		hide(data, "data")
	}
	for name := range c.Organizations {
		hide(name, "organization")
	}
	var pairs []string
	for _, text := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return len(b) - len(a) }) {
		pairs = append(pairs, text, names[text])
	}
	return strings.NewReplacer(pairs...)
}

func writeFindings(ctx context.Context, w io.Writer, c config.Config, _ ReportOptions) error {
	for _, f := range Examine(ctx, c) {
		fmt.Fprintf(w, "%-8s %s - %s\n", f.Result, f.Check, f.Text)
	}
	return nil
}

func writeCounts(ctx context.Context, w io.Writer, _ config.Config, o ReportOptions) error {
	storage, users, err := o.Counts(ctx)
	if err != nil {
		return err
	}
	var sum client.StorageRow
	for _, r := range storage.Rows {
		sum.Jobs, sum.Queued, sum.Files = sum.Jobs+r.Jobs, sum.Queued+r.Queued, sum.Files+r.Files
		sum.ResultBytes, sum.UploadBytes = sum.ResultBytes+r.ResultBytes, sum.UploadBytes+r.UploadBytes
	}
	fmt.Fprintf(w, "organizations %d, users %d\njobs %d (%d queued), uploads %d\nbytes of results %d, of uploads %d\ndisk: %d bytes, %d free, %d kept free\n",
		len(storage.Rows), len(users), sum.Jobs, sum.Queued, sum.Files, sum.ResultBytes, sum.UploadBytes,
		storage.Disk.Size, storage.Disk.Free, storage.Disk.Reserve)
	return nil
}

func writeReadiness(ctx context.Context, w io.Writer, c config.Config, _ ReportOptions) error {
	text, err := askService(ctx, c, "/readyz")
	fmt.Fprintf(w, "%s\n", bytes.TrimSpace(text))
	return err
}

func writeMetrics(ctx context.Context, w io.Writer, c config.Config, _ ReportOptions) error {
	text, err := askService(ctx, c, "/metrics")
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			fmt.Fprint(w, line)
		}
	}
	return err
}

// askService sends a request without a key to the service on the data directory.
func askService(ctx context.Context, c config.Config, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if !host.Running(ctx, c.Data) {
		return nil, fmt.Errorf("no service is running on the data directory")
	}
	address, err := host.Control(c.Data).Listener(ctx)
	if err != nil {
		return nil, err
	}
	return getLocal(ctx, address, path)
}
