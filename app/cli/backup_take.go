package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"molrun/app/fault"
	"molrun/blobs"
	"molrun/storage/kv"
)

// taking is a backup on its way.
type taking struct {
	*backups
	view *view
	deep bool // read again what is linked

	before     string            // the newest finished backup, "" if none
	beforeSums map[string]string // its files
	sums       *sumsWriter
	record     backupRecord
	digests    *digester
}

// take makes a backup. Where it is cut short, what is there by then saves the
// next one from copying it again.
func take(ctx context.Context, b *backups, v *view, info kv.Info, deep bool) (*backupRecord, error) {
	t := &taking{backups: b, view: v, deep: deep, digests: newDigester()}
	t.record = backupRecord{
		Format: backupFormat, Database: info.ID, Schema: info.Schema, Commit: info.Commit,
		TakenAt: v.taken.UTC(), Program: versionText(), Problems: []string{},
	}
	if err := t.begin(); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{t.database, t.files, t.finish} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, t.sums.close())
		}
	}
	return &t.record, nil
}

// begin finds the backup before and makes room for this one.
func (t *taking) begin() error {
	names, err := t.names()
	if err != nil {
		return err
	}
	if len(names) > 0 {
		last := names[len(names)-1]
		if _, sums, err := t.read(last); err == nil {
			t.before, t.beforeSums = last, sums
		} else {
			t.problemf("the backup before can't be used: %v", err)
		}
	}
	if err := os.MkdirAll(t.path(partialDir, backupData), 0o700); err != nil {
		return err
	}
	t.sums, err = createSums(t.path(partialDir, sumsFile))
	return err
}

// database puts down the records, if they can be read.
func (t *taking) database(ctx context.Context) error {
	report, err := t.view.records.Check(ctx)
	if err != nil {
		return err
	}
	if !report.Readable {
		return fault.Errorf(fault.Internal, "the database is damaged (%s), so no backup was made; keep the earlier ones and run molrun check", report.First[0].Text)
	}
	if report.Count > 0 {
		t.problemf("the database disagrees with itself in %d places; run molrun check", report.Count)
	}
	t.record.Jobs, t.record.Uploads = report.Jobs, report.Uploads
	file := t.path(partialDir, backupData, databaseName)
	if err := t.view.records.CopyTo(ctx, file); err != nil {
		return err
	}
	sum, size, err := t.digests.path(ctx, file)
	if err != nil {
		return err
	}
	return t.count(databaseName, sum, size, &t.record.Copied)
}

func (t *taking) files(ctx context.Context) error {
	for f, err := range t.view.inventory(ctx) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			t.problemf("%v", err)
			continue
		}
		if err := t.file(ctx, f); err != nil {
			return fmt.Errorf("back up %s: %w", f.Path, err)
		}
	}
	return nil
}

// file puts one file into the backup: by a link to the backup before, as what
// an unfinished backup has left, or as a copy.
func (t *taking) file(ctx context.Context, f blobs.File) error {
	for _, way := range []func(context.Context, blobs.File) (bool, error){t.link, t.keep} {
		if done, err := way(ctx, f); done || err != nil {
			return err
		}
	}
	return t.copy(ctx, f)
}

// link takes the file of the backup before, where that is the same.
func (t *taking) link(ctx context.Context, f blobs.File) (bool, error) {
	sum := t.beforeSums[path.Join(backupData, f.Path)]
	if sum == "" || f.SHA256 != "" && sum != f.SHA256 {
		return false, nil
	}
	old := t.path(t.before, backupData, f.Path)
	info, err := os.Lstat(old)
	if err != nil || !info.Mode().IsRegular() || f.Size >= 0 && info.Size() != f.Size {
		return false, nil
	}
	if f.SHA256 == "" { // nothing but the live file can tell
		live, err := t.view.files.Stat(f.Path)
		if err != nil || live.Size() != info.Size() || !live.ModTime().Equal(info.ModTime()) {
			return false, nil
		}
	}
	if t.deep {
		switch found, _, err := t.digests.path(ctx, old); {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case err != nil || found != sum:
			t.problemf("backup %s has a damaged %s; it was copied anew", t.before, f.Path)
			return false, nil
		}
	}
	file, err := t.place(f.Path)
	if err != nil {
		return false, err
	}
	if err := errors.Join(removeFile(file), os.Link(old, file)); err != nil {
		return false, nil // as where links are not to be had: copy
	}
	return true, t.count(f.Path, sum, info.Size(), &t.record.Linked)
}

// keep takes what an unfinished backup has left, if it is what it has to be.
func (t *taking) keep(ctx context.Context, f blobs.File) (bool, error) {
	file := t.path(partialDir, backupData, f.Path)
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || f.SHA256 == "" || info.Size() != f.Size {
		return false, nil
	}
	sum, size, err := t.digests.path(ctx, file)
	if err != nil {
		return false, err
	}
	if sum != f.SHA256 {
		return false, nil
	}
	return true, t.count(f.Path, sum, size, &t.record.Linked)
}

// copy copies the live file. One that is damaged is better than none, and both
// are told.
func (t *taking) copy(ctx context.Context, f blobs.File) error {
	from, info, err := t.view.files.Open(f.Path)
	if err != nil {
		if !f.Changing || !errors.Is(err, os.ErrNotExist) {
			t.problemf("%v", err)
		}
		return nil
	}
	defer from.Close()
	file, err := t.place(f.Path)
	if err != nil {
		return err
	}
	sum, size, err := t.digests.copy(ctx, file, from)
	if err == nil {
		err = os.Chtimes(file, info.ModTime(), info.ModTime())
	}
	if err != nil {
		return err
	}
	if why := differs(f, sum, size); why != "" {
		t.problemf("%s %s", f.Path, why)
	}
	return t.count(f.Path, sum, size, &t.record.Copied)
}

// differs says how a file is not what its record says, "" if it is.
func differs(f blobs.File, sum string, size int64) string {
	switch {
	case f.Size >= 0 && size != f.Size:
		return fmt.Sprintf("has %d bytes, its record says %d", size, f.Size)
	case f.SHA256 != "" && sum != f.SHA256:
		return "has other bytes than were stored: its SHA-256 differs from its record's"
	}
	return ""
}

// place gives the path of a file of this backup, with its folder made.
func (t *taking) place(name string) (string, error) {
	file := t.path(partialDir, backupData, filepath.FromSlash(name))
	return file, os.MkdirAll(filepath.Dir(file), 0o700)
}

func (t *taking) count(name, sum string, size int64, how *int64) error {
	t.record.Files++
	t.record.Bytes += size
	*how += size
	return t.sums.add(path.Join(backupData, name), sum)
}

// maxBackupProblems bounds what is told in words.
const maxBackupProblems = 1000

func (t *taking) problemf(format string, args ...any) {
	if len(t.record.Problems) < maxBackupProblems {
		t.record.Problems = append(t.record.Problems, fmt.Sprintf(format, args...))
	}
}

// finish makes everything durable and only then gives the backup its name.
func (t *taking) finish(ctx context.Context) (err error) {
	if t.record.Sums, err = t.sums.finish(); err != nil {
		return err
	}
	if err := t.prune(); err != nil {
		return err
	}
	if t.record.Name, err = t.freeName(t.record.TakenAt); err != nil {
		return err
	}
	if err := writeJSON(t.path(partialDir, backupFile), t.record); err != nil {
		return err
	}
	if err := syncFolders(t.path(partialDir)); err != nil {
		return err
	}
	if ctx.Err() != nil { // a hold that ended: files may have been removed
		return context.Cause(ctx)
	}
	if err := os.Rename(t.path(partialDir), t.path(t.record.Name)); err != nil {
		return err
	}
	return syncFolder(t.dir)
}

// prune removes from an unfinished backup that was gone on with what is no
// longer part of it.
func (t *taking) prune() error {
	sums, _, err := readSums(t.path(partialDir, sumsFile))
	if err != nil {
		return err
	}
	top := t.path(partialDir)
	return eachFile(t.path(partialDir, backupData), func(file string) error {
		name, err := filepath.Rel(top, file)
		if err != nil || sums[filepath.ToSlash(name)] != "" {
			return err
		}
		return os.Remove(file)
	})
}

func removeFile(path string) error {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
