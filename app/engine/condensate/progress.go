package condensate

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"molrun/app/engine/store"
)

// progress writes lines that say how far a run has come.
type progress struct {
	started time.Time
	before  float64 // fraction done when this process started
	said    time.Time
}

func newProgress(r *run) progress {
	now := time.Now()
	return progress{started: now, before: r.done(), said: now}
}

// done is the fraction of the steps that is done.
func (r *run) done() float64 {
	steps := int64(0)
	for _, rep := range r.replicas {
		steps += rep.step()
	}
	return float64(steps) / float64(r.plan.steps) / float64(r.Replicas)
}

// report writes a line about a replica once in a while.
func (p *progress) report(r *run, rep *replica) {
	if time.Since(p.said) < reportEvery {
		return
	}
	p.said = time.Now()
	step, done := rep.step(), r.done()
	phase := ""
	switch {
	case step <= r.plan.restrained:
		phase = " drawn together,"
	case step <= r.plan.discarded:
		phase = " equilibrating,"
	}
	text := fmt.Sprintf("step %d/%d %.1f%% replica %d/%d%s T %.1f K largest cluster %.0f%% of the chains %.3g ns/day",
		step, r.plan.steps, 100*float64(step)/float64(r.plan.steps), rep.number, r.Replicas, phase,
		rep.last.temperature, 100*rep.last.largest, r.nanosecondsPerDay())
	if done > p.before {
		left := time.Since(p.started).Seconds() * (1 - done) / (done - p.before)
		text += " ETA " + store.ShortDuration(left)
	}
	p.line(r.log, done, text)
}

func (p *progress) line(log io.Writer, done float64, text string) {
	fmt.Fprintf(log, "molrun:progress %s %s\n", strconv.FormatFloat(math.Floor(done*1e4)/1e4, 'f', -1, 64), text)
}
