package task

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// logFile keeps at most limit bytes of a program's output: the beginning, where programs
// print their input, and the end, where they print errors. When it is full, it drops its
// middle and grows again. So every byte is copied less than twice, and readers find a
// complete log at any time. A line in the middle says how much is missing.
type logFile struct {
	path    string
	f       *os.File
	size    int64
	limit   int64
	head    int64 // length of the beginning that is kept; 0 until the log is full
	omitted int64
	lost    int64 // bytes that could not be written

	unsynced bool // it is synced elsewhere
}

func openLog(dir string, limit int64) (*logFile, error) {
	l := &logFile{path: filepath.Join(dir, LogFile), limit: max(limit, 4<<10)}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	l.f = f
	if l.size, err = f.Seek(0, io.SeekEnd); err != nil {
		return nil, fmt.Errorf("open the log: %w", errors.Join(err, f.Close()))
	}
	return l, nil
}

// Write never fails: a full disk must not stop the program. The end of the log
// says how many bytes were lost.
func (l *logFile) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if l.size >= l.limit && l.collapse() != nil {
			l.lost += int64(len(p))
			break
		}
		part := p[:min(int64(len(p)), l.limit-l.size)]
		written, err := l.f.Write(part)
		l.size += int64(written)
		if err != nil {
			l.lost += int64(len(p) - written)
			break
		}
		p = p[len(part):]
	}
	return n, nil
}

// Close makes the log durable, unless it is synced elsewhere.
func (l *logFile) Close() error {
	var err error
	if l.lost > 0 {
		_, err = fmt.Fprintf(l.f, "\n[molrun: %d bytes could not be written here]\n", l.lost)
	}
	info, statErr := l.f.Stat()
	if statErr == nil {
		statErr = l.f.Truncate(info.Size()) // frees the space that collapse reserved
	}
	if !l.unsynced {
		err = errors.Join(err, l.f.Sync())
	}
	return errors.Join(err, statErr, l.f.Close())
}

const keepSize = 1 // FALLOC_FL_KEEP_SIZE of fallocate(2)

// collapse replaces the full log with a shorter one: its beginning, a line that says what
// is missing, and its end. Unlike Close it does not sync, because a crash of the machine
// loses only the log of a lost attempt.
func (l *logFile) collapse() error {
	if l.head == 0 {
		l.head = l.lineEnd(l.limit / 8)
	}
	tail := l.lineEnd(l.size - l.limit/4)
	omitted := l.omitted + tail - l.head
	if l.omitted > 0 {
		omitted -= int64(len(omission(l.omitted)))
	}
	f, err := os.OpenFile(l.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	// With space already allocated, the file system does not have to write this file out
	// at the rename below, which would dominate the cost with much output.
	syscall.Fallocate(int(f.Fd()), keepSize, 0, l.limit)
	size, err := l.copyTo(f, tail, omission(omitted))
	if err == nil {
		err = os.Rename(f.Name(), l.path)
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	l.f.Close() // its content was copied, so failure loses nothing
	l.f, l.size, l.omitted = f, size, omitted
	return nil
}

func omission(bytes int64) string {
	return fmt.Sprintf("\n[molrun: %d bytes omitted here]\n", bytes)
}

func (l *logFile) copyTo(f *os.File, tail int64, marker string) (int64, error) {
	head, err := io.Copy(f, io.NewSectionReader(l.f, 0, l.head))
	if err != nil {
		return 0, err
	}
	if _, err := f.WriteString(marker); err != nil {
		return 0, err
	}
	end, err := io.Copy(f, io.NewSectionReader(l.f, tail, l.size-tail))
	return head + int64(len(marker)) + end, err
}

// lineEnd moves an offset to the start of the next line, unless that is far away.
func (l *logFile) lineEnd(offset int64) int64 {
	near := make([]byte, min(4<<10, l.limit/16))
	n, _ := l.f.ReadAt(near, offset) // a failed read finds no line break
	for i, b := range near[:n] {
		if b == '\n' {
			return offset + int64(i) + 1
		}
	}
	return offset
}
