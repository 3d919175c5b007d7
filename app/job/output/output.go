// Package output shows the output of jobs: their files, in all statuses, the views
// defined by their algorithm files, links to results and archives, and shares, which show
// a result to people without an API key.
//
// The files of a COMPLETED job are its result. Those of a RUNNING or FAILED job are the
// current output directory of the latest attempt; a failed job's directory is removed
// after some time.
//
// A share ends when it expires or is revoked, when its job is deleted, and when the API
// key that created it is disabled, deleted or expires; the successor of a rotated key
// takes its place. The response does not reveal why a share has ended, or whether it ever
// existed.
package output

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/limit"
	"molrun/app/job/listing"
)

// Outputs shows the output of jobs. It is safe for concurrent use.
type Outputs struct {
	store      app.Store
	blobs      app.Blobs
	jobs       *app.Jobs
	algorithms *app.Algorithms
	cursors    listing.CursorKey
	readers    *limit.Slots // by API key
}

// NewOutputs returns the outputs of a service's jobs, whose records are in store and
// whose files are in blobs. The key of at least 32 bytes signs cursors of tables.
func NewOutputs(store app.Store, blobs app.Blobs, svc *app.Service, cursors listing.CursorKey) *Outputs {
	return &Outputs{store, blobs, svc.Jobs, svc.Algorithms, cursors, newReaders(max(2, runtime.NumCPU()))}
}

// fileSource is the source of a job's files: its manifest if it is completed, and
// otherwise its output directory, if it has one.
type fileSource struct {
	job      *app.Job
	manifest *app.Manifest
	live     *liveOutput
}

// visit finds the files of a job and calls fn with them. It retries up to three times if
// fn found nothing and the job has changed since it was read.
func (o *Outputs) visit(ctx context.Context, by app.Caller, name string, fn func(fileSource) error) error {
	for attempt := 0; ; attempt++ {
		j, err := o.jobs.Named(ctx, by, name)
		if err != nil {
			return err
		}
		err = o.withSource(j, fn)
		if attempt == 3 || !errors.Is(err, fault.NotFound) && !errors.Is(err, fault.OutputRemoved) {
			return err
		}
		now, changed := o.jobs.Named(ctx, by, name)
		if changed != nil || now.ID != j.ID || now.Status == j.Status && now.Attempts == j.Attempts {
			return err
		}
	}
}

func (o *Outputs) withSource(j *app.Job, fn func(fileSource) error) (err error) {
	s := fileSource{job: j}
	switch {
	case j.IsBatch():
	case j.Status == app.Queued:
		return fault.Errorf(fault.JobNotCompleted, "job %q is QUEUED; it has no files until it runs", j.Name)
	case j.Status == app.Completed:
		if s.manifest, err = o.blobs.Manifest(j.ID); err != nil {
			return err
		}
	default:
		if s.live, err = openLiveOutput(o.blobs.JobDir(j.ID), o.attemptDir(j)); err != nil {
			return o.missing(j, err)
		}
		defer s.live.Close()
	}
	return fn(s)
}

func (o *Outputs) attemptDir(j *app.Job) string {
	return filepath.Join(o.blobs.JobDir(j.ID), strconv.Itoa(j.Attempts))
}

// missing returns the error for a job without an output directory.
func (o *Outputs) missing(j *app.Job, err error) error {
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case j.Status == app.Failed && j.StartedAt.IsZero():
		return fault.Errorf(fault.NotFound, "job %q never ran, so it has no files", j.Name)
	case j.Status == app.Failed:
		return fault.Errorf(fault.OutputRemoved, "the files of job %q were removed some time after it failed; retry it to create them again", j.Name)
	}
	return fault.Errorf(fault.NotFound, "the files of job %q are being moved; try again in a moment", j.Name)
}

// row resolves a path to a job: the row of the batch that the path begins with, or
// otherwise the job itself.
func (o *Outputs) row(ctx context.Context, by app.Caller, name, path string) (job, below string, err error) {
	j, err := o.jobs.Named(ctx, by, name)
	if err != nil || !j.IsBatch() {
		return name, path, err
	}
	row, below, _ := strings.Cut(path, "/")
	r, err := o.jobs.Named(ctx, by, row)
	if err != nil || r.Private.Batch != j.ID || below == "" {
		return "", "", fault.Errorf(fault.NotFound, "batch %q has no file %q; write it as <jobName>/<path>", name, path)
	}
	return r.Name, below, nil
}

// File is an open file of a job.
type File struct {
	*os.File
	Path       string // as shown to clients
	Size       int64  // when it was opened
	ETag       string
	Incomplete bool // the job is running
}

// OpenFile opens a file of a job. In a batch, <row>/<path> is a file of a row.
func (o *Outputs) OpenFile(ctx context.Context, by app.Caller, name, path string) (f *File, err error) {
	if name, path, err = o.row(ctx, by, name, path); err != nil {
		return nil, err
	}
	err = o.visit(ctx, by, name, func(s fileSource) (err error) {
		f, err = o.openFrom(s, path)
		return err
	})
	return f, err
}

func (o *Outputs) openFrom(s fileSource, path string) (*File, error) {
	f, err := s.openLive(path)
	if s.manifest != nil {
		f, err = o.openResult(s, path)
	}
	if errors.Is(err, fs.ErrNotExist) && s.job.Status == app.Running {
		return nil, fault.Errorf(fault.NotFound, "job %q is RUNNING and has no file %q yet; GET /jobs/{jobName}/files lists the files written so far", s.job.Name, path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Errorf(fault.NotFound, "job %q has no file %q; GET /jobs/{jobName}/files lists them", s.job.Name, path)
	}
	return f, err
}

func (s fileSource) openLive(path string) (*File, error) {
	if s.live == nil {
		return nil, fs.ErrNotExist
	}
	f, info, err := s.live.file(path)
	if err != nil {
		return nil, err
	}
	// Weak: a file can change twice without a different time or size.
	etag := `W/"` + strconv.FormatUint(info.Ino, 36) + "-" + strconv.FormatInt(info.Size, 36) + "-" + strconv.FormatInt(info.Mtim.Nano(), 36) + `"`
	return &File{f, path, info.Size, etag, s.job.Status == app.Running}, nil
}

// openResult opens a file of a completed job, which never changes.
func (o *Outputs) openResult(s fileSource, path string) (*File, error) {
	i := s.manifest.Find(path)
	if i < 0 {
		return nil, fs.ErrNotExist
	}
	entry := s.manifest.Files[i]
	dir, err := os.OpenRoot(o.blobs.JobDir(s.job.ID))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.OpenFile(filepath.FromSlash(entry.Path), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() != entry.Size) {
		err = fmt.Errorf("%s of job %s does not match its manifest", entry.Path, s.job.ID)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{f, path, entry.Size, `"` + entry.SHA256 + `"`, false}, nil
}
