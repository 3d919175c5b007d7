package schedule

import (
	"strings"
	"time"

	"molrun/app"
	"molrun/app/job/eta"
)

// RunHistory is what is known of how long jobs run.
type RunHistory interface {
	// History returns the past runs of a class, nil if there are none.
	History(class string) *eta.History
	// Left returns how long a job still runs, and what that follows from, "" if it
	// is unknown; runs is false if the job has not begun.
	Left(id app.JobID) (seconds float64, basis string, runs bool)
}

// runTimes remembers what was asked of the past.
type runTimes struct {
	past      RunHistory
	histories map[string]*eta.History
	estimates map[eta.Work]eta.Estimate
}

func newRunTimes(p RunHistory) *runTimes {
	return &runTimes{past: p, histories: map[string]*eta.History{}, estimates: map[eta.Work]eta.Estimate{}}
}

// estimate returns what past runs say of a job.
func (t *runTimes) estimate(w eta.Work) eta.Estimate {
	e, known := t.estimates[w]
	if known || w.Class == "" {
		return e
	}
	h, known := t.histories[w.Class]
	if !known {
		h = t.past.History(w.Class)
		t.histories[w.Class] = h
	}
	e = h.Estimate(w.Size)
	t.estimates[w] = e
	return e
}

// left returns how long a job that has a slot still runs, and what that follows from, "" if
// it is unknown. One that has not begun to run has all before it.
func (t *runTimes) left(id app.JobID, w eta.Work) (left time.Duration, by string) {
	secs, by, runs := t.past.Left(id)
	if e := t.estimate(w); !runs && e.Known() {
		secs, by = e.Seconds(), t.basis(w)
	}
	return seconds(secs), by
}

// etaBasis says what the estimate of a job is made of. A class begins with the type and
// the version.
func (t *runTimes) basis(w eta.Work) string {
	typ, rest, _ := strings.Cut(w.Class, " ")
	version, _, _ := strings.Cut(rest, " ")
	return t.estimate(w).Basis(typ, version)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
