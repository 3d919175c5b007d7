package task

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"molrun/app/task/protocol"
)

// mark starts a line by which a program reports something:
//
//	molrun:progress 0.42 some text
//	molrun:warning some text
const mark = "molrun:"

const (
	longestMarkedLine = 4 << 10
	progressPause     = time.Second
)

// markFilter forwards a program's output without its progress lines and with reworded
// warnings. It searches whole chunks of output for a mark, not line by line, so that
// output without marks costs one fast search.
type markFilter struct {
	out       io.Writer
	report    func(protocol.Progress)
	warn      func(text string)
	held      []byte // the beginning of a line that could be marked
	midLine   bool   // the output forwarded so far does not end with a line end
	sawMarked bool   // the last input was a marked line that ended with a carriage return
}

func (f *markFilter) Write(p []byte) (int, error) {
	data := p
	if f.sawMarked && len(data) > 0 {
		data, f.sawMarked = bytes.TrimPrefix(data, []byte("\n")), false
	}
	if len(f.held) > 0 {
		data = append(f.held, p...)
		f.held = nil
	}
	for len(data) > 0 {
		at := f.markIn(data)
		f.forward(data[:at])
		data = f.line(data[at:])
	}
	return len(p), nil
}

// Flush ends the output. Held output is a line without a newline.
func (f *markFilter) Flush() {
	line := f.held
	f.held = nil
	if !f.takeMarked(line) {
		f.forward(line)
	}
}

// markIn returns the offset at which a marked line starts in data, or could start once
// more data arrives. If there is none, it returns the length of data.
func (f *markFilter) markIn(data []byte) int {
	for from := 0; ; {
		i := bytes.Index(data[from:], []byte(mark))
		if i < 0 {
			break
		}
		if from += i; f.beginsLine(data, from) {
			return from
		}
		from += len(mark)
	}
	return f.markAtEnd(data)
}

// markAtEnd returns the offset of the last line if it could become a mark, otherwise the
// length of data. It examines no more bytes than a mark has.
func (f *markFilter) markAtEnd(data []byte) int {
	for at := max(0, len(data)-len(mark)+1); at < len(data); at++ {
		if f.beginsLine(data, at) && strings.HasPrefix(mark, string(data[at:])) {
			return at
		}
	}
	return len(data)
}

func (f *markFilter) beginsLine(data []byte, at int) bool {
	if at == 0 {
		return !f.midLine
	}
	return isLineEnd(data[at-1])
}

// isLineEnd includes the carriage return: programs that show their progress overwrite the
// previous line.
func isLineEnd(b byte) bool { return b == '\n' || b == '\r' }

// line handles the first line of data, which could be marked, and returns the rest.
func (f *markFilter) line(data []byte) []byte {
	end := bytes.IndexAny(data, "\r\n") + 1
	switch {
	case len(data) == 0:
		return nil
	case end == 0 && len(data) < longestMarkedLine:
		f.held = bytes.Clone(data)
		return nil
	case end == 0: // too long
		f.forward(data)
		return nil
	}
	if !f.takeMarked(data[:end]) {
		f.forward(data[:end])
		return data[end:]
	}
	f.sawMarked = data[end-1] == '\r' && end == len(data)
	if data[end-1] == '\r' {
		return bytes.TrimPrefix(data[end:], []byte("\n"))
	}
	return data[end:]
}

func (f *markFilter) forward(text []byte) {
	if len(text) == 0 {
		return
	}
	f.out.Write(text) // a logFile, which never fails
	f.midLine = !isLineEnd(text[len(text)-1])
}

// takeMarked reports a marked line; it returns false if line is not marked. Progress
// lines are not needed in a log.
func (f *markFilter) takeMarked(line []byte) bool {
	rest, ok := strings.CutPrefix(string(line), mark)
	if !ok || len(line) > longestMarkedLine {
		return false
	}
	what, rest, _ := strings.Cut(strings.TrimRight(rest, "\r\n"), " ")
	switch what {
	case "progress":
		p, ok := parseProgress(rest)
		if ok {
			f.report(p)
		}
		return ok
	case "warning":
		text := protocol.CleanWarning(rest)
		if text != "" {
			f.warn(text)
			f.forward([]byte("warning: " + text + "\n"))
		}
		return text != ""
	}
	return false
}

func parseProgress(said string) (protocol.Progress, bool) {
	number, text, _ := strings.Cut(strings.TrimSpace(said), " ")
	fraction, err := strconv.ParseFloat(number, 64)
	if err != nil || !(fraction >= 0 && fraction <= 1) { // also rejects NaN
		return protocol.Progress{}, false
	}
	return protocol.Progress{Fraction: fraction, Text: protocol.CleanText(text)}, true
}

// progressRecord is the content of progress.json.
type progressRecord struct {
	Protocol int `json:"protocol"`
	protocol.Progress
}

// progress writes the program's last progress report to progress.json, at most
// once per progressPause.
type progress struct {
	dir string

	mu      sync.Mutex
	last    protocol.Progress
	pending bool
	written time.Time
}

// set records a report. Progress never decreases.
func (p *progress) set(to protocol.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to.Fraction = max(to.Fraction, p.last.Fraction)
	p.last, p.pending = to, true
	p.writeIfDue()
}

// tick writes a report that came too soon after the previous one.
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

// finish writes the last report.
func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeNow()
}

// writeNow ignores failure, because the next report comes soon.
func (p *progress) writeNow() {
	if !p.pending {
		return
	}
	p.pending, p.written = false, time.Now()
	writeUnsynced(p.dir, ProgressFile, progressRecord{Protocol, p.last})
}
