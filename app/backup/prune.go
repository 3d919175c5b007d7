package backup

import (
	"errors"
	"os"
	"strings"
	"time"

	"molrun/app/config"
	"molrun/app/durable"
	"molrun/app/snapshot"
)

// goingPrefix begins the name of a backup that is being removed: it has no name of a
// backup any more, so nobody takes it for a whole one.
const goingPrefix = "going-"

// Prune removes the backups that a rule does not keep, and returns their names. The newest
// stays, and so does the newest that is without problems. A backup counts at the moment
// in its name, so a clock that went wrong between changes no order.
func (d Dir) Prune(keep config.Keep) (removed []string, err error) {
	if err := d.removeGoing(); err != nil {
		return nil, err
	}
	names, err := d.Names()
	if err != nil || keep == (config.Keep{}) || len(names) == 0 {
		return nil, err
	}
	moments := make([]time.Time, len(names))
	for i, name := range names {
		moment, _, _ := strings.Cut(name, "-")
		if moments[i], err = time.Parse(snapshot.NameLayout, moment); err != nil {
			return nil, err
		}
	}
	stays := keep.Chosen(moments)
	stays[len(names)-1] = true
	stays[d.newestGood(names)] = true
	for i, name := range names {
		if stays[i] {
			continue
		}
		if err := os.Rename(d.path(name), d.path(goingPrefix+name)); err != nil {
			return removed, err
		}
		removed = append(removed, name)
	}
	return removed, errors.Join(durable.SyncFolder(string(d)), d.removeGoing())
}

// newestGood returns the index of the newest backup without problems, 0 if there is none.
func (d Dir) newestGood(names []string) int {
	for i := len(names) - 1; i > 0; i-- {
		if record, err := d.Record(names[i]); err == nil && len(record.Problems) == 0 {
			return i
		}
	}
	return 0
}

// removeGoing removes what an interrupted Prune has left.
func (d Dir) removeGoing() error {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), goingPrefix) && isName(strings.TrimPrefix(e.Name(), goingPrefix)) {
			err = errors.Join(err, os.RemoveAll(d.path(e.Name())))
		}
	}
	return err
}
