package task

import (
	"errors"
	"testing"

	"molrun/app/test/must"
)

func TestLockIsExclusive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if locked, err := Locked(dir); locked || err != nil {
		t.Errorf("before the first lock %v, %v", locked, err)
	}
	lock, err := Lock(dir)
	must.OK(t, err)
	if locked, err := Locked(dir); !locked || err != nil {
		t.Errorf("locked %v, %v; want true", locked, err)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("second lock: %v, want %v", err, ErrLocked)
	}
	must.OK(t, lock.Close())
	if locked, err := Locked(dir); locked || err != nil {
		t.Errorf("after the end %v, %v", locked, err)
	}
}
