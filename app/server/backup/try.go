package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"molrun/app/server/config"
)

// tryDir is where a backup is restored on trial, and triedFile says what came of the last
// time.
const (
	tryDir    = "trial"
	triedFile = "trial.json"
)

// TestedRestore is the result of restoring a backup on trial.
type TestedRestore struct {
	Backup   string    `json:"backup"`
	At       time.Time `json:"at"` // when it was tried
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	Problems []string  `json:"problems"` // none: it can be restored
}

// TestRestore restores a backup, "" for the newest, into a folder beside it, checks all of it, and
// removes it. What came of it is kept for Tried. Results and uploads are read and compared
// with their digests, but take no space: they are links to the backup's.
func (d Dir) TestRestore(ctx context.Context, c config.Config, name string, finishLost FinishLost) (tried *TestedRestore, err error) {
	lock, err := lockDir(string(d), "a backup is being made into "+string(d)+"; wait for its end")
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

// Tried returns what came of the last trial, nil if there was none.
func (d Dir) Tried() (*TestedRestore, error) {
	tried, err := readJSON[TestedRestore](d.path(triedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return tried, err
}

// Newest returns the newest backup, nil if there is none.
func (d Dir) Newest() (*Record, error) {
	names, err := d.Names()
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return d.Record(names[len(names)-1])
}

// Marked reports whether this is a directory of backups. One that is not mounted is none.
func (d Dir) Marked() (bool, error) {
	_, err := readJSON[marker](d.path(markerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
