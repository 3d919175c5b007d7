package remote

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"molrun/app/base/naming"
	"molrun/app/base/unit"
	"molrun/app/cli/terminal"
	"molrun/app/client"
)

// uploadsAtOnce is the number of concurrent uploads.
const uploadsAtOnce = 4

// SendFiles ensures that the service has the contents of the local files, under any name,
// and returns the uploads in order. Missing files are uploaded to folder.
func (s *session) SendFiles(ctx context.Context, paths []string, folder string) ([]sentFile, error) {
	return s.upload(ctx, paths, folder, anywhere)
}

// PutFiles uploads local files to a folder. With ifChanged, it skips files that are
// already there.
func (s *session) PutFiles(ctx context.Context, paths []string, folder string, ifChanged bool) ([]sentFile, error) {
	if ifChanged {
		return s.upload(ctx, paths, folder, there)
	}
	return s.upload(ctx, paths, folder, always)
}

// uploadNeed says when a file must be uploaded.
type uploadNeed int

const (
	anywhere uploadNeed = iota // unless the service has its contents
	there                      // unless this folder has it under this name
	always
)

func (s *session) upload(ctx context.Context, paths []string, folder string, need uploadNeed) ([]sentFile, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	locals, err := s.examine(ctx, paths)
	if err != nil {
		return nil, err
	}
	bars := s.NewBars()
	defer bars.Close()
	u := &uploading{s: s, folder: folder, need: need, all: bars.Bytes(unit.Count(len(paths), "file"), totalSize(locals)), done: map[string]int64{}}
	files := make([]sentFile, len(paths))
	err = inParallel(ctx, len(paths), func(ctx context.Context, i int) error {
		f, err := u.uploadOne(ctx, locals[i])
		files[i] = sentFile{f}
		return err
	})
	if err != nil {
		return nil, err
	}
	u.all.End()
	bars.Close()
	s.Notef("uploaded %s, %s; the service had %s already", unit.Count(u.sent, "file"), terminal.Size(u.bytes), unit.Count(len(paths)-u.sent, "file"))
	return files, nil
}

func totalSize(locals []client.Local) (n int64) {
	for _, l := range locals {
		n += l.Size
	}
	return n
}

func (s *session) examine(ctx context.Context, paths []string) ([]client.Local, error) {
	locals := make([]client.Local, len(paths))
	err := inParallel(ctx, len(paths), func(ctx context.Context, i int) (err error) {
		locals[i], err = client.Digest(ctx, paths[i])
		return err
	})
	return locals, err
}

// uploading uploads files. Files with equal contents wait for each other, so that none is
// uploaded twice.
type uploading struct {
	s      *session
	folder string
	need   uploadNeed
	all    *terminal.Transfer

	mu    sync.Mutex
	same  map[string]*sync.Mutex
	done  map[string]int64 // path to bytes sent
	at    int64
	sent  int
	bytes int64
}

func (u *uploading) uploadOne(ctx context.Context, l client.Local) (f *client.File, err error) {
	same := u.lock(l.SHA256)
	same.Lock()
	defer same.Unlock()
	sent := false
	err = retryRateLimited(ctx, func() (err error) {
		f, sent, err = u.sendIfNeeded(ctx, l)
		return err
	})
	if sent && err == nil {
		u.mu.Lock()
		u.sent++
		u.bytes += l.Size
		u.mu.Unlock()
	}
	return f, err
}

func (u *uploading) sendIfNeeded(ctx context.Context, l client.Local) (f *client.File, sent bool, err error) {
	name, progress := naming.Composed(filepath.Base(l.Path)), func(done int64) { u.showProgress(l.Path, done) }
	if u.need != always {
		f, sent, err = u.s.API.UploadOnce(ctx, u.folder, name, l, progress)
		folder := naming.Composed(cmp.Or(u.folder, "inputs"))
		if err != nil || sent || u.need == anywhere || f.Filename == name && f.Folder == folder {
			return f, sent, err
		}
	}
	f, err = u.s.API.UploadAgain(ctx, u.folder, name, l, progress)
	return f, true, err
}

func (u *uploading) lock(digest string) *sync.Mutex {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.same == nil {
		u.same = map[string]*sync.Mutex{}
	}
	if u.same[digest] == nil {
		u.same[digest] = new(sync.Mutex)
	}
	return u.same[digest]
}

func (u *uploading) showProgress(path string, done int64) {
	u.mu.Lock()
	u.at += done - u.done[path]
	u.done[path] = done
	at := u.at
	u.mu.Unlock()
	u.all.At(at)
}

// longestRetryWait is the maximum wait before a rate-limited request is retried.
const longestRetryWait = time.Minute

// retryDelay reports whether the service has limited the request rate, and how long to
// wait.
func retryDelay(err error) (time.Duration, bool) {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != "RATE_LIMITED" {
		return 0, false
	}
	return min(max(refused.After, time.Second), longestRetryWait), true
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inParallel runs do for 0 to n-1, a few at a time, until one fails.
func inParallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(uploadsAtOnce, n) {
		workers.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
feed:
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// retryRateLimited retries a request as long as the service rejects it for exceeding the
// rate limit.
func retryRateLimited(ctx context.Context, do func() error) error {
	for {
		err := do()
		wait, busy := retryDelay(err)
		if !busy {
			return err
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// sentFile is the upload of a local file.
type sentFile struct {
	*client.File
}

// Reference refers to the file in settings by its digest, under its local name. The same
// file always gives the same settings, and so the same job, however often it was
// uploaded.
func (f sentFile) Reference(path string) string {
	return naming.OfDigest(f.SHA256, naming.Composed(filepath.Base(path)))
}
