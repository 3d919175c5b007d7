package task

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

var update = flag.Bool("update", false, "rewrite golden files")

// The files of protocol 1 must stay readable, because tasks outlive upgrades of the
// service. Members can be added to these golden files, but not changed.
func TestFilesOfProtocol1(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 40, 0, 123e6, time.UTC)
	spec := Spec{
		Protocol: 1, Token: "01K.1.x", Job: "01K", Attempt: 2,
		Steps: []protocol.Step{{Name: "fold", Argv: []string{"fold", "--in", "in/a.pdb"}, Stdout: "/d/work/out/fold.txt"}},
		Env:   map[string]string{"OMP_NUM_THREADS": "4"}, GPUs: []string{"GPU-1"}, CPUs: 4,
		MaxRuntimeSeconds: 3600, MemoryBytes: 1 << 30, LogBytes: 1 << 24, GraceSeconds: 10,
	}
	golden(t, SpecFile, &spec)
	golden(t, RunFile, &Started{
		Protocol: 1, ID: process.ID{PID: 4711, BootID: "8ef2b4a5-3f4b-4a1e-9a52-0a3c5c2f7a10", StartTime: 123456},
		Token: "01K.1.x", StartedAt: at,
	})
	golden(t, OutcomeFile, &protocol.Outcome{
		Protocol: 1, StartedAt: at, EndedAt: at.Add(time.Minute), Cause: protocol.CauseSignal, Step: "fold", ExitCode: 0,
		Signal: "SIGSEGV", Message: `Step "fold" was ended by the signal SIGSEGV.`, CPUSeconds: 59.5, MaxRSSBytes: 12345678,
	})
	golden(t, ProgressFile, &progressRecord{1, protocol.Progress{Fraction: 0.42, Text: "step 420000/1000000"}})
	golden(t, StopFile, &stopRecord{1, at, 1234.5})
}

// golden compares v with a golden file in both directions, and reads the file with an
// unknown member added.
func golden[T any](t *testing.T, name string, v *T) {
	t.Helper()
	data, err := encode(v)
	must.OK(t, err)
	path := filepath.Join("testdata", "protocol1", name)
	if *update {
		must.Write(t, path, string(data))
	}
	want := must.Read(t, path)
	must.Equal(t, name+" as it is written", string(data), want)
	dir := t.TempDir()
	must.Write(t, filepath.Join(dir, name), strings.Replace(want, "{", `{"addedLater": {"x": [1]},`, 1))
	got, err := readFile[T](dir, name)
	must.OK(t, err)
	must.Equal(t, name+" as it is read", got, v)
}

func TestFilesOfOtherProtocolsAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{`{"protocol":2}`, `{"protocol":0}`, `{}`, `[]`, ``, `{"protocol":1`} {
		must.Write(t, filepath.Join(dir, OutcomeFile), text)
		if o, err := ReadOutcome(dir); !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), OutcomeFile) {
			t.Errorf("%s is read as %+v, %v; want %v", text, o, err, ErrUnreadable)
		}
	}
	if _, err := ReadOutcome(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent outcome: %v, want fs.ErrNotExist", err)
	}
}

func TestWriteReplacesTheFileAndLeavesNoOther(t *testing.T) {
	dir := t.TempDir()
	want := Spec{Token: "t", Steps: []protocol.Step{{Argv: []string{"true"}}}}
	for want.Attempt = 1; want.Attempt <= 2; want.Attempt++ {
		must.OK(t, WriteSpec(dir, want))
	}
	got, err := ReadSpec(dir)
	if err != nil || got.Attempt != 2 || got.Protocol != Protocol {
		t.Errorf("read %+v, %v", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("directory has %v, %v", entries, err)
	}
	if err := WriteSpec(filepath.Join(dir, "absent"), want); err == nil {
		t.Error("wrote into a directory that does not exist")
	}
}

func TestSpecNeedsATokenAndAStep(t *testing.T) {
	for _, s := range []Spec{{Token: "t"}, {Steps: []protocol.Step{{Argv: []string{"true"}}}}} {
		if err := WriteSpec(t.TempDir(), s); err == nil {
			t.Errorf("%+v was written", s)
		}
	}
}

func TestRequestStopGivesTheTimeSinceTheFirstRequest(t *testing.T) {
	dir := t.TempDir()
	if StopRequested(dir) {
		t.Error("StopRequested is true before the request")
	}
	if ago, err := RequestStop(dir); ago != 0 || err != nil {
		t.Errorf("first requested %v ago, %v; want now", ago, err)
	}
	if !StopRequested(dir) {
		t.Error("StopRequested is false after the request")
	}
	now, err := uptime()
	must.OK(t, err)
	const before = 90 * time.Second
	must.OK(t, writeFile(dir, StopFile, stopRecord{Protocol: 1, UptimeSeconds: (now - before).Seconds()}))
	if ago, err := RequestStop(dir); ago < before || err != nil {
		t.Errorf("first requested %v ago, %v; want %v or more", ago, err, before)
	}
	if _, err := RequestStop(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory: %v, want fs.ErrNotExist", err)
	}
}
