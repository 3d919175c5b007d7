package slurm

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"molrun/app/test/must"
)

func TestAnswersSayWhenTheyBegan(t *testing.T) {
	var h health
	away := errors.New("no answer")
	for n, tt := range []struct {
		command string
		err     error
		since   int // index of the step
	}{
		{"squeue", nil, 0},
		{"squeue", nil, 0},
		{"sinfo", away, 2},
		{"squeue", away, 2},
		{"sinfo", nil, 2},
		{"squeue", nil, 5},
		{"sinfo", nil, 5},
	} {
		h.recordResult(tt.command, tt.err, time.Unix(int64(n), 0))
		if got := h.since.Unix(); got != int64(tt.since) {
			t.Errorf("step %d: since %d, want %d", n, got, tt.since)
		}
	}
}

// TestControllerAnswersIfItAnswersEachCommand uses failing stand-ins for the commands.
func TestControllerAnswersIfItAnswersEachCommand(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"squeue", "sinfo"} {
		script := "#!/bin/sh\n[ ! -e " + filepath.Join(dir, name+".fails") + " ]\n"
		must.Program(t, filepath.Join(dir, name), script)
	}
	c := newClient(Options{Path: dir, Timeout: time.Minute, Now: time.Now})
	if since, _ := c.Answers(); !since.IsZero() {
		t.Errorf("asked at %v before the first command", since)
	}
	for _, tt := range []struct{ fails, works string }{{"squeue", "sinfo"}, {"sinfo", "squeue"}} {
		mark := filepath.Join(dir, tt.fails+".fails")
		must.OK(t, os.WriteFile(mark, nil, 0o600))
		ask := func() (err error) {
			_, _ = c.Queue(t.Context(), "molrun")
			_, _ = c.Partitions(t.Context())
			_, _ = c.runCommand(t.Context(), "", tt.works)
			_, err = c.Answers()
			return err
		}
		if ask() == nil {
			t.Errorf("the controller counts as answering while %s fails", tt.fails)
		}
		must.OK(t, os.Remove(mark))
		if err := ask(); err != nil {
			t.Errorf("the controller does not respond: %v", err)
		}
	}
}

// TestFolderThatIsAway unmounts the shared folder, which no Slurm command detects.
func TestFolderThatIsAway(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "shared")
	must.OK(t, os.Mkdir(shared, 0o700))
	e, err := New(Options{SharedDir: shared, Program: os.Args[0], Path: t.TempDir(), Poll: time.Millisecond})
	must.OK(t, err)
	defer e.Close()
	_, err = e.Program(t.Context())
	must.OK(t, err)
	for _, away := range []bool{false, true, false} {
		from, to := shared+".away", shared
		if away {
			from, to = to, from
		}
		if err := os.Rename(from, to); away && err != nil {
			t.Fatal(err)
		}
		must.Become(t, "known", func() bool {
			since, err := e.Folder()
			return !since.IsZero() && (err != nil) == away
		})
	}
}
