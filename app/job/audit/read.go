package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"molrun/app/base/fault"
)

// Filter selects entries. An empty field selects all.
type Filter struct {
	Since  time.Time
	Key    string // key that acted or was changed
	Action string // action or group of actions, such as job
	Until  time.Time
	Failed bool // only failed actions

	// Organizations selects entries by organization; "" selects entries without one. An
	// empty list selects all.
	Organizations []string
}

func (f Filter) selects(e Entry) bool {
	return !e.Time.Before(f.Since) && (f.Until.IsZero() || e.Time.Before(f.Until)) &&
		(!f.Failed || e.Result != "ok") &&
		(f.Organizations == nil || slices.Contains(f.Organizations, e.Organization)) &&
		(f.Key == "" || e.Key == f.Key || strings.HasPrefix(e.Action, "key.") && e.Object == f.Key) &&
		(f.Action == "" || e.Action == f.Action || strings.HasPrefix(e.Action, f.Action+"."))
}

// ReadEntries calls each for the entries of a data directory, oldest first, up to the end
// of the log.
func ReadEntries(data string, f Filter, each func(Entry) error) error {
	r := newReader(data, f, each)
	defer r.close()
	return r.readAll()
}

// Follow is like ReadEntries, but then waits for further entries until ctx ends.
func Follow(ctx context.Context, data string, f Filter, each func(Entry) error) error {
	const interval = 300 * time.Millisecond
	r := newReader(data, f, each)
	defer r.close()
	for err := r.readAll(); ; err = r.current() {
		if err != nil {
			return err
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return nil
		}
	}
}

// reader reads the files of the audit log, oldest first.
type reader struct {
	path   string
	filter Filter
	each   func(Entry) error

	file    *os.File // current file
	partial string   // line whose end has not been written yet
}

func newReader(data string, f Filter, each func(Entry) error) *reader {
	return &reader{path: filepath.Join(data, Name), filter: f, each: each}
}

// readAll reads the whole log. It opens the current file before it reads the full ones so
// that a rotation in between loses no entry.
func (r *reader) readAll() error {
	if err := r.openCurrent(); err != nil {
		return err
	}
	if err := r.full(); err != nil {
		return err
	}
	return r.current()
}

func (r *reader) full() error {
	last := 0
	for {
		if _, err := os.Stat(fileName(r.path, last+1)); err != nil {
			break
		}
		last++
	}
	for i := last; i > 0; i-- {
		file, err := os.Open(fileName(r.path, i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		if !r.isCurrent(file) {
			err = r.lines(file)
		}
		r.partial = ""
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) isCurrent(other *os.File) bool {
	if r.file == nil {
		return false
	}
	a, errA := r.file.Stat()
	b, errB := other.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// openCurrent opens the current file if it exists.
func (r *reader) openCurrent() error {
	file, err := os.Open(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		data := filepath.Dir(r.path)
		if _, err := os.Stat(data); err != nil {
			return fault.Errorf(fault.NotFound, "there is no data directory %s; give another with --data", data)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	r.file = file
	return nil
}

// current continues reading the open file. If that has been rotated, it continues with
// the new one.
func (r *reader) current() error {
	if r.file != nil {
		rotated := r.rotated() // checked first, so that the next read is complete
		if err := r.lines(r.file); err != nil || !rotated {
			return err
		}
		r.close()
		r.file, r.partial = nil, ""
	}
	if err := r.openCurrent(); err != nil || r.file == nil {
		return err
	}
	return r.lines(r.file)
}

func (r *reader) rotated() bool {
	next, err := os.Stat(r.path)
	info, errOpen := r.file.Stat()
	return err == nil && errOpen == nil && !os.SameFile(next, info)
}

// lines reads a file from its current position to the end.
func (r *reader) lines(file *os.File) error {
	buffered := bufio.NewReader(file)
	for {
		part, err := buffered.ReadString('\n')
		r.partial += part
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		var e Entry
		damaged := json.Unmarshal([]byte(r.partial), &e)
		r.partial = ""
		if damaged == nil && r.filter.selects(e) {
			if err := r.each(e); err != nil {
				return err
			}
		}
	}
}

func (r *reader) close() {
	if r.file != nil {
		_ = r.file.Close() // was only read
	}
}

// lastBytes limits how much of the log ReadLast reads, however old the log is.
const lastBytes = 32 << 20

// ReadLast returns up to limit entries, newest first, and whether there might be older
// ones. It reads the newest 32 MiB of the log.
func ReadLast(data string, f Filter, limit int) (entries []Entry, more bool, err error) {
	b := backward{left: lastBytes, each: func(line []byte) bool {
		var e Entry
		if json.Unmarshal(line, &e) != nil || !f.selects(e) {
			return true
		}
		if more = len(entries) == limit; !more {
			entries = append(entries, e)
		}
		return !more
	}}
	var newer fs.FileInfo
	for i := 0; b.left > 0 && !more; i++ {
		file, err := os.Open(fileName(filepath.Join(data, Name), i))
		if errors.Is(err, fs.ErrNotExist) {
			return entries, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("read the audit log: %w", err)
		}
		info, err := file.Stat()
		if err == nil && !os.SameFile(newer, info) { // otherwise it was just rotated
			newer, err = info, b.file(file, info.Size())
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, false, fmt.Errorf("read the audit log: %w", err)
		}
	}
	return entries, true, nil
}

// backward reads lines starting from the end of a file.
type backward struct {
	left int64             // maximum number of bytes to read
	each func([]byte) bool // returns false to stop
}

// file reads a file of the given size.
func (b *backward) file(file *os.File, size int64) error {
	var rest []byte // end of a line that begins in an earlier block
	for size > 0 && b.left > 0 {
		block := make([]byte, min(size, 64<<10))
		size -= int64(len(block))
		b.left -= int64(len(block))
		if _, err := file.ReadAt(block, size); err != nil {
			return err
		}
		lines := bytes.Split(append(block, rest...), []byte("\n"))
		for _, line := range slices.Backward(lines[1:]) {
			if !b.each(line) {
				b.left = 0
				return nil
			}
		}
		rest = lines[0]
	}
	if size == 0 && !b.each(rest) {
		b.left = 0
	}
	return nil
}
