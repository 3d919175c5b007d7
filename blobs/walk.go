package blobs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"molrun/app"
	"molrun/app/base/sortid"
	"molrun/blobs/result"
)

// visitor holds the functions that walk calls with each path found.
type visitor struct {
	upload  func(name string, e fs.DirEntry, id app.UploadID, generation int) error
	partial func(name string, e fs.DirEntry, id app.UploadID, generation int) error
	job     func(name string, e fs.DirEntry, id app.JobID) error
	other   func(name string) // a name that this package never creates; can be nil
}

// skip skips a name that this package never creates.
func (v visitor) skip(name string) error {
	if v.other != nil {
		v.other(name)
	}
	return nil
}

// walk visits every generation of an upload, every partial file and every job's
// directory. An error of one visit does not prevent the others.
func (v visitor) walk(ctx context.Context, root *os.Root) error {
	uploads := eachEntry(ctx, root, uploadsDir, func(dir string, shard fs.DirEntry) error {
		if dir == tmpDir {
			return nil
		}
		if !shard.IsDir() {
			return v.skip(dir)
		}
		visit := v.upload
		if dir == partialDir {
			visit = v.partial
		}
		return eachEntry(ctx, root, dir, func(name string, e fs.DirEntry) error {
			id, number, _ := strings.Cut(e.Name(), ".") // as joined by uploadName
			generation, err := strconv.Atoi(number)
			if err != nil || strconv.Itoa(generation) != number {
				return v.skip(name)
			}
			if _, err := sortid.Parse(id); err != nil {
				return v.skip(name)
			}
			return visit(name, e, app.UploadID(id), generation)
		})
	})
	jobs := eachEntry(ctx, root, result.JobsDir, func(name string, e fs.DirEntry) error {
		if _, err := sortid.Parse(e.Name()); err != nil {
			return v.skip(name)
		}
		return v.job(name, e, app.JobID(e.Name()))
	})
	return errors.Join(uploads, jobs)
}

// entriesAtOnce is the number of directory entries read at a time.
const entriesAtOnce = 1024

// eachEntry visits the entries of a directory, which can be missing, with their paths. An
// error of one visit does not prevent the others.
func eachEntry(ctx context.Context, root *os.Root, dir string, visit func(name string, e fs.DirEntry) error) error {
	f, err := root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var all error
	for {
		entries, err := f.ReadDir(entriesAtOnce)
		for _, e := range entries {
			if ctx.Err() != nil {
				return errors.Join(ctx.Err(), f.Close())
			}
			all = errors.Join(all, visit(path.Join(dir, e.Name()), e))
		}
		if len(entries) == 0 {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(all, err, f.Close())
		}
	}
}
