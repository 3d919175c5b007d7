package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"molrun/app/base/durable"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

// Name is the name of the audit log in the data directory. Full files are named
// audit.log.1 (the newest), audit.log.2, and so on.
const Name = "audit.log"

// Log appends entries to a file, one line of JSON each, and starts a new file when the
// current one is full.
//
// An entry records something that has already happened. If it can't be written, for
// example because the disk is full, the request still succeeds: the error is logged, and
// the next entry written is preceded by one that counts the lost ones.
type Log struct {
	path    string
	maxSize int64
	keep    int // number of full files to keep
	log     zerolog.Logger

	mu            sync.Mutex
	file          *os.File
	size          int64
	lost          int // entries lost since the last written one
	lostSinceOpen int // entries lost since Open
}

// Open opens the audit log of the data directory for appending. A file has at most
// maxSize bytes, and the newest keep full files are kept.
func Open(data string, maxSize int64, keep int, log zerolog.Logger) (*Log, error) {
	l := &Log{path: filepath.Join(data, Name), maxSize: maxSize, keep: keep, log: log}
	if err := l.openFile(); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return l, nil
}

// Add appends an entry.
func (l *Log) Add(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.writeEntry(l.lostEntries(e.Time), e)
	if err == nil && syncedFirst(e) {
		err = l.file.Sync()
	}
	if err != nil {
		l.lost++
		l.lostSinceOpen++
		l.log.Error().Err(err).Str("action", e.Action).Int("lost", l.lost).Msg("could not write an audit log entry")
		return
	}
	l.lost = 0
}

// Lost returns the number of entries that could not be written since Open.
func (l *Log) Lost() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lostSinceOpen
}

// Close closes the log. Entries added later are lost.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.file.Sync(), l.file.Close())
}

// syncedFirst reports whether an entry must be on disk before the service responds to the
// request. This applies to sign-in links and to changes of keys, users and the secret.
func syncedFirst(e Entry) bool {
	kind, _, _ := strings.Cut(e.Action, ".")
	return kind == "key" || kind == "user" || kind == "secret" || e.Action == "session.invite"
}

// lostEntries returns an entry that counts the lost ones, if there are any.
func (l *Log) lostEntries(at unit.Time) []Entry {
	if l.lost == 0 {
		return nil
	}
	return []Entry{{Time: at, Action: "audit.lost", Object: strconv.Itoa(l.lost), Result: string(fault.Internal)}}
}

func (l *Log) openFile() error {
	file, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	size, err := cutPartialLine(file)
	if err == nil {
		err = durable.SyncFolder(filepath.Dir(l.path)) // without its directory entry, synced data is lost
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.size = file, size
	return nil
}

// cutPartialLine truncates a line left incomplete by a crash and returns the file size.
func cutPartialLine(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	end := info.Size()
	tail := make([]byte, min(end, 64<<10))
	if _, err := file.ReadAt(tail, end-int64(len(tail))); err != nil && err != io.EOF {
		return 0, err
	}
	if n := len(tail) - 1 - strings.LastIndexByte(string(tail), '\n'); n > 0 {
		end -= int64(n)
		return end, file.Truncate(end)
	}
	return end, nil
}

func (l *Log) writeEntry(before []Entry, e Entry) error {
	var lines []byte
	for _, e := range append(before, e) {
		line, err := json.Marshal(e) // escapes all control characters
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if l.size > 0 && l.size+int64(len(lines)) > l.maxSize {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	if n, err := l.file.Write(lines); err != nil {
		return errors.Join(err, l.truncateTail(n))
	}
	l.size += int64(len(lines))
	return nil
}

// truncateTail removes the last n bytes, which are from a partial write.
func (l *Log) truncateTail(n int) error {
	if n == 0 {
		return nil
	}
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	return l.file.Truncate(info.Size() - int64(n))
}

// rotate starts a new file. It increments the number of each full file, oldest first, up
// to a gap that an earlier rotation might have left.
func (l *Log) rotate() error {
	err := l.file.Sync()
	for i := l.firstFree(); i > 0 && err == nil; i-- {
		err = os.Rename(fileName(l.path, i-1), fileName(l.path, i))
	}
	if err != nil {
		return err
	}
	full := l.file
	if err := l.openFile(); err != nil {
		return err
	}
	return full.Close()
}

// firstFree returns the lowest unused file number, at most keep.
func (l *Log) firstFree() int {
	for i := range l.keep {
		if _, err := os.Stat(fileName(l.path, i)); errors.Is(err, os.ErrNotExist) {
			return i
		}
	}
	return l.keep
}

// fileName returns the name of the i-th full file, or of the current file for 0.
func fileName(path string, i int) string {
	if i == 0 {
		return path
	}
	return path + "." + strconv.Itoa(i)
}
