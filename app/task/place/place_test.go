package place

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"molrun/app/test/must"
)

// A link that a program created is not followed out of its work directory.
func TestPlacesAreOpenedWithoutFollowingLinks(t *testing.T) {
	work, outside := t.TempDir(), t.TempDir()
	must.OK(t, os.Symlink(outside, filepath.Join(work, "link")))
	must.OK(t, os.Mkdir(filepath.Join(work, "folder"), 0o700))
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
