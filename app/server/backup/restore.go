package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"molrun/app/base/digest"
	"molrun/app/base/durable"
	"molrun/app/base/fault"
	"molrun/app/server/check"
	"molrun/app/server/config"
	"molrun/app/server/host"
	"molrun/storage/kv/boltfile"
)

// A data directory is restored into its subdirectory restoring. Once everything is there
// and checked, a file records this, and the restored files are moved up, the database
// last. Until then, the marker of the missing database keeps the service from starting.
const (
	restoringDir = "restoring"
	restoredFile = "complete"
)

// Restore specifies what to restore.
type Restore struct {
	Dir         Dir
	Config      config.Config // configuration of the new data directory
	Name        string        // name of the backup; "" means the newest
	SkipDamaged bool          // omit damaged files

	FinishLost FinishLost
	linked     bool // hard-link uploads and results to the backup where possible
}

// FinishLost ends the attempts that were running when the backup was taken, in the
// restored data directory, and returns how many of their jobs were requeued and how many
// failed.
type FinishLost func(context.Context, config.Config) (requeued, lost int, err error)

// Restored is the result of a restore.
type Restored struct {
	Backup   string    `json:"backup"`
	TakenAt  time.Time `json:"takenAt"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	Requeued int       `json:"requeued"` // running jobs that were queued again
	Lost     int       `json:"lost"`     // running jobs that are now FAILED
	Problems []string  `json:"problems"`
}

// Restore creates the data directory, or finishes an interrupted restore.
func (o *Restore) Restore(ctx context.Context) (*Restored, error) {
	name, err := o.choose()
	if err != nil {
		return nil, err
	}
	record, sums, err := o.Dir.readRecord(name)
	if err != nil {
		return nil, err
	}
	data := o.Config.Data
	if err := durable.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(data, "another restore is in progress; wait until it is done")
	if err != nil {
		return nil, err
	}
	r, err := o.into(ctx, data, record, sums)
	return r, errors.Join(err, lock.Close())
}

func (o *Restore) choose() (string, error) {
	names, err := o.Dir.Names()
	switch {
	case err != nil:
		return "", err
	case len(names) == 0:
		return "", fault.Errorf(fault.NotFound, "there is no finished backup in %s", o.Dir)
	case o.Name == "":
		return names[len(names)-1], nil
	case !slices.Contains(names, o.Name):
		return "", fault.Errorf(fault.NotFound, "there is no backup %q in %s; --list shows what there is", o.Name, o.Dir)
	}
	return o.Name, nil
}

// into fills the directory, or finishes an interrupted restore.
func (o *Restore) into(ctx context.Context, data string, record *Record, sums map[string]string) (*Restored, error) {
	aside := filepath.Join(data, restoringDir)
	done, err := readJSON[Restored](filepath.Join(aside, restoredFile))
	if err == nil {
		return done, moveUp(data)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := o.prepare(data, record.Database); err != nil {
		return nil, err
	}
	r := &Restored{Backup: record.Name, TakenAt: record.TakenAt, Problems: []string{}}
	if err := o.copyAll(ctx, aside, record.Name, sums, r); err != nil {
		return nil, err
	}
	config := o.Config
	config.Data, config.Algorithms = aside, ""
	if r.Requeued, r.Lost, err = o.FinishLost(ctx, config); err != nil {
		return nil, fmt.Errorf("open what was restored: %w", err)
	}
	if err := checkAll(ctx, config, record, r); err != nil {
		return nil, err
	}
	if err := syncTree(aside); err != nil {
		return nil, err
	}
	if err := writeJSON(filepath.Join(aside, restoredFile), r); err != nil {
		return nil, err
	}
	return r, moveUp(data)
}

// prepare rejects a directory that is not empty. It removes the leftovers of an
// unfinished restore.
func (o *Restore) prepare(data, database string) error {
	entries, err := os.ReadDir(data)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	marker := host.Database + boltfile.MarkerSuffix
	for name := range names {
		mine := names[restoringDir] && (name == restoringDir || strings.HasPrefix(name, marker))
		if !mine && name != "lost+found" {
			return fault.Errorf(fault.Invalid, "it is not empty: it has %s; give a new directory with --data", name)
		}
	}
	if o.Config.Database.FileSystem != "any" {
		if err := boltfile.RefuseFileSystem(data); err != nil {
			return err
		}
	}
	aside := filepath.Join(data, restoringDir)
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Mkdir(aside, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(data, 0o700); err != nil {
		return err
	}
	return boltfile.Expect(filepath.Join(data, host.Database), database)
}

// copyAll copies every file and compares its digest.
func (o *Restore) copyAll(ctx context.Context, aside, backup string, sums map[string]string, r *Restored) error {
	digests := digest.New()
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		below, ok := strings.CutPrefix(name, dataDir+"/")
		if !ok {
			return fmt.Errorf("backup %s contains %s, which is not part of the data", backup, name)
		}
		put := copyOne
		if top, _, _ := strings.Cut(below, "/"); o.linked && (top == "uploads" || top == "jobs") { // never modified later
			put = linkOne
		}
		size, err := put(ctx, digests, filepath.Join(aside, below), o.Dir.path(backup, name), sums[name])
		var damage damagedFile
		switch {
		case errors.As(err, &damage) && o.SkipDamaged && below != host.Database:
			r.Problems = append(r.Problems, fmt.Sprintf("skipped %s: %s", below, damage))
		case errors.As(err, &damage):
			return fmt.Errorf("%s in the backup is damaged: %s; choose another backup with --snapshot, or skip damaged files with --skip-damaged", name, damage)
		case err != nil:
			return err
		default:
			r.Files++
			r.Bytes += size
		}
	}
	return nil
}

// damagedFile describes the damage to a file of a backup.
type damagedFile string

func (d damagedFile) Error() string { return string(d) }

func copyOne(ctx context.Context, digests *digest.Digester, to, from, want string) (int64, error) {
	f, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, damagedFile("it is missing")
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return 0, err
	}
	sum, size, err := digests.Copy(ctx, to, f)
	if err != nil {
		return 0, err
	}
	if sum != want {
		return 0, errors.Join(damagedFile("its SHA-256 has changed since the backup"), os.Remove(to))
	}
	return size, os.Chtimes(to, info.ModTime(), info.ModTime())
}

// linkOne is copyOne for a file that will never be modified.
func linkOne(ctx context.Context, digests *digest.Digester, to, from, want string) (int64, error) {
	sum, size, err := digests.File(ctx, from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, damagedFile("it is missing")
	case err != nil:
		return 0, err
	case sum != want:
		return 0, damagedFile("its SHA-256 has changed since the backup")
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return 0, err
	}
	if os.Link(from, to) != nil { // for example, the file system does not support hard links
		return copyOne(ctx, digests, to, from, want)
	}
	return size, nil
}

// checkAll checks the restored directory. Problems are expected if the backup recorded
// some or damaged files were skipped; otherwise the restore itself failed.
func checkAll(ctx context.Context, config config.Config, record *Record, r *Restored) error {
	found, err := check.Run(ctx, config, check.Options{})
	if err != nil {
		return err
	}
	if found.Count == 0 {
		return nil
	}
	if len(record.Problems) == 0 && len(r.Problems) == 0 {
		return fmt.Errorf("the restored data has %d problems that the backup does not have: %s", found.Count, found.Problems[0].Text)
	}
	for _, p := range found.Problems {
		r.Problems = append(r.Problems, p.Text)
	}
	return nil
}

// moveUp moves the restored files to their final paths, the database last. It can be
// repeated after an interruption.
func moveUp(data string) error {
	aside := filepath.Join(data, restoringDir)
	entries, err := os.ReadDir(aside)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == restoredFile || e.Name() == host.Database {
			continue
		}
		if err := os.Rename(filepath.Join(aside, e.Name()), filepath.Join(data, e.Name())); err != nil {
			return err
		}
	}
	if err := durable.SyncFolder(data); err != nil {
		return err
	}
	err = os.Rename(filepath.Join(aside, host.Database), filepath.Join(data, host.Database))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(durable.SyncFolder(data), os.RemoveAll(aside), durable.SyncFolder(data))
}
