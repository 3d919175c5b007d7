package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"molrun/app/server/config"
)

// tryDir is the directory for test restores, and triedFile holds the result of the last
// one.
const (
	tryDir    = "trial"
	triedFile = "trial.json"
)

// TestedRestore is the result of a test restore.
type TestedRestore struct {
	Backup   string    `json:"backup"`
	At       time.Time `json:"at"` // time of the test
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	Problems []string  `json:"problems"` // empty if it can be restored
}

// TestRestore restores a backup, the newest if name is "", into a temporary directory
// next to it, checks all of it, and removes it. The result is saved for LastTest. Results
// and uploads are read and compared with their digests, but use no space, since they are
// hard links to the backup's files.
func (d Dir) TestRestore(ctx context.Context, c config.Config, name string, finishLost FinishLost) (tried *TestedRestore, err error) {
	lock, err := lockDir(string(d), "a backup is being made into "+string(d)+"; wait until it is done")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := os.RemoveAll(d.path(tryDir)); err != nil {
		return nil, err
	}
	c.Data = d.path(tryDir)
	r := Restore{Dir: d, Config: c, Name: name, FinishLost: finishLost, linked: true}
	tried = &TestedRestore{At: time.Now().UTC(), Problems: []string{}}
	if tried.Backup, err = r.choose(); err != nil {
		return nil, err
	}
	restored, err := r.Restore(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), os.RemoveAll(d.path(tryDir)))
	case err != nil:
		tried.Problems = append(tried.Problems, err.Error())
	default:
		tried.Files, tried.Bytes = restored.Files, restored.Bytes
		tried.Problems = append(tried.Problems, restored.Problems...)
	}
	return tried, errors.Join(writeJSON(d.path(triedFile), tried), os.RemoveAll(d.path(tryDir)))
}

// LastTest returns the result of the last test restore, or nil if there was none.
func (d Dir) LastTest() (*TestedRestore, error) {
	tried, err := readJSON[TestedRestore](d.path(triedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return tried, err
}

// Newest returns the newest backup, or nil if there is none.
func (d Dir) Newest() (*Record, error) {
	names, err := d.Names()
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return d.Record(names[len(names)-1])
}

// Marked reports whether this is a backup directory, which the mount point of an
// unmounted disk is not.
func (d Dir) Marked() (bool, error) {
	_, err := readJSON[marker](d.path(markerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
