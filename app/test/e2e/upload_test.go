package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"molrun/app/test/must"
)

// grant is an upload record.
type grant struct {
	Status, FileID, UploadURL, DownloadURL, Filename, Folder, ExpiresAt string

	Instructions struct {
		Upload, CurlExample string
		Headers             map[string]string
	}
}

func (u user) grant(filename string) (g grant) {
	u.t.Helper()
	u.do("PUT", "/upload/"+url.PathEscape(filename), nil).want(200).into(&g)
	return g
}

// peak returns the server's peak memory.
func (s *instance) peak() int64 {
	s.t.Helper()
	status := must.Read(s.t, fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	_, rest, _ := strings.Cut(status, "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	must.OK(s.t, err)
	return kib << 10
}

func TestUploadsAndDownloadsOfAnySizeUseConstantMemory(t *testing.T) {
	t.Parallel()
	const size = 160 << 20
	s := startServer(t, serverOptions{config: "[limits]\nbody = \"1KiB\"\n"}) // limits JSON bodies, but not files
	u := s.user("lab", "ann@lab.example")
	before := s.peak()
	for _, chunked := range []bool{true, false} {
		g := u.grant("large.bin")
		r, err := http.NewRequestWithContext(t.Context(), "PUT", g.UploadURL, io.LimitReader(zeros{}, size))
		must.OK(t, err)
		if !chunked {
			r.ContentLength = size
		}
		response, err := http.DefaultClient.Do(r)
		must.OK(t, err)
		if text := body(t, response); response.StatusCode != 200 {
			t.Fatalf("%d %s", response.StatusCode, text)
		}
		u.do("POST", "/upload/"+g.FileID+"/complete", fmt.Sprintf(`{"size":%d}`, size)).want(200)
		response, err = http.Get(g.DownloadURL)
		must.OK(t, err)
		n, err := io.Copy(io.Discard, response.Body)
		must.OK(t, err)
		must.OK(t, response.Body.Close())
		must.Equal(t, "downloaded", n, size)
		u.do("DELETE", "/files/"+g.FileID, nil).want(204)
	}
	if grown := s.peak() - before; grown > size/4 {
		t.Errorf("memory grew by %d MiB for files of %d MiB", grown>>20, size>>20)
	}
}

// zeros is an endless reader of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestLinkLifetimes(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	u.submit("j", "shell", script("echo a > out/a"))
	u.finished("j")
	start := time.Now() // all links are created later
	g := u.grant("a.txt")
	whole, part := u.linkTo(`{"jobName":"j"}`), u.linkTo(`{"jobName":"j","fileName":"a"}`)
	for _, tt := range []struct {
		name, link, expires string
		lives               time.Duration
	}{
		{"uploadUrl", g.UploadURL, g.ExpiresAt, 24 * time.Hour},
		{"downloadUrl of an upload", g.DownloadURL, g.ExpiresAt, 24 * time.Hour},
		{"link to an archive", whole.DownloadURL, whole.ExpiresAt, time.Hour},
		{"link to a file", part.DownloadURL, part.ExpiresAt, time.Hour},
	} {
		expires, err := time.Parse(time.RFC3339Nano, tt.expires)
		must.OK(t, err)
		signed := time.Unix(int64(claims(t, tt.link)["exp"].(float64)), 0)
		for what, at := range map[string]time.Time{"expiresAt": expires, "the token": signed} {
			if off := at.Sub(start) - tt.lives; off < -5*time.Second || off > 2*time.Minute {
				t.Errorf("%s, %s: lives %v, want %v", tt.name, what, at.Sub(start), tt.lives)
			}
		}
	}
}
