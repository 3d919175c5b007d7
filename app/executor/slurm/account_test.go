package slurm

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/plaintext"
	"molrun/app/test/must"
)

// secretary is a stand-in for sacct that knows no job and records the queried names.
func secretary(t *testing.T) (v snapshot, asked func() string) {
	t.Helper()
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes")
	script := "#!/bin/sh\nwhile [ \"$1\" != --name ]; do shift; done\necho \"$2\" >>" + plaintext.ShellWord(notes) + "\n"
	must.Program(t, filepath.Join(dir, "sacct"), script)
	return snapshot{
		client:    newClient(Options{Path: dir, Timeout: time.Minute, Now: time.Now}),
		options:   Options{Prefix: "molrun", Log: func(string, ...any) {}},
		accounted: map[string]bool{},
		lists:     &lists{dir: dir, prefix: "molrun"},
	}, func() string {
		text := must.Read(t, notes)
		return strings.Join(strings.Fields(text), " ")
	}
}

func TestAccountingIsAskedOnceForAName(t *testing.T) {
	v, asked := secretary(t)
	for range 2 {
		v.account(t.Context(), time.Now(), map[string]bool{"molrun-token": true})
		if !v.complete("molrun-token") || v.complete("molrun-other") {
			t.Errorf("Slurm has said all of %v", v.accounted)
		}
	}
	must.Equal(t, "asked for", asked(), "molrun-token")
}

// TestAccountingIsAskedForTasksThatSqueueHadTimeToShow has one task that squeue does not
// list, one submitted after squeue was called, and one never submitted.
func TestAccountingIsAskedForTasksThatSqueueHadTimeToShow(t *testing.T) {
	v, asked := secretary(t)
	v.at = time.Now().Add(-time.Second)
	v.tracked = tracker{
		"gone": {row: TaskID{Name: "molrun-gone"}, found: true},
		"new":  {row: TaskID{Name: "molrun-new"}, found: true},
		"none": {row: TaskID{Name: "molrun-none"}},
	}
	e := &Executor{snapshot: v, submissions: newSubmissions(), lists: &lists{dir: t.TempDir(), prefix: "molrun"}}
	e.submissions.recordSubmission("molrun-new", "")
	e.accountFor(t.Context(), []app.Task{{Token: "gone"}, {Token: "new"}, {Token: "none"}})
	must.Equal(t, "asked for", asked(), "molrun-gone")
}
