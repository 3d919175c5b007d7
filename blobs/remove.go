package blobs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"molrun/app"
	"molrun/app/base/sortid"
)

// RemoveUpload frees the disk space of one generation, immediately or when the last
// archive that includes it has been sent. Transfers that have it open continue. A missing
// file is not an error.
func (d *Dir) RemoveUpload(id app.UploadID, generation int) error {
	if _, err := sortid.Parse(string(id)); err != nil {
		return fmt.Errorf("remove upload %q: %w", id, err)
	}
	return d.removals.runOrDelay(func() error {
		if err := d.removeHeld(uploadName(id, generation)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove upload: %w", err)
		}
		return nil
	})
}

// RemovePartial removes the partial file of a resumable upload. A missing file is not an
// error.
func (d *Dir) RemovePartial(id app.UploadID, generation int) error {
	if _, err := sortid.Parse(string(id)); err != nil {
		return fmt.Errorf("remove partial upload %q: %w", id, err)
	}
	if err := d.root.Remove(partialName(id, generation)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove partial upload: %w", err)
	}
	return nil
}

// RemoveJob frees the disk space of a job: attempts, result and manifest. It does so
// immediately, or when the last download that has started reading them ends. A missing
// directory is not an error.
func (d *Dir) RemoveJob(id app.JobID) error {
	if _, err := sortid.Parse(string(id)); err != nil {
		return fmt.Errorf("remove job %q: %w", id, err)
	}
	return d.removals.runOrDelay(func() error {
		if err := d.jobs.Remove(id, path.Join(trashDir, d.run+"."+rand.Text())); err != nil {
			return fmt.Errorf("remove job %s: %w", id, err)
		}
		return nil
	})
}

// removeAll removes a tree, even if a program has made its directories read-only.
func (d *Dir) removeAll(name string) error {
	err := d.root.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	err = fs.WalkDir(d.root.FS(), name, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = d.root.Chmod(name, 0o700)
		}
		return err
	})
	return errors.Join(err, d.root.RemoveAll(name))
}

// removals delays removals while a backup copies files.
type removals struct {
	mu      sync.Mutex
	pauses  int
	delayed []func() error
}

// runOrDelay runs remove now or, during a pause, when the last pause ends.
func (r *removals) runOrDelay(remove func() error) error {
	r.mu.Lock()
	if r.pauses > 0 {
		r.delayed = append(r.delayed, remove)
		r.mu.Unlock()
		return nil
	}
	r.mu.Unlock()
	return remove()
}

// Removing runs remove now or, during a pause, when the last pause ends.
func (d *Dir) Removing(remove func() error) error { return d.removals.runOrDelay(remove) }

// PauseRemovals keeps every file in place until resume is called, so that a backup finds
// all files named in its snapshot of the records. The last resume runs the delayed
// removals. If the process exits before that, CollectGarbage does.
func (d *Dir) PauseRemovals() (resume func()) {
	r := &d.removals
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pauses++
	return sync.OnceFunc(func() {
		r.mu.Lock()
		r.pauses--
		var due []func() error
		if r.pauses == 0 {
			due, r.delayed = r.delayed, nil
		}
		r.mu.Unlock()
		for _, remove := range due {
			if err := remove(); err != nil {
				d.options.Log.Error().Err(err).Msg("deferred removal failed")
			}
		}
	})
}
