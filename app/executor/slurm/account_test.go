package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/executor/slurm/client"
)

// TestAccountingIsAskedOnceForAName has a stand-in for sacct that knows no job and
// counts its calls.
func TestAccountingIsAskedOnceForAName(t *testing.T) {
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	if err := os.WriteFile(filepath.Join(dir, "sacct"), []byte("#!/bin/sh\necho >>"+quote(asked)+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	v := &snapshot{
		client:    client.New(client.Options{Path: dir, Timeout: time.Minute, Now: time.Now}),
		options:   Options{Prefix: "molrun", Log: func(string, ...any) {}},
		accounted: map[string]bool{},
	}
	for range 2 {
		v.account(t.Context(), time.Now(), map[string]bool{"molrun-token": true})
		if !v.complete("molrun-token") || v.complete("molrun-other") {
			t.Errorf("Slurm has said all of %v", v.accounted)
		}
	}
	if calls, err := os.ReadFile(asked); err != nil || strings.Count(string(calls), "\n") != 1 {
		t.Errorf("calls: %q (%v)", calls, err)
	}
}
