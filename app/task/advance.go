package task

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"molrun/app/task/protocol"
)

// advance maps the progress of a step to the progress of the whole task.
type advance struct {
	span  protocol.Span
	label string // "step 2 of 5: relax"; "" if there is only one step
	send  func(protocol.Progress)
}

// advanceOf returns the advance of the k-th step, counting from 0.
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

// report passes on progress that the program itself reports.
func (a advance) report(p protocol.Progress) {
	p.Fraction = a.span.From + p.Fraction*a.span.Share
	if a.span.Guessed {
		p.Basis = protocol.BySteps
	}
	a.send(p)
}

// reportReading passes on a reading of the progress parser.
func (a advance) reportReading(r protocol.Reading) {
	text := strings.TrimPrefix(a.label+", "+r.Text, ", ")
	if r.Fraction < 0 {
		a.send(protocol.Progress{Fraction: a.span.From, Text: protocol.CleanText(text), Basis: protocol.BySteps})
		return
	}
	a.report(protocol.Progress{Fraction: r.Fraction, Text: protocol.CleanText(text)})
}

// ProgressParser parses progress from what is written to it. Tick parses pending text if a pause
// has passed.
type ProgressParser interface {
	io.Writer
	Tick()
}

// NewProgressParser makes a ProgressParser that passes its readings to report.
type NewProgressParser func(g protocol.ProgressParser, report func(protocol.Reading)) (ProgressParser, error)

// NeedsProgressParser reports whether a task needs progress parsers.
func NeedsProgressParser(dir string) bool {
	s, err := ReadSpec(dir)
	return err == nil && slices.ContainsFunc(s.Steps, func(step protocol.Step) bool { return step.Gauge != nil })
}

// gauges returns the progress parsers of a step's output and of its watched file; either
// is nil if there is none. An invalid expression matches nothing and does not fail the
// step.
func (r *runningStep) gauges() (output ProgressParser, file *watchedFile) {
	g := r.step.Gauge
	if g == nil || r.newGauge == nil {
		return nil, nil
	}
	newGauge := func() ProgressParser {
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

// updateProgress parses the program's output since the last call.
func (r *runningStep) updateProgress() {
	if r.gauge != nil {
		r.gauge.Tick()
	}
	r.watched.readNew(r.work)
}

// watchedFile is a file that is read while a program appends to it.
type watchedFile struct {
	name     string
	gauge    ProgressParser
	counts   bool // every byte must be read
	offset   int64
	lastRead time.Time
}

// Limits on how much is read from a file at once: mostWatched where its end is enough,
// mostCounted where all of it must be read.
const (
	mostWatched   = 64 << 10
	mostCounted   = 1 << 20
	watchingPause = 500 * time.Millisecond
)

// readNew reads what was appended to the file, if it exists.
func (w *watchedFile) readNew(work string) {
	if w == nil || time.Since(w.lastRead) < watchingPause {
		return
	}
	w.lastRead = time.Now()
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
	n, _ := io.Copy(w.gauge, io.NewSectionReader(f, w.offset, min(most, info.Size()-w.offset))) // the rest is read next time
	w.offset += n
	w.gauge.Tick()
}
