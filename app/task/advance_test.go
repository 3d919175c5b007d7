package task

import (
	"fmt"
	"os"
	"testing"

	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// untilProgress waits for a progress report.
func (a *attempt) untilProgress(want protocol.Progress) {
	a.t.Helper()
	var last *protocol.Progress
	must.Become(a.t, "progress", func() bool {
		last, _ = ReadProgress(a.dir)
		return last != nil && *last == want
	})
}

const waitForGo = "; while [ ! -e out/go ]; do sleep 0.02; done; rm out/go"

// TestStepsAreProgress runs three steps: one prints nothing, one reports its own
// progress, and one prints text for the progress parser.
func TestStepsAreProgress(t *testing.T) {
	t.Parallel()
	a := newAttempt(t, "true"+waitForGo, "echo molrun:progress 0.5 half"+waitForGo, `printf '\rstep 10, left\rstep 30, left'`+waitForGo)
	for i, name := range []string{"step 1", "relax", "run"} {
		a.spec.Steps[i].Name = name
		a.spec.Steps[i].Span = &protocol.Span{From: float64(i) / 4, Share: 0.25 * float64(max(1, i)), Guessed: i < 2}
	}
	a.spec.Steps[2].Gauge = &protocol.ProgressParser{Pattern: `step (\d+)`, Of: 40}
	r := a.start()
	for _, want := range []protocol.Progress{
		{Text: "step 1 of 3", Basis: protocol.BySteps},
		{Fraction: 0.375, Text: "half", Basis: protocol.BySteps},
		{Fraction: 0.875, Text: "step 3 of 3: run, 30 of 40"},
	} {
		a.untilProgress(want)
		a.release()
	}
	r.ends(protocol.CauseDone)
}

// TestProgressNeverGoesBack prints a smaller number right after a larger one, and nothing
// after that.
func TestProgressNeverGoesBack(t *testing.T) {
	t.Parallel()
	a := newAttempt(t, "echo molrun:progress 0.5 half; echo molrun:progress 0.2 later"+waitForGo)
	r := a.start()
	a.untilProgress(protocol.Progress{Fraction: 0.5, Text: "later"})
	a.release()
	r.outcome()
}

// TestFilesAreSearchedForProgress has a program write to its standard output, or to a
// file that appears later and is rewritten.
func TestFilesAreSearchedForProgress(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "run.log"} {
		a := newAttempt(t, "echo CYCLE 1; echo CYCLE 2 >> out/run.log"+waitForGo+"; echo CYCLE 3; echo C 4 > out/run.log"+waitForGo)
		a.spec.Steps[0].Stdout = a.path(WorkDir, OutDir, "printed.txt")
		a.spec.Steps[0].Gauge = &protocol.ProgressParser{Pattern: `(C\w* \d+)`}
		texts := []string{"CYCLE 1", "CYCLE 3"}
		if name != "" {
			a.spec.Steps[0].Gauge.File = a.path(WorkDir, OutDir, name)
			texts = []string{"CYCLE 2", "C 4"}
		}
		r := a.start()
		for _, text := range texts {
			a.untilProgress(protocol.Progress{Text: text, Basis: protocol.BySteps})
			a.release()
		}
		r.outcome()
	}
}

// TestWatchedFileIsReadInParts reads a file that grows faster than it is read.
func TestWatchedFileIsReadInParts(t *testing.T) {
	work := t.TempDir()
	for counts, most := range map[bool]int{false: mostWatched, true: mostCounted} {
		got := &seen{}
		w := &watchedFile{name: "log", gauge: got, counts: counts}
		must.OK(t, os.WriteFile(work+"/log", make([]byte, 3*mostCounted), 0o600))
		w.readNew(work)
		must.Equal(t, fmt.Sprintf("counts %v", counts), got.bytes, most)
		if w.readNew(work); got.bytes != most {
			t.Error("it was read again immediately")
		}
	}
	outside := &watchedFile{name: "/etc/passwd", gauge: &seen{}}
	if outside.readNew(work); outside.offset != 0 {
		t.Error("a file outside was read")
	}
}

type seen struct{ bytes int }

func (s *seen) Write(p []byte) (int, error) { s.bytes += len(p); return len(p), nil }
func (s *seen) Tick()                       {}
