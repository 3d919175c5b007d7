package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"molrun/app/base/digest"
	"molrun/app/base/durable"
	"molrun/app/base/fault"
	"molrun/app/server/config"
	"molrun/app/server/host"
	"molrun/app/server/snapshot"
	"molrun/storage/kv"
)

// Options configures a backup.
type Options struct {
	Dir     Dir
	Deep    bool   // reread and compare files of the previous backup before linking
	Program string // version of the program

	// Keep is the rule for which backups to keep afterwards, if this one has no problems.
	Keep   config.Keep
	Pruned func(names []string) // called with the removed backups; optional
}

// TakeBackup takes a backup of the data directory.
func TakeBackup(ctx context.Context, config config.Config, o Options) (record *Record, err error) {
	if err := refuseWithin(string(o.Dir), config.Data); err != nil {
		return nil, err
	}
	err = snapshot.WithSnapshot(ctx, config, func(ctx context.Context, s *snapshot.Snapshot) (err error) {
		info, err := s.Records.Info()
		if err != nil {
			return err
		}
		unlock, err := o.Dir.lock(info.ID)
		if err != nil {
			return err
		}
		record, err = takeFrom(ctx, o, s, info)
		if err == nil && len(record.Problems) == 0 && len(record.Damaged) == 0 {
			err = o.prune()
		}
		if closeErr := unlock(); err == nil {
			err = closeErr
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("back up %s: %w", config.Data, err)
	}
	return record, nil
}

// prune removes the backups that are no longer kept.
func (o *Options) prune() error {
	removed, err := o.Dir.Prune(o.Keep)
	if len(removed) > 0 && o.Pruned != nil {
		o.Pruned(removed)
	}
	if err != nil {
		return fmt.Errorf("remove old backups: %w", err)
	}
	return nil
}

// taking is a backup in progress.
type taking struct {
	Dir
	snapshot *snapshot.Snapshot
	deep     bool

	previous     string            // newest finished backup, or "" if none
	previousSums map[string]string // digests of the files in the previous backup
	sums         *digest.SumsWriter
	record       Record
	digests      *digest.Digester
}

// takeFrom takes a backup. If it is interrupted, the next one reuses the files copied so
// far.
func takeFrom(ctx context.Context, o Options, s *snapshot.Snapshot, info kv.Info) (*Record, error) {
	t := &taking{Dir: o.Dir, snapshot: s, deep: o.Deep, digests: digest.New()}
	t.record = Record{
		Format: format, Database: info.ID, Schema: info.Schema, Commit: info.Commit,
		TakenAt: s.Taken.UTC(), Program: o.Program, Problems: []string{}, Damaged: []string{},
	}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{t.copyDatabase, t.copyFiles, t.finish} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, t.sums.Close())
		}
	}
	return &t.record, nil
}

// prepare finds the previous backup and creates the directory of this one.
func (t *taking) prepare() error {
	names, err := t.Names()
	if err != nil {
		return err
	}
	if len(names) > 0 {
		last := names[len(names)-1]
		if _, sums, err := t.readRecord(last); err == nil {
			t.previous, t.previousSums = last, sums
		} else {
			t.problemf("the previous backup is unusable: %v", err)
		}
	}
	if err := os.MkdirAll(t.path(partialDir, dataDir), 0o700); err != nil {
		return err
	}
	t.sums, err = digest.CreateSums(t.path(partialDir, sumsFile))
	return err
}

// copyDatabase copies the records, if they can be read.
func (t *taking) copyDatabase(ctx context.Context) error {
	report, err := t.snapshot.Records.Check(ctx)
	if err != nil {
		return err
	}
	if !report.Readable {
		return fault.Errorf(fault.Internal, "no backup was made because the database is damaged (%s); keep the earlier backups and run molrun check", report.Problems[0].Text)
	}
	if report.Count > 0 {
		t.problemf("the database has %d inconsistencies; run molrun check", report.Count)
	}
	t.record.Jobs, t.record.Uploads = report.Jobs, report.Uploads
	file := t.path(partialDir, dataDir, host.Database)
	if err := t.snapshot.Records.CopyTo(ctx, file); err != nil {
		return err
	}
	sum, size, err := t.digests.File(ctx, file)
	if err != nil {
		return err
	}
	return t.count(host.Database, sum, size, &t.record.Copied)
}

func (t *taking) copyFiles(ctx context.Context) error {
	for f, err := range t.snapshot.Inventory(ctx) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			t.problemf("%v", err)
			continue
		}
		if err := t.addFile(ctx, f); err != nil {
			return fmt.Errorf("back up %s: %w", f.Path, err)
		}
	}
	return nil
}

// maxProblems limits the number of problems listed in a record.
const maxProblems = 1000

func (t *taking) problemf(format string, args ...any) {
	if len(t.record.Problems) < maxProblems {
		t.record.Problems = append(t.record.Problems, fmt.Sprintf(format, args...))
	}
}

// finish makes everything durable, and only then renames the backup to its final name.
func (t *taking) finish(ctx context.Context) (err error) {
	if t.record.Sums, err = t.sums.Finish(); err != nil {
		return err
	}
	if err := t.prune(); err != nil {
		return err
	}
	if t.record.Name, err = t.freeName(t.record.TakenAt); err != nil {
		return err
	}
	if err := writeJSON(t.path(partialDir, recordFile), t.record); err != nil {
		return err
	}
	if err := syncTree(t.path(partialDir)); err != nil {
		return err
	}
	if ctx.Err() != nil { // the snapshot has ended: files could have been removed
		return context.Cause(ctx)
	}
	if err := os.Rename(t.path(partialDir), t.path(t.record.Name)); err != nil {
		return err
	}
	return durable.SyncFolder(string(t.Dir))
}

// prune removes files left by an earlier unfinished backup that this one does not
// include.
func (t *taking) prune() error {
	sums, _, err := digest.ReadSums(t.path(partialDir, sumsFile))
	if err != nil {
		return err
	}
	top := t.path(partialDir)
	return filepath.WalkDir(t.path(partialDir, dataDir), func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(top, file)
		if err != nil || sums[filepath.ToSlash(name)] != "" {
			return err
		}
		return os.Remove(file)
	})
}
