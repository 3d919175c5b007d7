package blobs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"molrun/app"
)

// holds keeps removals back while a backup copies files.
type holds struct {
	mu      sync.Mutex
	holders int
	waiting []func() error
}

// HoldRemovals keeps every file in place until release is called, so that a
// backup finds all files that its snapshot of the records names. Removals
// asked for meanwhile are done by the last release; what they would have
// freed if the process dies before is left to Sweep.
func (d *Dir) HoldRemovals() (release func()) {
	d.holds.mu.Lock()
	defer d.holds.mu.Unlock()
	d.holds.holders++
	return sync.OnceFunc(d.releaseHold)
}

func (d *Dir) releaseHold() {
	d.holds.mu.Lock()
	d.holds.holders--
	var ready []func() error
	if d.holds.holders == 0 {
		ready, d.holds.waiting = d.holds.waiting, nil
	}
	d.holds.mu.Unlock()
	for _, remove := range ready {
		if err := remove(); err != nil {
			d.options.Log.Error().Err(err).Msg("remove after hold")
		}
	}
}

// unlessHeld runs remove now, or later where removals are held.
func (d *Dir) unlessHeld(remove func() error) error {
	d.holds.mu.Lock()
	if d.holds.holders > 0 {
		d.holds.waiting = append(d.holds.waiting, remove)
		d.holds.mu.Unlock()
		return nil
	}
	d.holds.mu.Unlock()
	return remove()
}

// RemoveUpload frees the disk of one generation at once. Transfers that have
// it open go on. What is already gone is no error.
func (d *Dir) RemoveUpload(id app.UploadID, generation int) error {
	if _, err := app.ParseID(string(id)); err != nil {
		return fmt.Errorf("remove upload %q: %w", id, err)
	}
	return d.unlessHeld(func() error {
		if err := d.root.Remove(uploadName(id, generation)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove upload: %w", err)
		}
		return nil
	})
}

// RemoveJob frees the disk of a job: attempts, result and manifest. What is
// already gone is no error.
func (d *Dir) RemoveJob(id app.JobID) error {
	if _, err := app.ParseID(string(id)); err != nil {
		return fmt.Errorf("remove job %q: %w", id, err)
	}
	return d.unlessHeld(func() error { return d.removeJob(id) })
}

// removeJob takes the whole directory out of sight first, so that no reader
// and no restart sees half of it.
func (d *Dir) removeJob(id app.JobID) error {
	trash := path.Join(trashDir, d.run+"."+rand.Text())
	err := d.root.Rename(path.Join(jobsDir, string(id)), trash)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = d.removeAll(trash)
	}
	if err != nil {
		return fmt.Errorf("remove job %s: %w", id, err)
	}
	return nil
}

// removeAll removes a tree, also where a program took the right to write away
// from its own directories.
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
