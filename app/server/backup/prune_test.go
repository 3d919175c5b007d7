package backup

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"molrun/app/server/config"
	"molrun/app/server/snapshot"
	"molrun/app/test/must"
)

func rule(t *testing.T, text string) (k config.Keep) {
	t.Helper()
	must.OK(t, k.UnmarshalText([]byte(text)))
	return k
}

// Among backups of several days, Prune keeps those selected by the rule, the newest, and
// the newest without problems.
func TestPruneKeepsTheRuleAndTheNewestGoodOne(t *testing.T) {
	t.Parallel()
	d := Dir(t.TempDir())
	must.OK(t, writeJSON(d.path(markerFile), marker{format, "ours"}))
	put := func(name string, problems ...string) { d.put(t, name, "ours", name[:16], problems...) }
	put("20261101T030000Z")
	put("20261119T030000Z")
	put("20261120T030000Z", "a file is missing")
	put("20261121T030000Z", "a file is missing")
	put("20261121T030000Z-002", "a file is missing")
	d.put(t, goingPrefix+"20261001T030000Z", "ours", "20261001T030000Z")
	d.put(t, "20261102T030000Z", "theirs", "20261102T030000Z")
	must.OK(t, os.Mkdir(d.path("20261103T030000Z"), 0o700))
	put("20261104T030000Z-before-upgrade")
	put("20261204T030000Z-copy")
	must.OK(t, os.WriteFile(d.path("notes.txt"), nil, 0o600))
	must.OK(t, os.Mkdir(d.path(goingPrefix+"home"), 0o700))

	if removed, err := d.Prune(config.Keep{}); err != nil || len(removed) > 0 {
		t.Errorf("without a rule: removed %q, %v", removed, err)
	}
	if !missing(d.path(goingPrefix + "20261001T030000Z")) {
		t.Error("what an interrupted removal has left is still there")
	}
	removed, err := d.Prune(rule(t, "1d"))
	must.OK(t, err)
	must.Equal(t, "removed", []string{"20261101T030000Z", "20261120T030000Z", "20261121T030000Z"}, removed)
	names, err := d.Names()
	must.OK(t, err)
	must.Equal(t, "are left", []string{"20261102T030000Z", "20261103T030000Z", "20261119T030000Z", "20261121T030000Z-002"}, names)
	for _, other := range []string{"notes.txt", "20261104T030000Z-before-upgrade", "20261204T030000Z-copy", goingPrefix + "home"} {
		if missing(d.path(other)) {
			t.Errorf("%s, which is no backup, was removed", other)
		}
	}
	if removed, err := Dir(t.TempDir()).Prune(rule(t, "1d")); err != nil || len(removed) > 0 {
		t.Errorf("an empty directory: removed %q, %v", removed, err)
	}
}

// put creates a backup as if it had been taken.
func (d Dir) put(t *testing.T, name, database, taken string, problems ...string) {
	t.Helper()
	at, err := time.Parse(snapshot.NameLayout, taken)
	must.OK(t, err)
	must.OK(t, os.MkdirAll(d.path(name, dataDir), 0o700))
	must.OK(t, writeJSON(d.path(name, recordFile), Record{Format: format, Name: name, Database: database, TakenAt: at, Problems: problems}))
}

// After backups from a clock that was years ahead, the rule still keeps one per day.
func TestAWrongClockCostsNoOtherBackup(t *testing.T) {
	t.Parallel()
	d := Dir(t.TempDir())
	must.OK(t, writeJSON(d.path(markerFile), marker{format, "ours"}))
	day := time.Date(2026, 11, 1, 3, 0, 0, 0, time.UTC)
	for n := range 40 {
		taken := day.AddDate(0, 0, n)
		if n == 10 {
			taken = taken.AddDate(10, 0, 0)
		}
		name, err := d.freeName(taken)
		must.OK(t, err)
		d.put(t, name, "ours", taken.Format(snapshot.NameLayout))
		_, err = d.Prune(rule(t, "7d"))
		must.OK(t, err)
	}
	names, err := d.Names()
	must.OK(t, err)
	var days []string
	for _, name := range names {
		record, err := d.Record(name)
		must.OK(t, err)
		days = append(days, record.TakenAt.Format("2006-01-02"))
	}
	if want := "2036-11-11 2026-12-04 2026-12-05 2026-12-06 2026-12-07 2026-12-08 2026-12-09 2026-12-10"; strings.Join(days, " ") != want {
		t.Errorf("%q are left, want %s", days, want)
	}
}

// A backup with problems does not cause earlier ones to be removed.
func TestOnlyAGoodBackupRemovesOthers(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	old := d.take(Options{})
	must.OK(t, os.Rename(d.backups.path(old.Name), d.backups.path("20200101T000000Z")))
	must.OK(t, os.Remove(d.Path(d.uploads[0])))
	var removed []string
	keep := Options{Keep: rule(t, "1d"), Pruned: func(names []string) { removed = names }}
	d.take(keep)
	if len(removed) > 0 {
		t.Errorf("a backup that found damage removed %q", removed)
	}
}

func TestABackupIsTriedAndKeepsNothing(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	r := d.take(Options{})
	none := func(_ context.Context, c config.Config) (int, int, error) { return 0, 0, nil }
	before, err := d.backups.LastTest()
	if before != nil || err != nil {
		t.Errorf("tried before it was: %+v, %v", before, err)
	}
	tried, err := d.backups.TestRestore(t.Context(), configOf(""), "", none)
	must.OK(t, err)
	if tried.Backup != r.Name || tried.Files != r.Files || tried.Bytes != r.Bytes || len(tried.Problems) > 0 {
		t.Errorf("%+v of %+v", tried, r)
	}
	if !missing(d.backups.path(tryDir)) {
		t.Error("the trial has left something")
	}
	if _, _, err := d.restore(Restore{}); err != nil {
		t.Errorf("after a trial it can't be restored: %v", err)
	}
	file := d.backups.path(r.Name, dataDir, d.uploads[1])
	must.OK(t, os.Chmod(file, 0o600))
	must.OK(t, os.WriteFile(file, []byte("0123456789"), 0o600))
	tried, err = d.backups.TestRestore(t.Context(), configOf(""), r.Name, none)
	must.OK(t, err)
	wantSaid(t, "a damaged backup", tried.Problems, "SHA-256")
	kept, err := d.backups.LastTest()
	must.OK(t, err)
	wantSaid(t, "what was kept of it", kept.Problems, "SHA-256")
	_, err = d.backups.TestRestore(t.Context(), configOf(""), "20200101T000000Z", none)
	must.Fail(t, "a backup that is not there", err, "there is no backup")
}
