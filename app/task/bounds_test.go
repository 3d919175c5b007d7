package task

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// TestTaskFailsIfRunFileCannotBeWritten blocks run.json with a folder.
func TestTaskFailsIfRunFileCannotBeWritten(t *testing.T) {
	a := newAttempt(t, "touch out/ran")
	must.OK(t, os.Mkdir(a.path(RunFile+".new"), 0o700))
	if code := a.start().wait(); code == 0 || a.has(WorkDir, OutDir, "ran") || a.has(OutcomeFile) {
		t.Errorf("exit code %d; it ran: %v; it left an outcome: %v", code, a.has(WorkDir, OutDir, "ran"), a.has(OutcomeFile))
	}
}

// TestWrittenOutcomeIsNoError fails after outcome.json was renamed into place.
func TestWrittenOutcomeIsNoError(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, OutcomeFile), []byte("{}"), 0o600))
	r := reservedOutcome{dir: dir, path: filepath.Join(dir, "none", "temporary")}
	if err := r.write(protocol.Outcome{}); err != nil {
		t.Errorf("error %v although the outcome exists", err)
	}
}

// TestShortenedLogGivesBackTheSpaceReservedForIt fills a log until it is shortened, and
// compares its size with the disk space it occupies.
func TestShortenedLogGivesBackTheSpaceReservedForIt(t *testing.T) {
	const limit = 8 << 20
	a := newAttempt(t, fmt.Sprintf("yes something | head -c %d", limit+limit/4))
	a.spec.LogBytes = limit
	a.start().ends(protocol.CauseDone)
	var s syscall.Stat_t
	must.OK(t, syscall.Stat(a.path(LogFile), &s))
	if s.Size > limit || s.Size < limit/4 {
		t.Fatalf("the log has %d bytes, want a shortened one of at most %d", s.Size, limit)
	}
	if taken := s.Blocks * 512; taken > s.Size+limit/16 {
		t.Errorf("a log of %d bytes takes %d", s.Size, taken)
	}
}
