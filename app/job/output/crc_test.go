package output

import (
	"context"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

// ends is a context that ends once it was asked some times.
type ends struct {
	context.Context
	after int
}

func (e *ends) Err() error {
	if e.after--; e.after < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestSumGoesOnWhereItStopped reads a file in several requests, of which each has time
// for one block.
func TestSumGoesOnWhereItStopped(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 100<<10) // six and a bit blocks
	path := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	s, u := newSums(), &app.Upload{ID: "u", Size: int64(len(text))}
	requests := 0
	for {
		requests++
		got, err := s.read(&ends{t.Context(), 1}, u, path)
		if err == nil {
			if want := crc32.ChecksumIEEE([]byte(text)); got != want || requests != 7 || len(s.partial) != 0 {
				t.Errorf("%x after %d requests, %d left; want %x after 7", got, requests, len(s.partial), want)
			}
			return
		}
		if !errors.Is(err, context.DeadlineExceeded) || s.partial["u"].len != int64(requests)*256<<10 || requests > 7 {
			t.Fatalf("request %d: %v, read %d bytes", requests, err, s.partial["u"].len)
		}
	}
}

func TestFilesReadInPartAreBounded(t *testing.T) {
	s := newSums()
	for i := range 1000 {
		s.keep(app.UploadID(rune(i)), partialSum{len: 1})
		if len(s.partial) > maxSums {
			t.Fatalf("%d files", len(s.partial))
		}
	}
}

// TestShortUploadIsReported has a file that is shorter than its record says.
func TestShortUploadIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(path, []byte("short"), 0o600))
	s := newSums()
	if crc, err := s.read(t.Context(), &app.Upload{ID: "u", Size: 10}, path); err == nil {
		t.Errorf("the sum is %x", crc)
	}
}
