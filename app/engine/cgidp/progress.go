package cgidp

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"molrun/app/engine/store"
)

// progress writes lines that say how far a run has come.
type progress struct {
	log     io.Writer
	chains  []*chain
	started time.Time
	before  float64 // fraction done when this run started
}

// done is the fraction of the work that is done.
func (p *progress) done() float64 {
	var done, all float64
	for _, c := range p.chains {
		perStep := c.cost() / float64(c.Steps)
		all += c.cost() * float64(len(c.replicas))
		for _, r := range c.begun() {
			r.Lock()
			done += perStep * float64(r.Step())
			r.Unlock()
		}
	}
	return done / all
}

// report writes one line about the first replica that is not finished.
func (p *progress) report() {
	for _, c := range p.chains {
		for _, r := range c.begun() {
			if !r.finished() {
				p.line(p.done(), p.of(c, r)+p.remaining())
				return
			}
		}
	}
}

func (p *progress) line(done float64, text string) {
	fmt.Fprintf(p.log, "molrun:progress %s %s\n", strconv.FormatFloat(math.Floor(done*1e4)/1e4, 'f', -1, 64), text)
}

func (p *progress) of(c *chain, r *replica) string {
	r.Lock()
	defer r.Unlock()
	var b strings.Builder
	if len(p.chains) > 1 {
		b.WriteString(c.Name + " ")
	}
	fmt.Fprintf(&b, "step %d/%d %.1f%% replica %d/%d ",
		r.Step(), r.plan.steps, 100*float64(r.Step())/float64(r.plan.steps), r.number, len(c.replicas))
	if r.Step() <= r.plan.discarded {
		b.WriteString("equilibrating ")
	}
	fmt.Fprintf(&b, "Rg %.2f nm ", r.last.rg)
	temperature := r.last.temperature
	if r.rg.Count() > 0 {
		b.WriteString("<Rg> " + store.WithError(r.rg.Mean(), r.rg.StandardError()) + " nm ")
		temperature = r.kinetic.Mean()
	}
	fmt.Fprintf(&b, "T %.1f K", temperature)
	if r.busy > 0 {
		fmt.Fprintf(&b, " %.0f ksteps/s", float64(r.Step())/r.busy.Seconds()/1000)
	}
	return b.String()
}

// remaining is the time left at the present speed of this run.
func (p *progress) remaining() string {
	done := p.done()
	if done == p.before {
		return ""
	}
	left := time.Since(p.started).Seconds() * (1 - done) / (done - p.before)
	return " ETA " + store.ShortDuration(left)
}
