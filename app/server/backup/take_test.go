package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/server/snapshot"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
	"molrun/blobs"
)

func TestBackupIsCompleteAndLinksUnchangedFiles(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	first := d.take(Options{Program: "v1"})
	if first.Program != "v1" || first.Format != 1 || first.Jobs != 2 || first.Uploads != 3 || first.Schema == 0 || first.Commit == 0 || first.Database == "" {
		t.Errorf("first: %+v", first)
	}
	// The eight files are the database, the secret, three uploads, the result, its
	// manifest and the log.
	if first.Files != 8 || first.Linked != 0 || first.Copied != first.Bytes || len(first.Problems)+len(first.Damaged) != 0 {
		t.Errorf("first: %+v", first)
	}
	second := d.take(Options{Deep: true})
	database, err := os.Stat(d.backups.path(second.Name, dataDir, "jobs.db"))
	must.OK(t, err)
	secret, err := os.Stat(d.Path("secret"))
	must.OK(t, err)
	if second.Copied != database.Size() || second.Linked != second.Bytes-second.Copied || second.Files != 8 || second.Linked < secret.Size()+30 {
		t.Errorf("second: %+v, its database has %d bytes", second, database.Size())
	}
	if len(second.Problems)+len(second.Damaged) != 0 {
		t.Errorf("second: %q, %q", second.Problems, second.Damaged)
	}
	for _, name := range d.uploads {
		live, err := os.Stat(d.Path(name))
		must.OK(t, err)
		before, err := os.Stat(d.backups.path(first.Name, dataDir, name))
		must.OK(t, err)
		now, err := os.Stat(d.backups.path(second.Name, dataDir, name))
		must.OK(t, err)
		if !os.SameFile(before, now) || os.SameFile(live, now) || !now.ModTime().Equal(live.ModTime()) {
			t.Errorf("%s: linked to the backup before %t, to the live file %t, time %s", name, os.SameFile(before, now), os.SameFile(live, now), now.ModTime())
		}
	}
	names, err := d.backups.Names()
	must.OK(t, err)
	if want := []string{first.Name, second.Name}; !cmp.Equal(names, want) || !missing(d.backups.path(partialDir)) {
		t.Errorf("names %q, want %q and nothing unfinished", names, want)
	}
	read, err := d.backups.Record(second.Name)
	must.OK(t, err)
	must.Equal(t, "the record on disk (-returned +read)", read, second)
	must.OK(t, filepath.WalkDir(string(d.backups), func(path string, e fs.DirEntry, err error) error {
		must.OK(t, err)
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v, %v", path, info.Mode(), err)
		}
		return nil
	}))
}

// If files in the data directory are missing or altered, a backup reuses the previous
// backup's copies and reports the damage.
func TestBackupReportsLiveDamageItAvoids(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	sound := d.take(Options{})
	altered := d.Path(d.job, "result", "out.txt")
	before, err := os.Stat(altered)
	must.OK(t, err)
	must.OK(t, errors.Join(
		os.Remove(d.Path(d.uploads[0])), os.Truncate(d.Path(d.uploads[1]), 5), os.WriteFile(altered, []byte("RESULT\n"), 0o600),
		os.Chtimes(altered, time.Time{}, before.ModTime().Add(time.Second)),
	))
	r := d.take(Options{})
	wantSaid(t, "damage", r.Damaged, "no such file", "(lab) has 5 bytes, its record says 10", "(lab) has changed content")
	wantSaid(t, "problems", r.Problems)
	must.Equal(t, "files", r.Files, sound.Files)
	restored, _, err := d.restore(Restore{})
	must.OK(t, err)
	wantSound(t, restored)

	// A change that preserves size and time is detected only by reading.
	must.OK(t, os.Chtimes(altered, time.Time{}, before.ModTime()))
	wantSaid(t, "damage with the old time", d.take(Options{}).Damaged, "no such file", "5 bytes")
	wantSaid(t, "damage in a deep backup", d.take(Options{Deep: true}).Damaged, "no such file", "5 bytes", "out.txt")

	d.backups = Dir(filepath.Join(t.TempDir(), "other"))
	r = d.take(Options{})
	wantSaid(t, "problems without an earlier backup", r.Problems, "no such file", "5 bytes", "has changed content")
	wantSaid(t, "damage without an earlier backup", r.Damaged)
	if r.Files != sound.Files-1 || r.Copied != r.Bytes {
		t.Errorf("without an earlier backup: %+v, want all but the missing file", r)
	}
}

func TestDeepBackupReplacesDamagedFiles(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	first := d.take(Options{})
	must.OK(t, os.WriteFile(d.backups.path(first.Name, dataDir, d.uploads[0]), []byte("yyyyyyyyyy"), 0o600))
	must.OK(t, os.Remove(d.backups.path(first.Name, dataDir, d.uploads[1])))
	must.OK(t, os.Truncate(d.backups.path(first.Name, dataDir, d.uploads[2]), 3))
	r := d.take(Options{Deep: true})
	wantSaid(t, "problems", r.Problems, first.Name+" has a damaged "+d.uploads[0])
	wantSaid(t, "damage", r.Damaged)
	if database := sizeOf(t, d.backups.path(r.Name, dataDir, "jobs.db")); r.Copied != database+30 {
		t.Errorf("%d bytes were copied, want the database of %d and three uploads", r.Copied, database)
	}
}

// A file whose size differs from the previous backup's is not linked, even if it is
// expected to be empty.
func TestBackupLinksNoFileOfAnotherSize(t *testing.T) {
	t.Parallel()
	site := fixture.New(t, app.Options{})
	empty, _ := blobs.UploadFile(site.Upload(fixture.Ann, "empty.txt", ""))
	full, _ := blobs.UploadFile(site.Upload(fixture.Ann, "full.txt", "text"))
	site.Close()
	d := &directory{Site: site, t: t, backups: Dir(filepath.Join(t.TempDir(), "backups"))}
	first := d.take(Options{})
	for _, f := range []blobs.File{empty, full} {
		must.OK(t, os.WriteFile(d.backups.path(first.Name, dataDir, f.Path), []byte("other"), 0o600))
	}
	d.take(Options{}) // compares the digests of all files
}

func TestBackupIgnoresUnreadablePreviousBackup(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	first := d.take(Options{})
	sums := d.backups.path(first.Name, sumsFile)
	text, err := os.ReadFile(sums)
	must.OK(t, err)
	must.OK(t, os.WriteFile(sums, text[:len(text)-len(text)/8-1], 0o600))
	r := d.take(Options{})
	wantSaid(t, "problems", r.Problems, "the previous backup is unusable")
	must.Equal(t, "bytes are linked", r.Linked, 0)
	wantSaid(t, "problems of the one after", d.take(Options{}).Problems)
}

// A copied data directory has new file times; its files are read once.
func TestBackupOfFilesWithOtherTimesIsClean(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	d.take(Options{})
	now := time.Now().Add(time.Hour).Truncate(time.Second)
	must.OK(t, os.Chtimes(d.Path(d.uploads[0]), now, now))
	r := d.take(Options{})
	if len(r.Damaged)+len(r.Problems) > 0 {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(d.backups.path(r.Name, dataDir, d.uploads[0])); err != nil || !info.ModTime().Equal(now) {
		t.Errorf("the copy keeps another time, so each backup reads the file: %v, %v", info, err)
	}
}

// Files that change while the service runs have no digest, so only a comparison with the
// live file shows whether they are unchanged.
func TestFilesWithoutADigestAreLinkedOnlyIfUnchanged(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	write := func(text string, at time.Time) {
		t.Helper()
		must.OK(t, os.WriteFile(d.Path("audit.log"), []byte(text), 0o600))
		must.OK(t, os.Chtimes(d.Path("audit.log"), at, at))
	}
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	write("one\n", noon)
	d.take(Options{})
	for _, tt := range []struct {
		text   string
		at     time.Time
		copied int64
	}{{"one\n", noon, 0}, {"two\n", noon.Add(time.Second), 4}, {"two\nthree\n", noon.Add(time.Second), 10}} {
		write(tt.text, tt.at)
		r := d.take(Options{})
		got, err := os.ReadFile(d.backups.path(r.Name, dataDir, "audit.log"))
		must.OK(t, err)
		if copied := r.Copied - sizeOf(t, d.backups.path(r.Name, dataDir, "jobs.db")); string(got) != tt.text || copied != tt.copied {
			t.Errorf("%q: the backup has %q, %d bytes copied beside the database, want %d", tt.text, got, copied, tt.copied)
		}
		wantSaid(t, "damage", r.Damaged)
	}
}

func TestUnfinishedBackupSavesCopyingAgain(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	left := func(name, text string) {
		t.Helper()
		path := d.backups.path(partialDir, dataDir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	must.OK(t, os.MkdirAll(string(d.backups), 0o700))
	must.OK(t, writeJSON(d.backups.path(markerFile), marker{format, d.identity()}))
	left(d.uploads[0], "xxxxxxxxxx") // a complete copy
	left(d.uploads[1], "xxxxxxxxxy")
	left(d.uploads[2], "xxx")
	left("uploads/zz/of-the-past.1", "gone")
	r := d.take(Options{})
	if r.Linked != 10 || r.Copied != r.Bytes-10 || len(r.Damaged)+len(r.Problems) > 0 {
		t.Errorf("%+v, want one of 10 bytes not copied", r)
	}
	if !missing(d.backups.path(r.Name, dataDir, "uploads/zz/of-the-past.1")) {
		t.Error("a file of the unfinished backup is left that this one does not have")
	}
}

// identity returns the ID of the database.
func (d *directory) identity() (id string) {
	d.t.Helper()
	must.OK(d.t, snapshot.WithSnapshot(d.t.Context(), configOf(d.Data), func(_ context.Context, s *snapshot.Snapshot) error {
		info, err := s.Records.Info()
		id = info.ID
		return err
	}))
	return id
}

func TestDirectoryOfBackupsIsOfOneServiceAlone(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	const ours, others = `{"format": 1, "database": "%s"}`, `{"format": 1, "database": "another"}`
	for _, tt := range []struct {
		name, file, text string
		says             string
		code             fault.Code
	}{
		{"empty but for what a disk has", "lost+found", "", "", ""},
		{"a mark that was not renamed", "." + markerFile + ".tmp", "", "", ""},
		{"its own", markerFile, ours, "", ""},
		{"of another service", markerFile, others, "the backups of another service", fault.Invalid},
		{"of a later version", markerFile, `{"format": 2, "database": "%s"}`, "format 2, this version of molrun knows 1", ""},
		{"a damaged mark", markerFile, `{"format": `, "damaged", ""},
		{"other things", "notes", "", "holds other things, such as notes", fault.Invalid},
	} {
		d.backups = Dir(filepath.Join(t.TempDir(), tt.name))
		must.OK(t, os.MkdirAll(string(d.backups), 0o700))
		text := tt.text
		if tt.text != others && tt.file == markerFile && tt.code == "" && tt.name != "a damaged mark" {
			text = fmt.Sprintf(tt.text, d.identity())
		}
		must.OK(t, os.WriteFile(d.backups.path(tt.file), []byte(text), 0o600))
		if tt.says == "" {
			d.take(Options{})
			continue
		}
		_, err := TakeBackup(t.Context(), configOf(d.Data), Options{Dir: d.backups})
		must.Fail(t, tt.name, err, tt.says)
		if tt.code != "" && !errors.Is(err, tt.code) {
			t.Errorf("%s: error %v, want %s", tt.name, err, string(tt.code))
		}
	}
}

func TestOneBackupAtATime(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	unlock, err := d.backups.lock(d.identity())
	must.OK(t, err)
	_, err = TakeBackup(t.Context(), configOf(d.Data), Options{Dir: d.backups})
	must.Fail(t, "the second", err, "another backup into ")
	if !errors.Is(err, fault.Unavailable) {
		t.Errorf("error %v, want %s", err, string(fault.Unavailable))
	}
	must.OK(t, unlock())
	d.take(Options{})
}

func TestBackupsStayOutOfTheDataDirectory(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	link := filepath.Join(t.TempDir(), "link")
	must.OK(t, os.Symlink(d.Data, link))
	for _, dir := range []string{d.Data, d.Path("backups"), d.Path("jobs", "..", "a", "b"), filepath.Join(link, "backups")} {
		_, err := TakeBackup(t.Context(), configOf(d.Data), Options{Dir: Dir(dir)})
		must.Fail(t, dir, err, "is inside the data directory")
	}
	must.OK(t, refuseWithin(d.Data+"-backups", d.Data))
	must.OK(t, refuseWithin(filepath.Dir(d.Data), d.Data))
	must.OK(t, refuseWithin("/", d.Data))
}

func TestBackupOfADamagedDatabaseIsNotMade(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	data, err := os.ReadFile(d.Path("jobs.db"))
	must.OK(t, err)
	clear(data[3*4096:])
	must.OK(t, os.WriteFile(d.Path("jobs.db"), data, 0o600))
	if r, err := TakeBackup(t.Context(), configOf(d.Data), Options{Dir: d.backups}); err == nil {
		t.Errorf("%+v", r)
	}
	if names, _ := d.backups.Names(); len(names) > 0 {
		t.Errorf("backups %q", names)
	}
}

func TestBackupThatLosesItsSnapshotIsNotFinished(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	stop := errors.New("the service stopped")
	must.OK(t, os.MkdirAll(string(d.backups), 0o700))
	must.OK(t, snapshot.WithSnapshot(t.Context(), configOf(d.Data), func(ctx context.Context, s *snapshot.Snapshot) error {
		ctx, cancel := context.WithCancelCause(ctx)
		tk := &taking{Dir: d.backups, snapshot: s}
		must.OK(t, tk.prepare())
		cancel(stop)
		if err := tk.copyFiles(ctx); !errors.Is(err, stop) {
			t.Errorf("copying ends with %v, want %v", err, stop)
		}
		if err := tk.finish(ctx); !errors.Is(err, stop) {
			t.Errorf("finishing ends with %v, want %v", err, stop)
		}
		return nil
	}))
	if names, err := d.backups.Names(); err != nil || len(names) > 0 {
		t.Errorf("backups %q, %v", names, err)
	}
}

func TestNamesOfBackupsSortByTimeWhateverTheClockDoes(t *testing.T) {
	t.Parallel()
	taken := time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("", 3600))
	for _, tt := range []struct {
		there []string
		want  string
	}{
		{nil, "20261120T110000Z"},
		{[]string{"20261120T105959Z"}, "20261120T110000Z"},
		{[]string{"20261120T110000Z"}, "20261120T110000Z-002"},
		{[]string{"20261120T110000Z", "20261120T110000Z-002"}, "20261120T110000Z-003"},
		{[]string{"20261120T105959Z-009", "notes", "partial"}, "20261120T110000Z"},
		{[]string{"20271120T110000Z"}, "20271120T110000Z-002"},                       // the clock was set back
		{[]string{"20261120T110000Z-new", "20271120T110000Z-2"}, "20261120T110000Z"}, // created by a user
	} {
		d := Dir(t.TempDir())
		for _, name := range tt.there {
			must.OK(t, os.Mkdir(d.path(name), 0o700))
		}
		must.OK(t, os.WriteFile(d.path("20991120T110000Z"), nil, 0o600)) // a file is not a backup
		if got, err := d.freeName(taken); got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("beside %q: %q, %v, want %q", tt.there, got, err, tt.want)
		}
	}
}

func TestRecordsListABoundedNumberOfProblems(t *testing.T) {
	t.Parallel()
	var tk taking
	for range maxProblems + 1 {
		tk.problemf("a")
		tk.damagef("a")
	}
	if len(tk.record.Problems) != maxProblems || len(tk.record.Damaged) != maxProblems {
		t.Errorf("%d problems, %d damaged", len(tk.record.Problems), len(tk.record.Damaged))
	}
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must.OK(t, err)
	return info.Size()
}
