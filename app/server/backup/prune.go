package backup

import (
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"molrun/app/base/durable"
	"molrun/app/server/config"
)

// goingPrefix is prepended to the name of a backup that is being removed. The result is
// not a valid name, so it cannot be mistaken for a complete backup.
const goingPrefix = "going-"

// Prune removes the backups that a rule does not keep, and returns their names. It always
// keeps the newest one and the newest one without problems. It also keeps any that are
// unreadable or of another database, since those are not known to belong here. The rule
// applies to the backups taken before the newest, and separately to those dated after it
// by a wrong clock, so that neither group displaces the other.
func (d Dir) Prune(keep config.Keep) (removed []string, err error) {
	if err := d.removeLeftovers(); err != nil {
		return nil, err
	}
	names, err := d.Names()
	if err != nil || keep == (config.Keep{}) || len(names) == 0 {
		return nil, err
	}
	of, err := readJSON[marker](d.path(markerFile))
	if err != nil {
		return nil, err
	}
	records := make([]*Record, len(names))
	for i, name := range names {
		if record, err := d.Record(name); err == nil && record.Database == of.Database {
			records[i] = record
		}
	}
	stays := chosen(keep, records)
	for i, name := range names {
		if stays[i] {
			continue
		}
		if err := os.Rename(d.path(name), d.path(goingPrefix+name)); err != nil {
			return removed, err
		}
		removed = append(removed, name)
	}
	return removed, errors.Join(durable.SyncFolder(string(d)), d.removeLeftovers())
}

// chosen reports which backups to keep. A record is nil if nothing is known about its
// backup.
func chosen(keep config.Keep, records []*Record) []bool {
	stays := make([]bool, len(records))
	newest := len(records) - 1
	stays[newest] = true
	good := false
	var before, after []int // relative to the newest
	for i := newest; i >= 0; i-- {
		r := records[i]
		switch {
		case r == nil:
			stays[i] = true
			continue
		case records[newest] != nil && r.TakenAt.After(records[newest].TakenAt):
			after = append(after, i)
		default:
			before = append(before, i)
		}
		if len(r.Problems) == 0 && !good {
			stays[i], good = true, true
		}
	}
	for _, part := range [][]int{before, after} {
		slices.Reverse(part)
		moments := make([]time.Time, len(part))
		for k, i := range part {
			moments[k] = records[i].TakenAt
		}
		for k, is := range keep.Chosen(moments) {
			stays[part[k]] = stays[part[k]] || is
		}
	}
	return stays
}

// removeLeftovers removes the leftovers of an interrupted Prune.
func (d Dir) removeLeftovers() error {
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
