package backup

import (
	"context"
	"os"
	"slices"
	"testing"

	"molrun/app/config"
)

func rule(t *testing.T, text string) (k config.Keep) {
	t.Helper()
	must(t, k.UnmarshalText([]byte(text)))
	return k
}

// Of backups that were taken on several days, those that the rule keeps stay, the newest,
// and the newest without problems.
func TestPruneKeepsTheRuleAndTheNewestGoodOne(t *testing.T) {
	t.Parallel()
	d := Dir(t.TempDir())
	put := func(name string, problems ...string) {
		must(t, os.MkdirAll(d.path(name, dataDir), 0o700))
		must(t, writeJSON(d.path(name, recordFile), Record{Format: format, Name: name, Problems: problems}))
	}
	put("20261101T030000Z")
	put("20261119T030000Z")
	put("20261120T030000Z", "a file is missing")
	put("20261121T030000Z", "a file is missing")
	put("20261121T030000Z-002", "a file is missing")
	put(goingPrefix + "20261001T030000Z")
	must(t, os.WriteFile(d.path("notes.txt"), nil, 0o600))
	must(t, os.Mkdir(d.path(goingPrefix+"home"), 0o700))

	if removed, err := d.Prune(config.Keep{}); err != nil || len(removed) > 0 {
		t.Errorf("without a rule: removed %q, %v", removed, err)
	}
	if !missing(d.path(goingPrefix + "20261001T030000Z")) {
		t.Error("what an interrupted removal has left is still there")
	}
	removed, err := d.Prune(rule(t, "1d"))
	must(t, err)
	if want := []string{"20261101T030000Z", "20261120T030000Z", "20261121T030000Z"}; !slices.Equal(removed, want) {
		t.Errorf("removed %q, want %q", removed, want)
	}
	names, err := d.Names()
	must(t, err)
	if want := []string{"20261119T030000Z", "20261121T030000Z-002"}; !slices.Equal(names, want) {
		t.Errorf("%q are left, want %q", names, want)
	}
	for _, other := range []string{"notes.txt", goingPrefix + "home"} {
		if missing(d.path(other)) {
			t.Errorf("%s, which is no backup, was removed", other)
		}
	}
	if removed, err := Dir(t.TempDir()).Prune(rule(t, "1d")); err != nil || len(removed) > 0 {
		t.Errorf("an empty directory: removed %q, %v", removed, err)
	}
}

// A backup with problems removes none of those before it.
func TestOnlyAGoodBackupRemovesOthers(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	old := d.take(Options{})
	must(t, os.Rename(d.backups.path(old.Name), d.backups.path("20200101T000000Z")))
	must(t, os.Remove(d.Path(d.uploads[0])))
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
	before, err := d.backups.Tried()
	if before != nil || err != nil {
		t.Errorf("tried before it was: %+v, %v", before, err)
	}
	tried, err := d.backups.Try(t.Context(), configOf(""), "", none)
	must(t, err)
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
	must(t, os.Chmod(file, 0o600))
	must(t, os.WriteFile(file, []byte("0123456789"), 0o600))
	tried, err = d.backups.Try(t.Context(), configOf(""), r.Name, none)
	must(t, err)
	wantSaid(t, "a damaged backup", tried.Problems, "SHA-256")
	kept, err := d.backups.Tried()
	must(t, err)
	wantSaid(t, "what was kept of it", kept.Problems, "SHA-256")
	_, err = d.backups.Try(t.Context(), configOf(""), "20200101T000000Z", none)
	wantError(t, "a backup that is not there", err, "there is no backup")
}
