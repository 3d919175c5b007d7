// Package gauge is the progress parser: it finds in the output of a program how far it is.
// It keeps little of that, and searches it seldom, so that programs which print much are not
// slowed down.
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
	mostText = 16 << 10               // bytes that are kept until they are searched
	pause    = 200 * time.Millisecond // between two searches
	// costs bounds the time of counting, which has to see all that is printed: a program that
	// prints faster is not counted completely.
	costs = 0.1
)

// Gauge searches a text that is written to it piece by piece. It may be used from several
// goroutines.
type Gauge struct {
	pattern *regexp.Regexp
	count   bool
	of      float64
	report  func(protocol.Reading)

	mu      sync.Mutex
	text    []byte // not searched yet, or an unfinished line; a carriage return ends a line too
	counted int    // matches in the lines before
	last    protocol.Reading
	begin   time.Time
	looked  time.Time
	spent   time.Duration // on counting
}

// New returns a gauge that calls report with readings that are new.
func New(g protocol.Gauge, report func(protocol.Reading)) (*Gauge, error) {
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

// Tick searches what was written, unless that was done just now.
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
	if len(g.text) > mostText/2 { // a long line: its end is enough
		g.dropBytes(len(g.text) - mostText/2)
	}
}

// dropBytes forgets the first bytes.
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

// readLine reads the last match in a line. Of one that is not whole, the beginning of a number
// does no harm: the number is larger.
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

// reading gives an unknown fraction where the end is unknown, and nothing for what is no
// number.
func (g *Gauge) reading(value string, of float64) protocol.Reading {
	if of == 0 && value != "" {
		return protocol.Reading{Fraction: -1, Text: protocol.CleanText(value)}
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || !(n >= 0 && of > 0) { // also refuses NaN
		return protocol.Reading{}
	}
	return protocol.Reading{Fraction: min(1, n/of), Text: protocol.CleanText(value) + " of " + strconv.FormatFloat(of, 'f', -1, 64)}
}
