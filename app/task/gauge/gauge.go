// Package gauge is the progress parser: it extracts a program's progress from its output.
// It keeps little of the output and searches it rarely, so as not to slow down programs
// that print a lot.
package gauge

import (
	"bytes"
	"regexp"
	"strconv"
	"sync"
	"time"

	"molrun/app/task/protocol"
)

const (
	mostText = 16 << 10               // bytes kept until they are searched
	pause    = 200 * time.Millisecond // between searches
	// costs limits the fraction of time spent on counting, which must see all output: if
	// a program prints too fast, some matches are not counted.
	costs = 0.1
)

// Gauge searches output that is written to it in chunks. It is safe for concurrent use.
type Gauge struct {
	pattern *regexp.Regexp
	count   bool
	of      float64
	report  func(protocol.Reading)

	mu      sync.Mutex
	text    []byte // not yet searched, or an unfinished line; a carriage return also ends a line
	counted int    // matches in previous lines
	last    protocol.Reading
	begin   time.Time
	looked  time.Time
	spent   time.Duration // on counting
}

// New returns a Gauge that calls report with each new reading.
func New(g protocol.ProgressParser, report func(protocol.Reading)) (*Gauge, error) {
	pattern, err := regexp.Compile(g.Pattern)
	if err != nil {
		return nil, err
	}
	return &Gauge{pattern: pattern, count: g.Count, of: g.Of, report: report, begin: time.Now(), text: make([]byte, 0, mostText)}, nil
}

// Write never fails.
func (g *Gauge) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(p)
	if !g.count { // only the last match matters
		p = p[max(0, len(p)-mostText):]
	}
	for len(p) > 0 {
		part := p[:min(len(p), mostText-len(g.text))]
		g.addBytes(part)
		if p = p[len(part):]; len(g.text) == mostText {
			g.full()
		}
	}
	g.tick()
	return n, nil
}

func (g *Gauge) addBytes(part []byte) {
	from := len(g.text)
	g.text = append(g.text, part...)
	for i, b := range g.text[from:] {
		if b == '\r' {
			g.text[from+i] = '\n'
		}
	}
}

// Tick searches the text written so far, unless the last search was just now.
func (g *Gauge) Tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tick()
}

func (g *Gauge) tick() {
	if now := time.Now(); len(g.text) > 0 && now.Sub(g.looked) >= pause {
		g.looked = now
		g.search()
	}
}

// full makes space for more text.
func (g *Gauge) full() {
	switch {
	case g.count && g.spent.Seconds() <= costs*time.Since(g.begin).Seconds():
		g.search()
	case g.count:
		g.text = g.text[:0]
	}
	if len(g.text) > mostText/2 { // the end of a long line is enough
		g.dropBytes(len(g.text) - mostText/2)
	}
}

// dropBytes discards the first n bytes.
func (g *Gauge) dropBytes(n int) {
	if g.count {
		g.counted += len(g.pattern.FindAllIndex(g.text[:n], -1))
	}
	g.text = g.text[:copy(g.text, g.text[n:])]
}

// search searches the text and keeps the unfinished line.
func (g *Gauge) search() {
	begin := time.Now()
	reading, found := g.lastReading()
	g.dropBytes(bytes.LastIndexByte(g.text, '\n') + 1)
	g.spent += time.Since(begin)
	if found && reading != g.last {
		g.last = reading
		g.report(reading)
	}
}

func (g *Gauge) lastReading() (protocol.Reading, bool) {
	if g.count {
		n := g.counted + len(g.pattern.FindAllIndex(g.text, -1))
		return g.reading(strconv.Itoa(n), g.of), n > 0
	}
	for rest, whole := g.text, false; ; whole = true {
		begin := bytes.LastIndexByte(rest, '\n') + 1
		if r, found := g.readLine(rest[begin:], whole); found {
			return r, true
		}
		if begin == 0 {
			return protocol.Reading{}, false
		}
		rest = rest[:begin-1]
	}
}

// readLine reads the last match in a line. In an unfinished line a truncated number does
// no harm, because it only understates progress.
func (g *Gauge) readLine(line []byte, whole bool) (protocol.Reading, bool) {
	all := g.pattern.FindAllSubmatch(line, -1)
	if len(all) == 0 || !whole && g.of == 0 {
		return protocol.Reading{}, false
	}
	groups := all[len(all)-1]
	value := string(groups[min(1, len(groups)-1)])
	of := g.of
	if of == 0 && len(groups) > 2 {
		var err error
		if of, err = strconv.ParseFloat(string(groups[2]), 64); err != nil || of == 0 {
			return protocol.Reading{}, false
		}
	}
	r := g.reading(value, of)
	return r, r != protocol.Reading{}
}

// reading returns an unknown fraction if the total is unknown, and the zero Reading if
// value is not a number.
func (g *Gauge) reading(value string, of float64) protocol.Reading {
	if of == 0 && value != "" {
		return protocol.Reading{Fraction: -1, Text: protocol.CleanText(value)}
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || !(n >= 0 && of > 0) { // also rejects NaN
		return protocol.Reading{}
	}
	return protocol.Reading{Fraction: min(1, n/of), Text: protocol.CleanText(value) + " of " + strconv.FormatFloat(of, 'f', -1, 64)}
}
