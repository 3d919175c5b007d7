package blobs

import (
	"bytes"
	"io"
	"strings"
	"syscall"
	"testing"

	"molrun/app/fault"
)

// This test fills a real file system.
func TestFullDiskIsReportedUntilSpaceIsFreed(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,mode=700"); err != nil {
		t.Skipf("mounting a small file system takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	f := startIn(t, dir)
	id := f.newUpload("text/plain")
	body := io.MultiReader(bytes.NewReader(make([]byte, 8<<20))) // hides the length
	f.send("PUT", f.putLink(id), body).want(t, 507, fault.StorageFull)
	if left := f.names(tmpDir); len(left) > 0 {
		t.Errorf("temporary files left: %q", left)
	}
	f.upload(id, strings.Repeat("a", 1<<20))
}
