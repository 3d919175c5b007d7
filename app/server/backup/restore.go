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

// A data directory is restored into the directory restoring within it. Once it is
// complete and checked, a file says so, and its parts are moved up, the database
// last. Until then the service refuses to start, because of the marker of the
// database to come.
const (
	restoringDir = "restoring"
	restoredFile = "complete"
)

// Restore says what to restore.
type Restore struct {
	Dir         Dir
	Config      config.Config // of the data directory to make
	Name        string        // of the backup, "" is the newest
	SkipDamaged bool          // leave damaged files out

	FinishLost FinishLost
	linked     bool // uploads and results are links to the backup's, where that can be
}

// FinishLost ends the attempts that ran when the backup was taken, in the restored data
// directory, and counts how many of their jobs were queued again and how many failed.
type FinishLost func(context.Context, config.Config) (requeued, lost int, err error)

// Restored is the result of a restore.
type Restored struct {
	Backup   string    `json:"backup"`
	TakenAt  time.Time `json:"takenAt"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	Requeued int       `json:"requeued"` // of the jobs that ran
	Lost     int       `json:"lost"`     // of them, FAILED
	Problems []string  `json:"problems"`
}

// Restore makes the data directory, or finishes an interrupted restore.
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
	lock, err := lockDir(data, "another restore works on it; wait for its end")
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

// into fills the directory, or finishes what an interrupted restore has left.
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

// prepare refuses a directory that is not empty. What an unfinished restore has
// left is removed.
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
			return fmt.Errorf("backup %s has %s, which is no part of the data", backup, name)
		}
		put := copyOne
		if top, _, _ := strings.Cut(below, "/"); o.linked && (top == "uploads" || top == "jobs") { // never written again
			put = linkOne
		}
		size, err := put(ctx, digests, filepath.Join(aside, below), o.Dir.path(backup, name), sums[name])
		var damage damagedFile
		switch {
		case errors.As(err, &damage) && o.SkipDamaged && below != host.Database:
			r.Problems = append(r.Problems, fmt.Sprintf("%s is left out: %s", below, damage))
		case errors.As(err, &damage):
			return fmt.Errorf("%s of the backup is damaged: %s; choose another backup by --snapshot, or leave such files out by --skip-damaged", name, damage)
		case err != nil:
			return err
		default:
			r.Files++
			r.Bytes += size
		}
	}
	return nil
}

// damagedFile says what is wrong with a file of a backup.
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
		return 0, errors.Join(damagedFile("its SHA-256 is another than when it was made"), os.Remove(to))
	}
	return size, os.Chtimes(to, info.ModTime(), info.ModTime())
}

// linkOne is copyOne for a file that will not be written to.
func linkOne(ctx context.Context, digests *digest.Digester, to, from, want string) (int64, error) {
	sum, size, err := digests.File(ctx, from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, damagedFile("it is missing")
	case err != nil:
		return 0, err
	case sum != want:
		return 0, damagedFile("its SHA-256 is another than when it was made")
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return 0, err
	}
	if os.Link(from, to) != nil { // as on a file system without links
		return copyOne(ctx, digests, to, from, want)
	}
	return size, nil
}

// checkAll checks the restored directory. Problems are expected if the backup
// recorded some or damaged files were left out; otherwise the restore itself went
// wrong.
func checkAll(ctx context.Context, config config.Config, record *Record, r *Restored) error {
	found, err := check.Run(ctx, config, check.Options{})
	if err != nil {
		return err
	}
	if found.Count == 0 {
		return nil
	}
	if len(record.Problems) == 0 && len(r.Problems) == 0 {
		return fmt.Errorf("what was restored has %d problems that the backup does not have: %s", found.Count, found.Problems[0].Text)
	}
	for _, p := range found.Problems {
		r.Problems = append(r.Problems, p.Text)
	}
	return nil
}

// moveUp moves the parts into their places, the database last. It can be repeated
// after an interruption.
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
