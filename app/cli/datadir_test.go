package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// onData maps every command with --data to its arguments for an existing data directory.
// nil means that the command creates a directory or needs none.
var onData = map[string][]string{
	"molrun audit":             {"--json"},
	"molrun backup":            {"DIR", "--json"},
	"molrun check":             {"--json"},
	"molrun compact":           {"--json"},
	"molrun doctor":            {"--json"},
	"molrun drain":             {"--reason", "kernel"},
	"molrun key create":        {"--organization", "lab", "--email", "zoe@lab.example", "--json"},
	"molrun key delete":        {"abcdefgh2345"},
	"molrun key disable":       {"abcdefgh2345"},
	"molrun key enable":        {"abcdefgh2345"},
	"molrun key list":          {"--json"},
	"molrun key rotate":        {"abcdefgh2345"},
	"molrun key set":           {"abcdefgh2345", "--name", "x"},
	"molrun login":             {"--local"},
	"molrun prune":             {"--older-than", "30d", "--dry-run", "--json"},
	"molrun report":            {"--output", "DIR"},
	"molrun resume":            {},
	"molrun secret rotate":     {},
	"molrun sign-in":           {},
	"molrun storage report":    {"--json"},
	"molrun usage":             {"--json"},
	"molrun user delete":       {"zoe@lab.example", "--organization", "lab"},
	"molrun user disable":      {"zoe@lab.example", "--organization", "lab"},
	"molrun user enable":       {"zoe@lab.example", "--organization", "lab"},
	"molrun user list":         {"--json"},
	"molrun user set":          {"zoe@lab.example", "--organization", "lab", "--role", "viewer"},
	"molrun algorithms reload": {"--json"},
	"molrun algorithms check":  nil,
	"molrun algorithms fetch":  nil,
	"molrun algorithms list":   nil,
	"molrun algorithms new":    nil,
	"molrun algorithms show":   nil,
	"molrun algorithms test":   nil,
	"molrun demo":              nil,
	"molrun health":            nil,
	"molrun pack":              nil,
	"molrun restore":           nil,
	"molrun serve":             nil,
	"molrun systemd-unit":      nil,
}

// commandsOnData returns the commands with a --data flag.
func commandsOnData(t *testing.T) (paths []string) {
	t.Helper()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if _, known := onData[c.CommandPath()]; c.Flags().Lookup("data") != nil && c.Runnable() {
			if !known {
				t.Errorf("%s is not in the table: does it work on a data directory?", c.CommandPath())
			}
			paths = append(paths, c.CommandPath())
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(newRoot())
	return paths
}

// TestCommandsNameTheirDirectory runs every operator command on an existing directory and
// on a mistyped one.
func TestCommandsNameTheirDirectory(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // for profiles
	d := newDirectory(t)
	backups, mistyped := filepath.Join(t.TempDir(), "backups"), d.Data+"x"
	for _, path := range commandsOnData(t) {
		given, isAdmin := onData[path], onData[path] != nil
		if !isAdmin {
			continue
		}
		args := append(strings.Fields(path)[1:], given...)
		for i, arg := range args {
			if arg == "DIR" {
				args[i] = backups
			}
		}
		out, errs, _ := withinExactly(t, "", append(args, "--config", d.configFile())...)
		if first, _, _ := strings.Cut(errs, "\n"); first != "data directory: "+d.Data || strings.Contains(out, "data directory: ") {
			t.Errorf("%s: got %q, and on standard error %q", path, out, errs)
		}
		out, errs, code := withinExactly(t, "", append(args, "--data", mistyped)...)
		if path == "molrun doctor" {
			if code != exitFailed || !strings.Contains(out, "if you mean "+d.Data+", set it") {
				t.Errorf("%s on a mistyped directory: exit code %d: %s%s", path, code, out, errs)
			}
		} else if want := "molrun: there is no data directory " + mistyped + "; did you mean " + d.Data + "? Otherwise, molrun serve --init makes a new one\n"; code != exitMissing || out != "" || !strings.HasSuffix(errs, want) {
			t.Errorf("%s on a mistyped directory: exit code %d: %q, %q, want %q", path, code, out, errs, want)
		}
		if _, err := os.Stat(mistyped); err == nil {
			t.Fatalf("%s creates a data directory", path)
		}
	}
}
