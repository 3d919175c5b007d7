package place

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What a program may have left is not followed out of its work directory.
func TestPlacesAreOpenedWithoutFollowingLinks(t *testing.T) {
	work, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(work, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	var o opened
	defer o.close()
	dir := o.open(work, syscall.O_DIRECTORY)
	if o.below(dir, "folder", syscall.O_DIRECTORY); o.err != nil {
		t.Fatal(o.err)
	}
	if o.below(dir, "link", syscall.O_DIRECTORY); o.err == nil {
		t.Error("a link was followed")
	}
}
