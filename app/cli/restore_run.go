package cli

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

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/config"
	"molrun/app/fault"
	"molrun/storage/kv/boltfile"
)

// A data directory is made in the folder restoring within it. Once all is there
// and checked, a file says so, and the parts are moved up, the database last.
// Until then a marker of the database that is to come makes every start refuse.
const (
	restoringDir = "restoring"
	restoredFile = "complete"
)

// restoring is what is asked of a restore.
type restoring struct {
	backups     *backups
	config      config.Config
	name        string // of the backup, "" is the newest
	skipDamaged bool
}

// restored tells what came of it.
type restored struct {
	Backup   string    `json:"backup"`
	TakenAt  time.Time `json:"takenAt"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	Requeued int       `json:"requeued"` // of the jobs that ran
	Lost     int       `json:"lost"`     // of them, FAILED
	Problems []string  `json:"problems"`
}

func (o *restoring) run(ctx context.Context) (*restored, error) {
	name, err := o.choose()
	if err != nil {
		return nil, err
	}
	record, sums, err := o.backups.read(name)
	if err != nil {
		return nil, err
	}
	data := o.config.Data
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(data, "another restore works on it; wait for its end")
	if err != nil {
		return nil, err
	}
	r, err := o.into(ctx, data, record, sums)
	return r, errors.Join(err, lock.Close())
}

func (o *restoring) choose() (string, error) {
	names, err := o.backups.names()
	switch {
	case err != nil:
		return "", err
	case len(names) == 0:
		return "", fault.Errorf(fault.NotFound, "there is no finished backup in %s", o.backups.dir)
	case o.name == "":
		return names[len(names)-1], nil
	case !slices.Contains(names, o.name):
		return "", fault.Errorf(fault.NotFound, "there is no backup %q in %s; --list shows what there is", o.name, o.backups.dir)
	}
	return o.name, nil
}

// into makes the directory, or brings to its end what another restore had made.
func (o *restoring) into(ctx context.Context, data string, record *backupRecord, sums map[string]string) (*restored, error) {
	aside := filepath.Join(data, restoringDir)
	done, err := readJSON[restored](filepath.Join(aside, restoredFile))
	if err == nil {
		return done, moveUp(data)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := o.prepare(data, record.Database); err != nil {
		return nil, err
	}
	r := &restored{Backup: record.Name, TakenAt: record.TakenAt, Problems: []string{}}
	if err := o.copyAll(ctx, aside, record.Name, sums, r); err != nil {
		return nil, err
	}
	config := o.config
	config.Data, config.Algorithms = aside, ""
	if err := settleLost(ctx, config, r); err != nil {
		return nil, fmt.Errorf("open what was restored: %w", err)
	}
	if err := expectAll(ctx, config, record, r); err != nil {
		return nil, err
	}
	if err := syncFolders(aside); err != nil {
		return nil, err
	}
	if err := writeJSON(filepath.Join(aside, restoredFile), r); err != nil {
		return nil, err
	}
	return r, moveUp(data)
}

// prepare refuses a directory with anything in it but what an unfinished
// restore has left, which it removes.
func (o *restoring) prepare(data, database string) error {
	entries, err := os.ReadDir(data)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	marker := databaseName + boltfile.MarkerSuffix
	for name := range names {
		mine := names[restoringDir] && (name == restoringDir || strings.HasPrefix(name, marker))
		if !mine && name != "lost+found" {
			return fault.Errorf(fault.Invalid, "it is not empty: it has %s; name a new directory by --data", name)
		}
	}
	if !o.anyFileSystem() {
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
	return boltfile.Expect(filepath.Join(data, databaseName), database)
}

func (o *restoring) anyFileSystem() bool { return o.config.Database.FileSystem == "any" }

// copyAll copies every file and compares it with its digest.
func (o *restoring) copyAll(ctx context.Context, aside, backup string, sums map[string]string, r *restored) error {
	digests := newDigester()
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		below, ok := strings.CutPrefix(name, backupData+"/")
		if !ok {
			return fmt.Errorf("backup %s has %s, which is no part of the data", backup, name)
		}
		size, err := copyOne(ctx, digests, filepath.Join(aside, below), o.backups.path(backup, name), sums[name])
		var damage damagedFile
		switch {
		case errors.As(err, &damage) && o.skipDamaged && below != databaseName:
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

func copyOne(ctx context.Context, digests *digester, to, from, want string) (int64, error) {
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
	sum, size, err := digests.copy(ctx, to, f)
	if err != nil {
		return 0, err
	}
	if sum != want {
		return 0, errors.Join(damagedFile("its SHA-256 is another than when it was made"), os.Remove(to))
	}
	return size, os.Chtimes(to, info.ModTime(), info.ModTime())
}

// settleLost opens what was restored as the service does and lets its rules
// decide about the jobs that ran when the backup was made. Nothing of them is
// looked for: they ran elsewhere, and may still.
func settleLost(ctx context.Context, config config.Config, r *restored) (err error) {
	s, err := openService(config, zerolog.Nop())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	jobs, err := s.app.Runs.Active(ctx)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		err := s.app.Runs.Finish(ctx, j.ID, j.Attempts, app.Ending{Lost: "the service was restored from a backup"})
		if err != nil {
			return fmt.Errorf("settle job %s: %w", j.ID, err)
		}
	}
	return s.store.View(ctx, func(tx app.Tx) error {
		r.Requeued, r.Lost = 0, 0
		for _, j := range jobs {
			now, err := tx.Job(j.ID)
			switch {
			case err != nil:
				return err
			case now.Status == app.Queued:
				r.Requeued++
			default:
				r.Lost++
			}
		}
		return nil
	})
}

// expectAll checks the whole. What the backup knew to be wrong is no news, and
// what was left out is told already; anything else means that the restore
// itself went wrong.
func expectAll(ctx context.Context, config config.Config, record *backupRecord, r *restored) error {
	found, err := checkData(ctx, config, checkOptions{})
	if err != nil {
		return err
	}
	if found.Count == 0 {
		return nil
	}
	if len(record.Problems) == 0 && len(r.Problems) == 0 {
		return fmt.Errorf("what was restored has %d problems that the backup had not: %s", found.Count, found.Problems[0].Text)
	}
	for _, p := range found.Problems {
		r.Problems = append(r.Problems, p.Text)
	}
	return nil
}

// moveUp puts the parts into their places. Whenever it is cut short, it can go
// on, and the database is not there before all others are.
func moveUp(data string) error {
	aside := filepath.Join(data, restoringDir)
	entries, err := os.ReadDir(aside)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == restoredFile || e.Name() == databaseName {
			continue
		}
		if err := os.Rename(filepath.Join(aside, e.Name()), filepath.Join(data, e.Name())); err != nil {
			return err
		}
	}
	if err := syncFolder(data); err != nil {
		return err
	}
	err = os.Rename(filepath.Join(aside, databaseName), filepath.Join(data, databaseName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(syncFolder(data), os.RemoveAll(aside), syncFolder(data))
}
