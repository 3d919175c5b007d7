package task

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"molrun/app/protocol"
)

// progressMark begins a line by which a program tells how far it is:
// molrun:progress 0.42 some text
const progressMark = "molrun:progress "

const (
	longestProgressLine = 4 << 10
	longestProgressText = 200 // letters
	progressPause       = time.Second
)

// progressFilter passes on what a program prints, but for its progress lines.
// A mark is looked for in whole pieces of output, not line by line: output
// without marks costs one fast search.
type progressFilter struct {
	out     io.Writer
	report  func(protocol.Progress)
	held    []byte // the begin of a line that may be progress
	midLine bool   // what was passed on last did not end a line
}

func (f *progressFilter) Write(p []byte) (int, error) {
	data := p
	if len(f.held) > 0 {
		data = append(f.held, p...)
		f.held = nil
	}
	for len(data) > 0 {
		at := f.markIn(data)
		f.pass(data[:at])
		data = f.line(data[at:])
	}
	return len(p), nil
}

// Flush ends the output: what was held back is a line without its end.
func (f *progressFilter) Flush() {
	line := f.held
	f.held = nil
	if !f.take(line) {
		f.pass(line)
	}
}

// markIn gives where a progress line begins in data, or could begin if more
// came, or else the length of data.
func (f *progressFilter) markIn(data []byte) int {
	for from := 0; ; {
		i := bytes.Index(data[from:], []byte(progressMark))
		if i < 0 {
			break
		}
		if from += i; f.beginsLine(data, from) {
			return from
		}
		from += len(progressMark)
	}
	return f.markAtEnd(data)
}

// markAtEnd gives where the last line begins, if it could become a mark, or else
// the length of data. Only as many bytes are looked at as a mark has.
func (f *progressFilter) markAtEnd(data []byte) int {
	for at := max(0, len(data)-len(progressMark)+1); at < len(data); at++ {
		if f.beginsLine(data, at) && strings.HasPrefix(progressMark, string(data[at:])) {
			return at
		}
	}
	return len(data)
}

func (f *progressFilter) beginsLine(data []byte, at int) bool {
	if at == 0 {
		return !f.midLine
	}
	return data[at-1] == '\n'
}

// line deals with the line that data begins with, which may be progress, and
// gives the rest.
func (f *progressFilter) line(data []byte) []byte {
	end := bytes.IndexByte(data, '\n') + 1
	switch {
	case len(data) == 0:
		return nil
	case end == 0 && len(data) < longestProgressLine:
		f.held = bytes.Clone(data)
		return nil
	case end == 0: // too long to be progress
		f.pass(data)
		return nil
	}
	if !f.take(data[:end]) {
		f.pass(data[:end])
	}
	return data[end:]
}

func (f *progressFilter) pass(text []byte) {
	if len(text) == 0 {
		return
	}
	f.out.Write(text) // a logFile: it does not fail
	f.midLine = text[len(text)-1] != '\n'
}

// take reports a progress line, or gives false where it is none.
func (f *progressFilter) take(line []byte) bool {
	p, ok := parseProgress(string(line))
	if ok {
		f.report(p)
	}
	return ok
}

func parseProgress(line string) (protocol.Progress, bool) {
	rest, ok := strings.CutPrefix(line, progressMark)
	if !ok || len(line) > longestProgressLine {
		return protocol.Progress{}, false
	}
	number, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
	fraction, err := strconv.ParseFloat(number, 64)
	if err != nil || !(fraction >= 0 && fraction <= 1) { // NaN neither
		return protocol.Progress{}, false
	}
	return protocol.Progress{Fraction: fraction, Text: cleanText(text)}, true
}

// cleanText makes a program's words fit to be shown.
func cleanText(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.TrimSpace(text)
	if letters := []rune(text); len(letters) > longestProgressText {
		text = string(letters[:longestProgressText])
	}
	return text
}

// progress keeps the last word of the program in progress.json, written at
// most once in a while.
type progress struct {
	dir string

	mu      sync.Mutex
	last    protocol.Progress
	pending bool
	written time.Time
}

func (p *progress) set(to protocol.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.pending = to, true
	p.writeIfDue()
}

// tick writes what came too soon after the one before.
func (p *progress) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeIfDue()
}

func (p *progress) writeIfDue() {
	if time.Since(p.written) >= progressPause {
		p.writeNow()
	}
}

// finish writes the last word.
func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeNow()
}

// writeNow passes over a failure: the next word comes soon.
func (p *progress) writeNow() {
	if !p.pending {
		return
	}
	p.pending, p.written = false, time.Now()
	writeForNow(p.dir, ProgressFile, progressRecord{Protocol, p.last})
}
