package blobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"molrun/app"
)

// garbageAge is the age at which CollectGarbage considers a file an orphan. A younger one
// might be about to be recorded.
const garbageAge = 24 * time.Hour

// CollectGarbage removes unreferenced files and returns how many it removed: temporary
// files and trash of earlier processes, and generations of uploads, partial files and job
// directories that are a day old and not named by any record. It can run while requests
// are served. It ignores names that this package never creates.
func (d *Dir) CollectGarbage(
	ctx context.Context,
	uploadKnown func(id app.UploadID, generation int) bool,
	jobKnown func(id app.JobID) bool,
) (removed int, err error) {
	count := func(err error) error {
		if err == nil {
			removed++
		}
		return err
	}
	leftovers := func(dir string, remove func(name string) error) error {
		return eachEntry(ctx, d.root, dir, func(name string, e fs.DirEntry) error {
			if strings.HasPrefix(e.Name(), d.run) {
				return nil
			}
			return count(remove(name))
		})
	}
	before := d.options.Now().Add(-garbageAge)
	old := func(e fs.DirEntry) bool {
		info, err := e.Info()
		return err == nil && info.ModTime().Before(before) // an error means that it has disappeared
	}
	orphans := visitor{
		upload: func(_ string, e fs.DirEntry, id app.UploadID, generation int) error {
			if !old(e) || uploadKnown(id, generation) {
				return nil
			}
			return count(d.RemoveUpload(id, generation))
		},
		partial: func(_ string, e fs.DirEntry, id app.UploadID, generation int) error {
			if !old(e) || uploadKnown(id, generation) {
				return nil
			}
			return count(d.RemovePartial(id, generation))
		},
		job: func(_ string, e fs.DirEntry, id app.JobID) error {
			if !old(e) || jobKnown(id) {
				return nil
			}
			return count(d.RemoveJob(id))
		},
	}
	err = errors.Join(
		leftovers(tmpDir, d.removeAll),
		leftovers(trashDir, d.removeAll),
		orphans.walk(ctx, d.root),
	)
	if err != nil {
		err = fmt.Errorf("sweep: %w", err)
	}
	return removed, err
}
