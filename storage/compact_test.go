package storage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/fault"
)

// grown gives a closed database that was larger than it needs to be.
func grown(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := openAt(t, path, Options{})
	big := make([]byte, 4<<20)
	for n := range 6 {
		update(t, s, func(tx app.Tx) error { return tx.PutDefinition(jobText(n), big) })
	}
	for n := range 6 {
		update(t, s, func(tx app.Tx) error { return tx.PutDefinition(jobText(n), []byte("small")) })
	}
	putSample(t, s)
	closeStore(t, s)
	return path
}

func TestCompactGivesSpaceBackAndKeepsEverything(t *testing.T) {
	path := grown(t)
	before, pages := readAll(t, path)
	sizes, err := Compact(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || sizes.Before < 24<<20 || sizes.After != info.Size() || sizes.After > 1<<20 || info.Mode().Perm() != 0o600 {
		t.Errorf("sizes %+v of %d pages, the file has %d bytes, mode %v; %v", sizes, pages, info.Size(), info.Mode(), err)
	}
	after, _ := readAll(t, path)
	if got := compare(after, before); got != unharmed {
		t.Errorf("records are %s", got)
	}
	o, said := warnings()
	s := openAt(t, path, o)
	checkStore(t, s)
	if len(*said) > 0 {
		t.Errorf("the next start says %q", *said)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 3 {
		t.Errorf("files are left behind: %v, %v", entries, err)
	}
}

func TestCompactRefusesWhatIsOpenOrDamagedAndLeavesItAlone(t *testing.T) {
	t.Parallel() // it waits out the lock
	path := grown(t)
	s := openAt(t, path, Options{})
	if _, err := Compact(t.Context(), path, Options{}); !errors.Is(err, fault.Unavailable) {
		t.Errorf("of an open database: %v", err)
	}
	zeroIndex(t, s)
	data, _ := os.ReadFile(path)
	if _, err := Compact(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), "restore a backup") {
		t.Errorf("of a damaged one: %v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(data) {
		t.Error("the damaged database was changed")
	}
}

// TestOpenRefusesAFileThatWasReplacedMeanwhile stands for a start that waited
// for the lock of a file which compacting put away.
func TestOpenRefusesAFileThatWasReplacedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	closeStore(t, openAt(t, path, Options{}))
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if _, err := Compact(t.Context(), path, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := stillThere(old, path); !errors.Is(err, fault.Unavailable) {
		t.Errorf("error %v, want UNAVAILABLE", err)
	}
	now, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer now.Close()
	if err := stillThere(now, path); err != nil {
		t.Errorf("of the file that is there: %v", err)
	}
}
