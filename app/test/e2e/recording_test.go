package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestReadmeRecordingIsWhatTheCommandsShow runs the commands of the recording in
// web/docs/clients.md. Numbers may differ; … stands for anything.
func TestReadmeRecordingIsWhatTheCommandsShow(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	s.user("lab", "ann@lab.example")
	p := &person{t: t, s: s, home: t.TempDir(), dir: t.TempDir()}
	must.OK(t, os.Symlink(s.data(), filepath.Join(p.dir, "molrun-data")))
	var shown, line string
	check := func(want string) {
		if line == "" {
			return
		}
		if !like(want).MatchString(shown) {
			t.Errorf("%s shows\n%s\nand the documentation says\n%s", line, shown, want)
		}
	}
	want := ""
	for text := range strings.Lines(readme(t, "run: command line")) {
		command, ok := strings.CutPrefix(text, "$ ")
		if !ok {
			want += text
			continue
		}
		check(want)
		want, line = "", strings.TrimSpace(command)
		args := append(strings.Fields(line)[1:], "--json=false")
		if args[0] == "login" {
			args = args[:len(args)-1]
		}
		c := p.command(args...)
		out, err := c.CombinedOutput()
		if _, failed := err.(*exec.ExitError); err != nil && !failed {
			t.Fatal(err)
		}
		if shown = string(out); err != nil {
			t.Errorf("%s: %v: %s", line, err, out)
		}
	}
	check(want)
}

// like returns what matches a text whose numbers and spaces may differ.
func like(text string) *regexp.Regexp {
	number := regexp.MustCompile(`[0-9]+(\\\.[0-9]+)?`)
	pattern := number.ReplaceAllString(regexp.QuoteMeta(strings.TrimSpace(text)), `[0-9.]+`)
	pattern = regexp.MustCompile(` +`).ReplaceAllString(pattern, ` *`)
	return regexp.MustCompile(`(?s)^\s*` + strings.ReplaceAll(pattern, "…", ".*") + `\s*$`)
}
