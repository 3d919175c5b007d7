package task

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"molrun/app/task/protocol"
)

// advance reports the progress of a step as a part of the whole task.
type advance struct {
	span  protocol.Span
	label string // "step 2 of 5: relax"; "" if there is but one
	send  func(protocol.Progress)
}

// advanceOf returns that of the k-th step, from 0.
func advanceOf(steps []protocol.Step, k int, send func(protocol.Progress)) advance {
	a := advance{span: protocol.Span{Share: 1}, send: send}
	if span := steps[k].Span; span != nil {
		a.span = *span
	}
	if n := len(steps); n > 1 {
		a.label = fmt.Sprintf("step %d of %d", k+1, n)
		if name := steps[k].Name; name != "" && !strings.HasPrefix(name, "step ") {
			a.label += ": " + name
		}
	}
	return a
}

// stepStarted reports that the step starts.
func (a advance) stepStarted() {
	if a.label != "" {
		a.send(protocol.Progress{Fraction: a.span.From, Text: protocol.CleanText(a.label), Basis: protocol.BySteps})
	}
}

// report passes on progress that the program reports itself.
func (a advance) report(p protocol.Progress) {
	p.Fraction = a.span.From + p.Fraction*a.span.Share
	if a.span.Guessed {
		p.Basis = protocol.BySteps
	}
	a.send(p)
}

// reportReading passes on a reading of a gauge.
func (a advance) reportReading(r protocol.Reading) {
	text := strings.TrimPrefix(a.label+", "+r.Text, ", ")
	if r.Fraction < 0 {
		a.send(protocol.Progress{Fraction: a.span.From, Text: protocol.CleanText(text), Basis: protocol.BySteps})
		return
	}
	a.report(protocol.Progress{Fraction: r.Fraction, Text: protocol.CleanText(text)})
}

// Gauge searches what is written to it. Tick has it look, if that is due.
type Gauge interface {
	io.Writer
	Tick()
}

// NewGauge makes a Gauge that calls report with what it reads.
type NewGauge func(g protocol.Gauge, report func(protocol.Reading)) (Gauge, error)

// Searches reports whether a task needs gauges.
func Searches(dir string) bool {
	s, err := ReadSpec(dir)
	return err == nil && slices.ContainsFunc(s.Steps, func(step protocol.Step) bool { return step.Gauge != nil })
}

// gauges returns the progress parser of a step's output, and the file that is searched for
// in; either is nil if there is none. A wrong expression searches nothing: that is no reason
// to fail.
func (r *runningStep) gauges() (output Gauge, file *watchedFile) {
	g := r.step.Gauge
	if g == nil || r.newGauge == nil {
		return nil, nil
	}
	newGauge := func() Gauge {
		made, err := r.newGauge(*g, r.advance.reportReading)
		if err != nil {
			return nil
		}
		return made
	}
	name := g.File
	if name == "" {
		output, name = newGauge(), r.step.Stdout
	}
	if in := newGauge(); name != "" && in != nil {
		file = &watchedFile{name: name, gauge: in, counts: g.Count}
	}
	return output, file
}

// lookAround reads what the program has said since the last look.
func (r *runningStep) lookAround() {
	if r.gauge != nil {
		r.gauge.Tick()
	}
	r.watched.readNew(r.work)
}

// watchedFile is a file that is read while a program appends to it.
type watchedFile struct {
	name   string
	gauge  Gauge
	counts bool // all of it has to be read
	offset int64
	looked time.Time
}

// mostWatched bounds what is read of a file at once, of one whose end is enough and of one
// that is read completely.
const (
	mostWatched   = 64 << 10
	mostCounted   = 1 << 20
	watchingPause = 500 * time.Millisecond
)

// readNew reads what the file has got, if it is there.
func (w *watchedFile) readNew(work string) {
	if w == nil || time.Since(w.looked) < watchingPause {
		return
	}
	w.looked = time.Now()
	f, err := openToRead(work, w.name)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	if info.Size() < w.offset {
		w.offset = 0 // it was rewritten
	}
	most := int64(mostCounted)
	if !w.counts {
		most = mostWatched
		w.offset = max(w.offset, info.Size()-most)
	}
	n, _ := io.Copy(w.gauge, io.NewSectionReader(f, w.offset, min(most, info.Size()-w.offset))) // what can't be read now is read later
	w.offset += n
	w.gauge.Tick()
}
