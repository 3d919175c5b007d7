package schedule

import (
	"strings"
	"time"

	"molrun/app"
	"molrun/app/job/eta"
)

// RunHistory provides the run times of earlier jobs and the progress of running ones.
type RunHistory interface {
	// History returns the past runs of a class, or nil if there are none.
	History(class string) *eta.History
	// Left returns the remaining run time of a job and the basis of that estimate, "" if
	// it is unknown. runs is false if the job has not begun.
	RemainingTime(id app.JobID) (seconds float64, basis string, runs bool)
}

// runTimes caches what RunHistory returned.
type runTimes struct {
	past      RunHistory
	histories map[string]*eta.History
	estimates map[eta.Work]eta.Estimate
}

func newRunTimes(p RunHistory) *runTimes {
	return &runTimes{past: p, histories: map[string]*eta.History{}, estimates: map[eta.Work]eta.Estimate{}}
}

// estimate returns the estimate for a job from past runs.
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

// left returns the remaining run time of a job that has a slot, and the basis of that
// estimate, "" if it is unknown. For a job that has not begun it is the whole run time.
func (t *runTimes) left(id app.JobID, w eta.Work) (left time.Duration, by string) {
	secs, by, runs := t.past.RemainingTime(id)
	if e := t.estimate(w); !runs && e.Known() {
		secs, by = e.Seconds(), t.basis(w)
	}
	return seconds(secs), by
}

// basis describes the basis of a job's estimate. A class begins with the algorithm's type
// and version.
func (t *runTimes) basis(w eta.Work) string {
	typ, rest, _ := strings.Cut(w.Class, " ")
	version, _, _ := strings.Cut(rest, " ")
	return t.estimate(w).Basis(typ, version)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
