package blobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// startSmall is start on a separate file system of size MiB.
func startSmall(t *testing.T, size int, change ...func(*Options)) *fixture {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=700", size)); err != nil {
		t.Skipf("mounting a small file system takes root: %v", err)
	}
	t.Cleanup(func() {
		must.OK(t, syscall.Unmount(dir, 0))
	})
	return startIn(t, dir, change...)
}

// lookingBody is a body that checks the free disk space on each read.
type lookingBody struct {
	io.Reader
	f *fixture
}

func (b lookingBody) Read(p []byte) (int, error) {
	b.f.wantReserve()
	return b.Reader.Read(p)
}

// wantReserve checks that uploads have left the free-space threshold intact.
func (f *fixture) wantReserve() {
	f.t.Helper()
	if disk, err := Space(f.path, f.options.Reserve); err != nil || disk.Free < disk.Reserve {
		f.t.Errorf("%d bytes are free, want %d (err %v)", disk.Free, disk.Reserve, err)
	}
}

// forget removes all files of an upload.
func (f *fixture) forget(id app.UploadID) {
	f.t.Helper()
	for _, dir := range []string{partialDir, path.Dir(uploadName(id, 1))} {
		files, err := filepath.Glob(filepath.Join(f.path, dir, string(id)+".*"))
		for _, name := range files {
			err = errors.Join(err, os.Remove(name))
		}
		if err != nil {
			f.t.Error(err)
		}
	}
}

// TestConcurrentUploadsKeepFreeSpaceThreshold repeatedly sends more than fits,
// concurrently in every possible way: with and without a length, in one request and in
// parts.
func TestConcurrentUploadsKeepFreeSpaceThreshold(t *testing.T) {
	f := startSmall(t, 16, func(o *Options) { o.Reserve = 8 << 20 })
	var wg sync.WaitGroup
	for _, headers := range [][]string{nil, {"Upload-Complete", "?1"}, {"Upload-Complete", "?0", "Upload-Length", "6291456"}} {
		for _, chunked := range []bool{false, true} {
			id := f.newUpload("text/plain")
			wg.Go(func() {
				for range 8 {
					var body io.Reader = bytes.NewReader(make([]byte, 6<<20))
					if chunked {
						body = lookingBody{body, f}
					}
					if res := f.send("PUT", f.putLink(id), body, headers...); res.status >= 300 && res.code() != fault.StorageFull {
						t.Errorf("%v, chunked %v: status %d, %s", headers, chunked, res.status, res.body)
					}
					f.forget(id)
				}
			})
		}
	}
	wg.Wait()
	f.server.Close() // waits for the handler
	must.Equal(t, "bytes that stay reserved", f.space.promised.Load(), 0)
	if disk, err := f.Disk(); err != nil || disk.Size-disk.Free > 1<<20 {
		t.Errorf("%d bytes are still taken, err %v", disk.Size-disk.Free, err)
	}
}

// TestPromisedSpaceIsNotPromisedTwice tests the case of file systems that cannot preallocate
// blocks.
func TestPromisedSpaceIsNotPromisedTwice(t *testing.T) {
	f := startSmall(t, 16, func(o *Options) { o.Reserve = 8 << 20 })
	first, second := claim{dir: f.Dir}, claim{dir: f.Dir}
	promise := func(c *claim, n int64, want fault.Code) {
		t.Helper()
		if err := c.promise(n); err == nil && want != "" || err != nil && fault.CodeOf(err) != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	promise(&first, 5<<20, "")
	promise(&second, 5<<20, fault.StorageFull)
	promise(&second, 2<<20, "")
	if disk, err := f.Disk(); err != nil || disk.Shortage(2<<20) == "" {
		t.Errorf("others than uploads find %d bytes free, err %v; 7 MiB of 16 are promised", disk.Free, err)
	}
	promise(&first, 6<<20, fault.StorageFull)
	in, err := f.receive(-1)
	must.OK(t, err)
	if n, err := first.writeBlocks(in.file, make([]byte, 1<<20)); n != 1<<20 || err != nil || first.promised != 4<<20 {
		t.Errorf("%d bytes written, %v; %d are still promised", n, err, first.promised)
	}
	promise(&first, 5<<20, fault.StorageFull) // written bytes count as disk usage
	promise(&second, 3<<19, "")
	first.release()
	first.release()
	promise(&second, 6<<20, "")
	second.release()
	if err := in.discard(); err != nil || f.space.promised.Load() != 0 {
		t.Errorf("%v; %d bytes stay promised", err, f.space.promised.Load())
	}
	f.upload(app.UploadID(f.newUpload("text/plain")), strings.Repeat("a", 7<<20))
}
