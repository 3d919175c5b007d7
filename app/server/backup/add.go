package backup

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"

	"molrun/app/server/snapshot"
	"molrun/blobs"
)

// addFile adds a file to the backup: as a link to the previous backup, as a copy left by
// an unfinished backup, or as a new copy.
func (t *taking) addFile(ctx context.Context, f blobs.File) error {
	for _, way := range []func(context.Context, blobs.File) (bool, error){t.link, t.keepUnfinished} {
		if done, err := way(ctx, f); done || err != nil {
			return err
		}
	}
	return t.copy(ctx, f)
}

// link links to the previous backup's file if it is the same.
func (t *taking) link(ctx context.Context, f blobs.File) (bool, error) {
	sum := t.previousSums[path.Join(dataDir, f.Path)]
	if sum == "" || f.SHA256 != "" && sum != f.SHA256 {
		return false, nil
	}
	old := t.path(t.previous, dataDir, f.Path)
	info, err := os.Lstat(old)
	if err != nil || !info.Mode().IsRegular() || f.Size >= 0 && info.Size() != f.Size {
		return false, nil
	}
	if f.SHA256 == "" { // only the live file can confirm it
		live, err := t.snapshot.Files.Stat(f.Path)
		if err != nil || live.Size() != info.Size() || !live.ModTime().Equal(info.ModTime()) {
			return false, nil
		}
	}
	if t.deep {
		switch found, _, err := t.digests.File(ctx, old); {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case err != nil || found != sum:
			t.problemf("backup %s has a damaged %s; copied it again", t.previous, f)
			return false, nil
		}
	}
	file, err := t.pathFor(f.Path)
	if err != nil {
		return false, err
	}
	if err := errors.Join(removeIfExists(file), os.Link(old, file)); err != nil {
		return false, nil // for example, the file system does not support hard links; copy instead
	}
	if err := t.compare(ctx, f, sum, file, info); err != nil {
		return false, err
	}
	return true, t.count(f.Path, sum, info.Size(), &t.record.Linked)
}

// keepUnfinished reuses a copy left by an unfinished backup if its digest is correct.
func (t *taking) keepUnfinished(ctx context.Context, f blobs.File) (bool, error) {
	file := t.path(partialDir, dataDir, f.Path)
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || f.SHA256 == "" || info.Size() != f.Size {
		return false, nil
	}
	sum, size, err := t.digests.File(ctx, file)
	if err != nil {
		return false, err
	}
	if sum != f.SHA256 {
		return false, nil
	}
	if err := t.compare(ctx, f, sum, file, info); err != nil {
		return false, err
	}
	return true, t.count(f.Path, sum, size, &t.record.Linked)
}

// copy copies the live file. A damaged file is reported but still copied, since it is
// better than none.
func (t *taking) copy(ctx context.Context, f blobs.File) error {
	from, info, err := t.snapshot.Files.Open(f.Path)
	if err != nil {
		if !f.Changing || !errors.Is(err, os.ErrNotExist) {
			t.problemf("%v", err)
		}
		return nil
	}
	defer from.Close()
	file, err := t.pathFor(f.Path)
	if err != nil {
		return err
	}
	sum, size, err := t.digests.Copy(ctx, file, from)
	if err == nil {
		err = os.Chtimes(file, info.ModTime(), info.ModTime())
	}
	if err != nil {
		return err
	}
	if why := snapshot.Mismatch(f, sum, size); why != "" {
		t.problemf("%s %s", f, why)
	}
	return t.count(f.Path, sum, size, &t.record.Copied)
}

// pathFor returns the path of a file of this backup and creates its directory.
func (t *taking) pathFor(name string) (string, error) {
	file := t.path(partialDir, dataDir, filepath.FromSlash(name))
	return file, os.MkdirAll(filepath.Dir(file), 0o700)
}

// count records a file; how is the counter for the way it was added.
func (t *taking) count(name, sum string, size int64, how *int64) error {
	t.record.Files++
	t.record.Bytes += size
	*how += size
	return t.sums.Add(path.Join(dataDir, name), sum)
}
