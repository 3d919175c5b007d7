package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"molrun/app/server/config"
)

// Limits on how much of a log is read and shown.
const (
	maxLogBytes       = 8 << 20
	maxReportedErrors = 200
	maxStackLines     = 400 // lines of panic stacks
)

// shownFields are the log fields that reveal nothing about users. Messages are constant
// strings, and errors are redacted.
var shownFields = map[string]bool{
	"level": true, "time": true, "message": true, "err": true, "error": true, "status": true, "method": true, "code": true,
	"executor": true, "attempt": true, "took": true, "request": true, "job": true, "line": true, "version": true, "kind": true,
}

// writeErrors writes the last warnings, errors and panics of the service's log.
func writeErrors(ctx context.Context, w io.Writer, _ config.Config, o ReportOptions) error {
	text, err := readLog(ctx, o.LogFile)
	if err != nil {
		return err
	}
	errs, stack := failuresIn(text)
	for _, line := range append(errs, stack...) {
		fmt.Fprintln(w, line)
	}
	if len(errs)+len(stack) == 0 {
		fmt.Fprintln(w, "none")
	}
	return nil
}

// readLog reads the end of the log.
func readLog(ctx context.Context, file string) ([]byte, error) {
	if file == "" {
		return readJournal(ctx)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxLogBytes {
		if _, err := f.Seek(-maxLogBytes, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, maxLogBytes))
}

// readJournal reads the end of the unit's journal, under the name that molrun
// systemd-unit gives the unit.
func readJournal(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "journalctl", "--unit=molrun.service", "--output=cat", "--lines=20000", "--no-pager", "--quiet")
	c.WaitDelay = time.Second
	text, err := c.Output()
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("the journal has no entries of molrun.service; give the service's log file with --log")
	}
	return text[max(0, len(text)-maxLogBytes):], nil
}

// failuresIn returns the last warnings and errors, without the fields that name users,
// and the stacks of panics.
func failuresIn(text []byte) (errs, stack []string) {
	panicking := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil {
			panicking = false
			if level := fields["level"]; level != "info" && level != "debug" {
				errs = append(errs, withoutUsers(fields))
			}
			continue
		}
		panicking = panicking || strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:")
		if panicking && len(stack) < maxStackLines {
			stack = append(stack, withoutArguments(line))
		}
	}
	return errs[max(0, len(errs)-maxReportedErrors):], stack
}

func withoutUsers(fields map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if shownFields[name] {
			parts = append(parts, fmt.Sprintf("%s=%v", name, fields[name]))
		}
	}
	return strings.Join(parts, " ")
}

// withoutArguments redacts the value in a panic message, which could contain anything.
// The function arguments in a stack trace need no redaction, because they are only
// hexadecimal words.
func withoutArguments(line string) string {
	if value, found := strings.CutPrefix(line, "panic: "); found {
		if kind, _, runtime := strings.Cut(value, "error: "); runtime && strings.HasPrefix(kind, "runtime ") {
			return line
		}
		return "panic: <value>"
	}
	return line
}
