package blobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"molrun/app"
)

// sweepAge is how old something has to be before Sweep takes it for left
// behind, not for on its way into a record.
const sweepAge = 24 * time.Hour

// Sweep removes what no record names and tells how many things those were:
// temporary files and trash of earlier processes, and uploads' generations
// and jobs' directories that are a day old and unknown. It may run while
// requests are served. Names that this package never makes are left alone.
func (d *Dir) Sweep(
	ctx context.Context,
	uploadKnown func(id app.UploadID, generation int) bool,
	jobKnown func(id app.JobID) bool,
) (removed int, err error) {
	s := &sweep{dir: d, ctx: ctx, before: d.options.Now().Add(-sweepAge)}
	err = errors.Join(
		s.leftovers(tmpDir, d.root.Remove),
		s.leftovers(trashDir, d.removeAll),
		s.uploads(uploadKnown),
		s.jobs(jobKnown),
	)
	if err != nil {
		err = fmt.Errorf("sweep: %w", err)
	}
	return s.removed, err
}

type sweep struct {
	dir     *Dir
	ctx     context.Context
	before  time.Time
	removed int
}

// leftovers removes what earlier processes left in a directory of temporary
// things.
func (s *sweep) leftovers(dir string, remove func(string) error) error {
	return s.each(dir, func(e fs.DirEntry) error {
		if strings.HasPrefix(e.Name(), s.dir.run) {
			return nil
		}
		return s.count(remove(path.Join(dir, e.Name())))
	})
}

func (s *sweep) uploads(known func(app.UploadID, int) bool) error {
	return s.each(uploadsDir, func(shard fs.DirEntry) error {
		name := path.Join(uploadsDir, shard.Name())
		if name == tmpDir || !shard.IsDir() {
			return nil
		}
		return s.each(name, func(e fs.DirEntry) error {
			id, generation, ok := parseUploadName(e.Name())
			if !ok || !s.old(e) || known(id, generation) {
				return nil
			}
			return s.count(s.dir.RemoveUpload(id, generation))
		})
	})
}

func (s *sweep) jobs(known func(app.JobID) bool) error {
	return s.each(jobsDir, func(e fs.DirEntry) error {
		id := app.JobID(e.Name())
		if _, err := app.ParseID(e.Name()); err != nil || !s.old(e) || known(id) {
			return nil
		}
		return s.count(s.dir.RemoveJob(id))
	})
}

// sweepPiece is how many names of a directory are in memory at once.
const sweepPiece = 1024

// each visits the entries of a directory, piece by piece. One that can't be
// removed does not keep the others.
func (s *sweep) each(dir string, visit func(fs.DirEntry) error) error {
	f, err := s.dir.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	var all error
	for {
		entries, err := f.ReadDir(sweepPiece)
		for _, e := range entries {
			if s.ctx.Err() != nil {
				return errors.Join(s.ctx.Err(), f.Close())
			}
			all = errors.Join(all, visit(e))
		}
		if len(entries) == 0 {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(all, err, f.Close())
		}
	}
}

// old reports whether the entry has not changed for long. What vanished
// meanwhile is not old.
func (s *sweep) old(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && info.ModTime().Before(s.before)
}

func (s *sweep) count(err error) error {
	if err == nil {
		s.removed++
	}
	return err
}

// parseUploadName reads <fileId>.<generation> as uploadName writes it.
func parseUploadName(name string) (app.UploadID, int, bool) {
	id, number, _ := strings.Cut(name, ".")
	generation, err := strconv.Atoi(number)
	if err != nil || strconv.Itoa(generation) != number {
		return "", 0, false
	}
	_, err = app.ParseID(id)
	return app.UploadID(id), generation, err == nil
}
