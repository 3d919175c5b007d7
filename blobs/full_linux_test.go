package blobs

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// TestFullDiskIsToldAndForgotten fills a real file system.
func TestFullDiskIsToldAndForgotten(t *testing.T) {
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
	body := io.MultiReader(bytes.NewReader(make([]byte, 8<<20)))
	req, err := http.NewRequest("PUT", f.putLink(id), body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := f.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 507 {
		t.Errorf("status %d, want 507", res.StatusCode)
	}
	if left := f.names(tmpDir); len(left) > 0 {
		t.Errorf("temporary files left: %q", left)
	}
	f.upload(id, strings.Repeat("a", 1<<20))
}
