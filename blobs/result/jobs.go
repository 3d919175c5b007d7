package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"

	"molrun/app"
)

// Jobs is the directories of jobs. A download leases the directories that it
// reads. A job that is removed in the meantime stays readable for that download
// alone.
type Jobs struct {
	root   *os.Root // the data directory
	delete func(dir string) error

	mu     sync.RWMutex
	leased map[app.JobID]leased
}

// leased is a directory that downloads read.
type leased struct {
	count int
	trash string // where it is since its job was removed, else ""
}

// NewJobs returns the directories of the jobs in the data directory root. It
// deletes a removed one with delete.
func NewJobs(root *os.Root, delete func(dir string) error) *Jobs {
	return &Jobs{root: root, delete: delete, leased: make(map[app.JobID]leased)}
}

// Lease keeps directories readable until it ends.
type Lease struct {
	jobs *Jobs
	ids  []app.JobID
}

// Lease leases the directories of these jobs. It returns NotFound if one of them
// was removed.
func (j *Jobs) Lease(ids []app.JobID) (*Lease, error) {
	l := &Lease{j, ids}
	l.begin()
	if err := l.check(); err != nil {
		return nil, errors.Join(NotFound(err), l.End())
	}
	return l, nil
}

func (l *Lease) begin() {
	j := l.jobs
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range l.ids {
		one := j.leased[id]
		one.count++
		j.leased[id] = one
	}
}

// check finds jobs that were removed before the lease began. Without it, a
// download whose layout is cached would begin and break off.
func (l *Lease) check() error {
	jobs, err := l.jobs.root.OpenRoot(JobsDir)
	if err != nil {
		return err
	}
	defer jobs.Close()
	for _, id := range l.ids {
		if _, err := jobs.Lstat(string(id)); err != nil {
			return fmt.Errorf("lease job %s: %w", id, err)
		}
	}
	return nil
}

// End ends the lease. It deletes the directories of removed jobs without
// other leases.
func (l *Lease) End() (err error) {
	for _, trash := range l.end() {
		err = errors.Join(err, l.jobs.delete(trash))
	}
	return err
}

func (l *Lease) end() (unread []string) {
	j := l.jobs
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range l.ids {
		one := j.leased[id]
		if one.count--; one.count > 0 {
			j.leased[id] = one
			continue
		}
		delete(j.leased, id)
		if one.trash != "" {
			unread = append(unread, one.trash)
		}
	}
	return unread
}

// Open opens the directory of a leased job.
func (j *Jobs) Open(id app.JobID) (*os.Root, error) {
	j.mu.RLock() // until it is open, Remove may not move it
	defer j.mu.RUnlock()
	return j.root.OpenRoot(j.dir(id))
}

// manifest reads the manifest of a leased job.
func (j *Jobs) manifest(id app.JobID) (*app.Manifest, []byte, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	data, err := j.root.ReadFile(path.Join(j.dir(id), manifestName))
	return decodeManifest(id, data, err)
}

// dir returns where the directory of a job is.
func (j *Jobs) dir(id app.JobID) string {
	if trash := j.leased[id].trash; trash != "" {
		return trash
	}
	return JobDir(id)
}

// Remove moves the directory of a job to trash and deletes it there, now or when
// its last lease ends. A missing directory is no error.
func (j *Jobs) Remove(id app.JobID, trash string) error {
	leased, err := j.moveAway(id, trash)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || leased:
		return err
	}
	return j.delete(trash)
}

// moveAway renames the directory, so that no request and no restart sees half a
// job.
func (j *Jobs) moveAway(id app.JobID, trash string) (isLeased bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.root.Rename(JobDir(id), trash); err != nil {
		return false, err
	}
	one, isLeased := j.leased[id]
	if isLeased {
		one.trash = trash
		j.leased[id] = one
	}
	return isLeased, nil
}
