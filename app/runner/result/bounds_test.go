package result

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"molrun/app/test/must"
)

// TestHolesAreCountedExactly makes a file whose holes are as large as they may be,
// then larger by a byte.
func TestHolesAreCountedExactly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sparse")
	f, err := os.Create(path)
	must.OK(t, err)
	defer f.Close()
	_, err = f.Write(make([]byte, 8<<20))
	must.OK(t, errors.Join(err, f.Sync()))
	if err := f.Truncate(maxHoles); err != nil {
		t.Skipf("no file of %d bytes can be made here: %v", int64(maxHoles), err)
	}
	must.OK(t, f.Sync())
	var s syscall.Stat_t
	must.OK(t, syscall.Fstat(int(f.Fd()), &s))
	for more, fits := range map[int64]bool{0: true, 1: false} {
		must.OK(t, f.Truncate(maxHoles+s.Blocks*512+more))
		_, err := survey(dir, 10, goOn)
		if unfit := new(Unfit); fits != (err == nil) || !fits && !errors.As(err, unfit) {
			t.Errorf("holes of %d bytes more than there may be: %v", more, err)
		}
	}
}

func TestSurveyCountsEntriesUpToTheLimit(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	must.OK(t, os.WriteFile(filepath.Join(dir, "folder", "file"), []byte("four"), 0o600))
	if n, err := survey(dir, 3, goOn); err != nil || n != (amount{1, 4}) { // with the directory itself
		t.Errorf("%+v, %v; want one file of 4 bytes", n, err)
	}
	var unfit Unfit
	if _, err := survey(dir, 2, goOn); !errors.As(err, &unfit) {
		t.Errorf("3 entries where 2 may be: %v", err)
	}
}
