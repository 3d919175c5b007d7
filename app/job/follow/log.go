package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"molrun/app"
)

const (
	maxPart  = 16 << 10 // bytes per message
	maxParts = 16       // per read
	maxBegin = 1 << 20  // bytes of earlier output sent when a stream starts
	anchored = 128      // bytes used to find a position again
)

// logTail follows the output of a job's program, attempt by attempt.
type logTail struct {
	jobs  *app.Jobs
	by    app.Caller
	name  string
	place logPlace
	last  []byte // bytes read last, to find the position in a log that lost its middle
}

// logPlace is a position in the log of an attempt; the first attempt is 1. Offset -1
// means that the offset is still to be chosen, at most maxBegin bytes before the end.
type logPlace struct {
	attempt int
	offset  int64
}

// logPart is whole lines of a log, or part of a line that is too long.
type logPart struct {
	ID      app.JobID `json:"jobId"`
	Name    string    `json:"jobName"`
	Attempt int       `json:"attempt"`
	Offset  int64     `json:"offset"` // of its first byte in the log
	Text    string    `json:"text"`

	end logPlace
}

func newLog(jobs *app.Jobs, by app.Caller, j *app.Job) *logTail {
	return &logTail{jobs: jobs, by: by, name: j.Name, place: logPlace{j.Attempts, -1}}
}

func (l *logTail) resume(p *Position) {
	if p.Attempt > 0 {
		l.place = logPlace{p.Attempt, p.Offset}
	}
}

func (l *logTail) String() string {
	return fmt.Sprintf("%d.%d", l.place.attempt, max(0, l.place.offset))
}

func parseLogPlace(text string) (attempt int, offset int64, err error) {
	a, o, found := strings.Cut(text, ".")
	n, err := strconv.ParseUint(a, 10, 31)
	m, offsetErr := strconv.ParseUint(o, 10, 63)
	if !found {
		err = errors.New("a log position must consist of an attempt and an offset")
	}
	return int(n), int64(m), errors.Join(err, offsetErr)
}

// readParts returns the next parts, or none if there is no new output.
func (l *logTail) readParts(ctx context.Context, j *app.Job) ([]logPart, error) {
	for {
		if l.place.attempt == 0 {
			if j.Attempts == 0 {
				return nil, nil
			}
			l.place = logPlace{1, 0}
		}
		older := l.place.attempt < j.Attempts
		parts, err := l.readAttempt(ctx, j, older || j.Status != app.Running)
		if err != nil || len(parts) > 0 || !older {
			return parts, err
		}
		l.place, l.last = logPlace{l.place.attempt + 1, 0}, nil
	}
}

// readAttempt reads the log of one attempt. Unless complete is set, the last line might
// be continued.
func (l *logTail) readAttempt(ctx context.Context, j *app.Job, complete bool) ([]logPart, error) {
	size, err := l.size(ctx)
	if err != nil {
		return nil, err
	}
	if l.place.offset < 0 || l.place.offset > size {
		if err := l.findPlace(ctx, size); err != nil {
			return nil, err
		}
	}
	if l.place.offset == size {
		return nil, nil
	}
	text, err := l.bytes(ctx, l.place.offset, maxPart*maxParts)
	if err != nil {
		return nil, err
	}
	var parts []logPart
	at := l.place
	for len(text) > 0 {
		n := partLength(text, complete && at.offset+int64(len(text)) >= size)
		if n == 0 {
			break
		}
		p := logPart{ID: j.ID, Name: j.Name, Attempt: at.attempt, Offset: at.offset, Text: strings.ToValidUTF8(string(text[:n]), "\uFFFD")}
		l.last = append([]byte(nil), text[max(0, n-anchored):n]...)
		at.offset += int64(n)
		p.end, text = at, text[n:]
		parts = append(parts, p)
	}
	return parts, nil
}

// partLength returns how much of the text makes up a part: whole lines, or a piece of a
// longer line. An incomplete line is left for later unless last is set.
func partLength(text []byte, last bool) int {
	long := len(text) >= maxPart
	if long {
		text = text[:maxPart]
	} else if last {
		return len(text)
	}
	if n := bytes.LastIndexByte(text, '\n') + 1; n > 0 {
		return n
	}
	if !long {
		return 0
	}
	n := len(text)
	for range utf8.UTFMax - 1 { // a character must not be split
		if r, size := utf8.DecodeLastRune(text[:n]); r != utf8.RuneError || size != 1 {
			break
		}
		n--
	}
	if r, size := utf8.DecodeLastRune(text[:n]); r == utf8.RuneError && size == 1 {
		return len(text) // not text
	}
	return n
}

// findPlace determines where to continue reading: initially at most maxBegin bytes before
// the end, and at the earlier position again if the log has since lost its middle.
func (l *logTail) findPlace(ctx context.Context, size int64) error {
	begin := max(0, size-maxBegin)
	text, err := l.bytes(ctx, begin, maxBegin)
	if err != nil {
		return err
	}
	at := bytes.LastIndex(text, l.last)
	switch {
	case len(l.last) > 0 && at >= 0:
		l.place.offset = begin + int64(at+len(l.last))
	case begin > 0:
		l.place.offset = begin + int64(bytes.IndexByte(text, '\n')) + 1
	default:
		l.place.offset = 0
	}
	return nil
}

func (l *logTail) openLog(ctx context.Context, offset, limit int64) (*app.Log, error) {
	return l.jobs.Log(ctx, l.by, app.LogRequest{Name: l.name, Attempt: l.place.attempt, Offset: offset, Limit: limit})
}

func (l *logTail) size(ctx context.Context) (int64, error) {
	log, err := l.openLog(ctx, 0, 0)
	if err != nil {
		return 0, err
	}
	return log.Size, log.Close()
}

func (l *logTail) bytes(ctx context.Context, offset, limit int64) ([]byte, error) {
	log, err := l.openLog(ctx, offset, limit)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(log)
	return text, errors.Join(err, log.Close())
}
