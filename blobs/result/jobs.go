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

// Jobs manages the directories of jobs. A download leases the directories that it reads.
// If a job is removed during a lease, its directory remains readable to that download
// only.
type Jobs struct {
	root   *os.Root // the data directory
	delete func(dir string) error

	mu     sync.RWMutex
	leased map[app.JobID]leased
}

// leased is a directory that downloads are reading.
type leased struct {
	count int
	trash string // its new path if the job was removed, otherwise ""
}

// NewJobs returns the directories of the jobs in the data directory root. It deletes the
// directory of a removed job with delete.
func NewJobs(root *os.Root, delete func(dir string) error) *Jobs {
	return &Jobs{root: root, delete: delete, leased: make(map[app.JobID]leased)}
}

// Lease keeps directories readable until it ends.
type Lease struct {
	jobs *Jobs
	ids  []app.JobID
}

// Lease leases the directories of the given jobs. It returns NotFound if one of them has
// been removed.
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

// check returns an error if a job was removed before the lease began. Without it, a
// download whose layout is cached would start and then abort.
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

// End ends the lease. It deletes the directories of removed jobs that have no other
// leases.
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
	j.mu.RLock() // Remove must not move it until it is open
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

// dir returns the current path of a job's directory.
func (j *Jobs) dir(id app.JobID) string {
	if trash := j.leased[id].trash; trash != "" {
		return trash
	}
	return JobDir(id)
}

// Remove moves the directory of a job to trash and deletes it there, immediately or when
// its last lease ends. A missing directory is not an error.
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

// moveAway renames the directory, so that no request and no restart sees a partial job.
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
