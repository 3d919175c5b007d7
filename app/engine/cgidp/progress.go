package cgidp

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// progress writes lines that tell how far a run has come.
type progress struct {
	log     io.Writer
	chains  []*chain
	started time.Time
	before  float64 // done when this run started
}

// done is the part of all work that is done, between 0 and 1.
func (p *progress) done() float64 {
	var done, all float64
	for _, c := range p.chains {
		perStep := c.cost() / float64(c.Steps)
		all += c.cost() * float64(len(c.replicas))
		for _, r := range c.running() {
			r.Lock()
			done += perStep * float64(r.step)
			r.Unlock()
		}
	}
	return done / all
}

// report writes one line about the first replica that is not finished.
func (p *progress) report() {
	for _, c := range p.chains {
		for _, r := range c.running() {
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
		r.step, r.plan.steps, 100*float64(r.step)/float64(r.plan.steps), r.number, len(c.replicas))
	if r.step <= r.plan.discarded {
		b.WriteString("equilibrating ")
	}
	fmt.Fprintf(&b, "Rg %.2f nm ", r.last.rg)
	temperature := r.last.temperature
	if mean := r.rg.all(); mean.n > 0 {
		b.WriteString("<Rg> " + withError(mean.mean, r.rg.standardError()) + " nm ")
		temperature = r.kinetic.all().mean
	}
	fmt.Fprintf(&b, "T %.1f K", temperature)
	if r.busy > 0 {
		fmt.Fprintf(&b, " %.0f ksteps/s", float64(r.step)/r.busy.Seconds()/1000)
	}
	return b.String()
}

// withError writes a mean and its error, as far as it is known.
func withError(mean, se float64) string {
	if math.IsNaN(se) {
		return fmt.Sprintf("%.3f", mean)
	}
	return fmt.Sprintf("%.3f±%.3f", mean, se)
}

// remaining is the time left at the pace of this run so far.
func (p *progress) remaining() string {
	done := p.done()
	if done == p.before {
		return ""
	}
	left := time.Since(p.started).Seconds() * (1 - done) / (done - p.before)
	return " ETA " + shortDuration(left)
}

// shortDuration writes seconds below two minutes, and whole units above.
func shortDuration(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case seconds < 120:
		return fmt.Sprintf("%.1f s", seconds)
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	default:
		return fmt.Sprintf("%.1f days", seconds/86400)
	}
}
