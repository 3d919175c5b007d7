package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
	"molrun/app/test/whole"
)

// TestServiceMakesADirectoryOnlyWhenTold starts the service on a missing directory, on a
// directory with other files, and on the remains of a data directory.
func TestServiceMakesADirectoryOnlyWhenTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	s := &instance{t: t, dir: dir, stderr: &whole.Log{}, secrets: &confidential{}, http: checkedClient(t)}
	must.OK(t, os.WriteFile(path("config.toml"), []byte("listen = \"127.0.0.1:0\"\n"), 0o600))
	emptyDatabase(t, path("molrun-data"))
	for name, file := range map[string]string{"others": "notes.txt", "remains": "secret"} {
		must.OK(t, os.Mkdir(path(name), 0o700))
		must.OK(t, os.WriteFile(path(name, file), nil, 0o600))
	}
	must.OK(t, os.MkdirAll(path("lab", "data"), 0o700))
	for _, tt := range []struct{ args, want string }{
		{"--data " + path("molrun-dta"), "there is no data directory " + path("molrun-dta") + "; did you mean " + path("molrun-data") + "? Otherwise, to make it, start with --init"},
		{"--data " + path("x", "y", "molrun-data"), "did you mean " + path("molrun-data") + "?"},
		{"--data " + path("others"), path("others") + " is not a data directory and contains other files; did you mean " + path("molrun-data") + "? Otherwise, to use it all the same, start with --init"},
		{"--data " + path("remains"), "its database jobs.db is missing; restore a backup"},
		{"--init --data " + path("remains"), "its database jobs.db is missing; restore a backup"},
		{"--data " + path("config.toml"), path("config.toml") + " is not a directory"},
	} {
		before, err := os.ReadDir(dir)
		must.OK(t, err)
		out, errs, code := s.run(append([]string{"serve"}, strings.Fields(tt.args)...)...)
		after, err := os.ReadDir(dir)
		must.OK(t, err)
		if code != exitInvalid || out != "" || !strings.Contains(errs, tt.want) || len(after) != len(before) {
			t.Errorf("serve %s: exit code %d: %q, %q, want %q", tt.args, code, out, errs, tt.want)
		}
	}
	for _, args := range []string{"--data " + path("lab", "data"), "--init --data " + path("new", "data"), "--init --data " + path("others"), "--data " + path("new", "data")} {
		c := s.command(append([]string{"serve"}, strings.Fields(args)...)...)

		pipe, err := c.StderrPipe()
		must.OK(t, err)
		must.OK(t, c.Start())
		started := make(chan string, 1)
		exited := make(chan struct{})
		lines := &whole.Log{}
		go s.follow(pipe, lines, started, exited, c)
		select {
		case <-started:
			must.OK(t, c.Process.Signal(os.Interrupt))
			<-exited
		case <-exited:
			t.Errorf("serve %s ends: %s", args, lines)
		}
	}
}
