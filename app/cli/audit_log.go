package cli

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

	"molrun/app/audit"
	"molrun/app/config"
	"molrun/app/fault"
	"molrun/app/unit"
)

// auditName is the audit log's in the data directory. Older files are
// audit.log.1, the newest of them, and so on.
const auditName = "audit.log"

// auditLog appends entries to a file, one line of JSON each, and begins a new
// file when that is full.
//
// What it tells of has happened already: where an entry can't be written, as
// on a full disk, the request is answered all the same. The fault is logged,
// and the next entry that can be written follows one that says how many are
// missing.
type auditLog struct {
	path    string
	maxSize int64
	keep    int
	log     zerolog.Logger

	mu   sync.Mutex
	file *os.File
	size int64
	lost int // entries since the last one that was written
}

// openAudit takes hold of the audit log of the data directory.
func openAudit(data string, s config.Audit, log zerolog.Logger) (*auditLog, error) {
	a := &auditLog{path: filepath.Join(data, auditName), maxSize: int64(s.MaxSize), keep: s.Keep, log: log}
	if err := a.open(); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return a, nil
}

func (a *auditLog) open() error {
	file, err := os.OpenFile(a.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	size, err := endOfLines(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	a.file, a.size = file, size
	return nil
}

// endOfLines cuts off what a crash left of a line, and gives the size.
func endOfLines(file *os.File) (int64, error) {
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

// durable reports whether an entry has to be on the disk before the answer is
// sent: what is done to keys and to the secret.
func durable(e audit.Entry) bool {
	return strings.HasPrefix(e.Action, "key.") || strings.HasPrefix(e.Action, "secret.")
}

// add appends an entry.
func (a *auditLog) add(e audit.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.write(a.missing(e.Time), e)
	if err == nil && durable(e) {
		err = a.file.Sync()
	}
	if err != nil {
		a.lost++
		a.log.Error().Err(err).Str("action", e.Action).Int("lost", a.lost).Msg("an entry of the audit log could not be written")
		return
	}
	a.lost = 0
}

// missing gives the entry that tells of lost ones, if there are any.
func (a *auditLog) missing(at unit.Time) []audit.Entry {
	if a.lost == 0 {
		return nil
	}
	return []audit.Entry{{Time: at, Action: "audit.lost", Object: strconv.Itoa(a.lost), Result: string(fault.Internal)}}
}

func (a *auditLog) write(before []audit.Entry, e audit.Entry) error {
	var lines []byte
	for _, e := range append(before, e) {
		line, err := json.Marshal(e) // escapes all control characters
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if a.size > 0 && a.size+int64(len(lines)) > a.maxSize {
		if err := a.rotate(); err != nil {
			return err
		}
	}
	if n, err := a.file.Write(lines); err != nil {
		return errors.Join(err, a.cut(n))
	}
	a.size += int64(len(lines))
	return nil
}

// cut takes back the last bytes, written of lines that do not fit as a whole.
func (a *auditLog) cut(n int) error {
	if n == 0 {
		return nil
	}
	info, err := a.file.Stat()
	if err != nil {
		return err
	}
	return a.file.Truncate(info.Size() - int64(n))
}

// rotate begins a new file. The names move up, from the oldest on.
func (a *auditLog) rotate() error {
	err := a.file.Sync()
	for i := a.keep; i > 0 && err == nil; i-- {
		err = os.Rename(auditFile(a.path, i-1), auditFile(a.path, i))
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	full := a.file
	if err := a.open(); err != nil {
		return err
	}
	return full.Close()
}

// auditFile gives the name of the i-th older file, 0 for the current one.
func auditFile(path string, i int) string {
	if i == 0 {
		return path
	}
	return path + "." + strconv.Itoa(i)
}

// close ends the log; entries that come later are lost.
func (a *auditLog) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Join(a.file.Sync(), a.file.Close())
}
