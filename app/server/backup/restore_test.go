package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"molrun/app/base/fault"
	"molrun/app/server/config"
	"molrun/app/test/must"
	"molrun/storage"
)

func TestRestoreMakesTheDataDirectoryAgain(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	first := d.take(Options{})
	d.take(Options{})
	o := Restore{Name: first.Name, FinishLost: func(_ context.Context, c config.Config) (int, int, error) {
		if missing(filepath.Join(c.Data, "jobs.db")) || missing(filepath.Join(c.Data, d.uploads[0])) || c.Algorithms != "" {
			t.Errorf("lost attempts are finished in %s with the algorithms of %q, before all is there", c.Data, c.Algorithms)
		}
		return 2, 1, nil
	}}
	o.Config.Algorithms = "elsewhere"
	data, r, err := d.restore(o)
	must.OK(t, err)
	want := &Restored{Backup: first.Name, TakenAt: first.TakenAt, Files: first.Files, Bytes: first.Bytes, Requeued: 2, Lost: 1, Problems: []string{}}
	must.Equal(t, "restored", r, want)
	wantSound(t, data)
	if got, want := tree(t, data), tree(t, d.Data); !cmp.Equal(got, want) {
		t.Errorf("files (-want +got):\n%s", cmp.Diff(want, got))
	}
	before, err := os.Stat(d.Path(d.uploads[0]))
	must.OK(t, err)
	if after, err := os.Stat(filepath.Join(data, d.uploads[0])); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("an upload has the time %v, want %s: %v", after.ModTime(), before.ModTime(), err)
	}
	if info, err := os.Stat(data); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the data directory: %v, %v", info.Mode(), err)
	}

	_, r, err = d.restore(Restore{})
	must.OK(t, err)
	if r.Backup == first.Name {
		t.Error("without a name, the oldest backup is restored instead of the newest")
	}
}

// tree returns the files of a data directory that a backup includes.
func tree(t *testing.T, top string) (names []string) {
	t.Helper()
	must.OK(t, filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		must.OK(t, err)
		name, err := filepath.Rel(top, path)
		if !e.IsDir() && !strings.HasPrefix(name, "jobs.db.") {
			names = append(names, name)
		}
		return err
	}))
	return names
}

func TestRestoreRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	must.OK(t, os.MkdirAll(string(d.backups), 0o700))
	_, _, err := d.restore(Restore{})
	must.Fail(t, "without a backup", err, "no finished backup")
	d.take(Options{})
	_, _, err = d.restore(Restore{Name: "nonsense"})
	must.Fail(t, "another name", err, `no backup "nonsense"`)
	if !errors.Is(err, fault.NotFound) {
		t.Errorf("error %v, want %s", err, string(fault.NotFound))
	}
	d.backups = Dir(filepath.Join(t.TempDir(), "nowhere"))
	_, _, err = d.restore(Restore{})
	must.Fail(t, "no directory", err, "no such file")
}

func TestRestoreRequiresAnEmptyDirectory(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	d.take(Options{})
	for name, refused := range map[string]bool{"notes": true, "jobs.db": true, "jobs.db.restoring": true, "lost+found": false} {
		data := t.TempDir()
		must.OK(t, os.WriteFile(filepath.Join(data, name), nil, 0o600))
		_, err := d.restoreTo(data, Restore{})
		switch {
		case refused:
			must.Fail(t, name, err, "it is not empty: it has "+name)
			if !errors.Is(err, fault.Invalid) || !missing(filepath.Join(data, restoringDir)) {
				t.Errorf("beside %s: error %v, want %s and nothing written", name, err, string(fault.Invalid))
			}
		case err != nil:
			t.Errorf("beside %s: %v", name, err)
		}
	}
}

func TestRestoreRefusesDamageUnlessItIsToBeLeftOut(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	r := d.take(Options{})
	in := func(name string) string { return d.backups.path(r.Name, dataDir, name) }
	must.OK(t, os.WriteFile(in(d.uploads[0]), []byte("yyyyyyyyyy"), 0o600))
	must.OK(t, os.Remove(in(d.uploads[1])))

	data, _, err := d.restore(Restore{})
	must.Fail(t, "damage", err, "--skip-damaged")
	if !missing(filepath.Join(data, "jobs.db")) {
		t.Error("the directory has a database though the restore failed")
	}
	restored, err := d.restoreTo(data, Restore{SkipDamaged: true})
	must.OK(t, err)
	wantSaid(t, "problems", restored.Problems, "skipped "+d.uploads[0]+": its SHA-256", "skipped "+d.uploads[1]+": it is missing",
		"is missing", "is missing") // reported by the final check
	if restored.Files != r.Files-2 || restored.Bytes != r.Bytes-20 || !missing(filepath.Join(data, d.uploads[0])) {
		t.Errorf("%+v, want two files less than %+v", restored, r)
	}

	must.OK(t, os.Truncate(in("jobs.db"), 100))
	_, _, err = d.restore(Restore{SkipDamaged: true})
	must.Fail(t, "a damaged database", err, "jobs.db in the backup is damaged")
}

func TestRestoreChecksWhatTheBackupSaysOfItself(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	r := d.take(Options{})
	sums, record := d.backups.path(r.Name, sumsFile), d.backups.path(r.Name, recordFile)
	edit := func(path, old, now string) func() {
		return func() {
			t.Helper()
			text, err := os.ReadFile(path)
			must.OK(t, err)
			changed := strings.Replace(string(text), old, now, 1)
			if changed == string(text) {
				t.Fatalf("%s has no %s", path, old)
			}
			must.OK(t, os.WriteFile(path, []byte(changed), 0o600))
		}
	}
	for _, tt := range []struct {
		name, file string
		damage     func()
		says       string
	}{
		{"another format", record, edit(record, `"format": 1`, `"format": 7`), "format 7"},
		{"another number of files", record, edit(record, `"files": `, `"files": 1`), "SHA256SUMS is damaged; take another backup"},
		{"other sums", sums, edit(sums, "data/secret", "data/Secret"), "SHA256SUMS is damaged; take another backup"},
		{"no record", record, func() { must.OK(t, os.Remove(record)) }, "no such file"},
		{"no sums", sums, func() { must.OK(t, os.Remove(sums)) }, "no such file"},
	} {
		good, err := os.ReadFile(tt.file)
		must.OK(t, err)
		tt.damage()
		_, _, err = d.restore(Restore{})
		must.Fail(t, tt.name, err, tt.says)
		must.OK(t, os.WriteFile(tt.file, good, 0o600))
	}
	aside := t.TempDir()
	o := Restore{Dir: d.backups}
	must.Fail(t, "a file beside the data", o.copyAll(t.Context(), aside, r.Name, map[string]string{"backup.json": "x"}, &Restored{}), "which is not part of the data")
	_, _, err := d.restore(Restore{})
	must.OK(t, err)
}

func TestRestoreReportsProblemsThatTheBackupHas(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	must.OK(t, os.Remove(d.Path(d.uploads[0])))
	d.take(Options{})
	_, r, err := d.restore(Restore{})
	must.OK(t, err)
	wantSaid(t, "problems", r.Problems, "is missing")

	// A problem that the backup does not have is attributed to the restore.
	loses := Restore{FinishLost: func(_ context.Context, c config.Config) (int, int, error) {
		return 0, 0, os.Remove(filepath.Join(c.Data, d.uploads[1]))
	}}
	_, _, err = d.restore(loses)
	must.OK(t, err)
	must.OK(t, os.WriteFile(d.Path(d.uploads[0]), []byte("xxxxxxxxxx"), 0o600))
	d.take(Options{})
	_, _, err = d.restore(loses)
	must.Fail(t, "a file lost on the way", err, "1 problems that the backup does not have")
}

// An interrupted restore leaves a directory on which no service starts. The next restore
// starts over, or continues from there if everything had already been checked.
func TestInterruptedRestoreCanBeRepeated(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	r := d.take(Options{})
	stop := errors.New("power cut")
	data, _, err := d.restore(Restore{FinishLost: func(context.Context, config.Config) (int, int, error) { return 0, 0, stop }})
	if !errors.Is(err, stop) || !missing(filepath.Join(data, "jobs.db")) {
		t.Fatalf("the interrupted restore: %v", err)
	}
	if _, err := storage.Open(filepath.Join(data, "jobs.db"), storage.Options{AnyFileSystem: true}); err == nil {
		t.Error("the service starts on what an interrupted restore has left")
	}
	must.OK(t, os.WriteFile(filepath.Join(data, restoringDir, "leftover"), nil, 0o600))
	_, err = d.restoreTo(data, Restore{})
	must.OK(t, err)
	wantSound(t, data)
	if !missing(filepath.Join(data, "leftover")) || !missing(filepath.Join(data, restoringDir)) {
		t.Error("something is left of the interrupted restore")
	}

	// Simulate a power failure while the restored files are being moved up.
	aside := filepath.Join(data, restoringDir)
	must.OK(t, os.Mkdir(aside, 0o700))
	for _, name := range []string{"jobs.db", "uploads"} {
		must.OK(t, os.Rename(filepath.Join(data, name), filepath.Join(aside, name)))
	}
	must.OK(t, writeJSON(filepath.Join(aside, restoredFile), Restored{Backup: r.Name, Files: 77}))
	again, err := d.restoreTo(data, Restore{})
	if err != nil || again.Files != 77 {
		t.Fatalf("%+v, %v, want what the interrupted restore had noted", again, err)
	}
	wantSound(t, data)
	if !missing(aside) {
		t.Error("the folder of the interrupted restore is left")
	}
	must.OK(t, errors.Join(os.Mkdir(aside, 0o700), writeJSON(filepath.Join(aside, restoredFile), Restored{Files: 78})))
	if again, err := d.restoreTo(data, Restore{}); err != nil || again.Files != 78 || missing(filepath.Join(data, "jobs.db")) || !missing(aside) {
		t.Errorf("after everything was moved up: %+v, %v", again, err)
	}
}

func TestOneRestoreAtATime(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	d.take(Options{})
	data := t.TempDir()
	lock, err := lockDir(data, "taken")
	must.OK(t, err)
	_, err = d.restoreTo(data, Restore{})
	must.Fail(t, "the second", err, "another restore is in progress")
	must.OK(t, lock.Close())
	_, err = d.restoreTo(data, Restore{})
	must.OK(t, err)
}
