package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
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

func TestUploadRecordHasEverythingTheUploadNeeds(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	for name, want := range map[string]string{
		"a.pdb": "chemical/x-pdb", "a.FASTA": "text/x-fasta", "a.json": "application/json", "a.txt": "text/plain", "a.csv": "text/csv",
		"a.html": "application/octet-stream", "a": "application/octet-stream", "a.pdb.gz": "application/gzip",
	} {
		g := u.grant(name)
		if g.Status != "ready" || g.FileID == "" || g.Filename != name || g.Folder != "inputs" || g.Instructions.Upload == "" {
			t.Errorf("%s: %+v", name, g)
		}
		if len(g.Instructions.Headers) != 1 || g.Instructions.Headers["Content-Type"] != want {
			t.Errorf("%s: headers %v, want the Content-Type %s", name, g.Instructions.Headers, want)
		}
		if strings.Contains(g.Instructions.CurlExample, "\n") || !strings.HasPrefix(g.Instructions.CurlExample, "curl ") {
			t.Errorf("%s: %q is not a single shell command", name, g.Instructions.CurlExample)
		}
	}
	var g grant
	u.do("PUT", "/upload/a.txt?folder="+url.QueryEscape("1/2/3/4/5/6/7/é"), nil).want(200).into(&g)
	if g.Folder != "1/2/3/4/5/6/7/é" {
		t.Errorf("folder %q", g.Folder)
	}
	for _, folder := range []string{"1/2/3/4/5/6/7/8/9", "..", "a/../b", "/a", "a/", "a//b", strings.Repeat("é", 128), ""} {
		u.do("PUT", "/upload/a.txt?folder="+url.QueryEscape(folder), nil).detail("query.folder")
	}
	u.do("PUT", "/upload/a.txt", `{"size":1}`).detail("body")
	u.do("PUT", "/upload/a.txt", strings.NewReader("the file itself")).detail("body")
	u.do("PUT", "/upload/a.txt", "null").want(200)
}

func TestUploadCanBeReplacedUntilItIsCompleted(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	g := u.grant("a.txt")
	complete := "/upload/" + g.FileID + "/complete"
	u.do("POST", complete, nil).code(409, "UPLOAD_NOT_RECEIVED")
	u.do("PUT", g.UploadURL, strings.NewReader("first"), "Content-Type", "text/html").code(403, "LINK_INVALID")
	u.do("PUT", g.UploadURL, strings.NewReader("first"), "Content-Type", "text/plain").want(200)
	u.do("PUT", g.UploadURL, io.MultiReader(strings.NewReader("second one"))).want(200) // chunked, without a Content-Type
	u.do("POST", complete, `{"size":5}`).detail("body.size")
	first := u.do("POST", complete, `{"size":10}`).want(200)
	sum := sha256.Sum256([]byte("second one"))
	for name, want := range map[string]any{
		"status": "completed", "fileId": g.FileID, "filename": "a.txt", "folder": "inputs", "size": 10.0, "contentType": "text/plain", "sha256": hex.EncodeToString(sum[:]),
	} {
		var file map[string]any
		if first.into(&file); file[name] != want || file["uploadedAt"] == nil {
			t.Errorf("%s is %v, want %v: %s", name, file[name], want, first.body)
		}
	}
	for _, again := range []any{nil, "{}", `{"size":10}`} {
		if a := u.do("POST", complete, again).want(200); string(a.body) != string(first.body) {
			t.Errorf("repeated completion: %s, first: %s", a.body, first.body)
		}
	}
	u.do("POST", complete, `{"size":5}`).detail("body.size")
	u.do("PUT", g.UploadURL, strings.NewReader("third")).code(409, "UPLOAD_COMPLETED")
	if got := u.do("GET", g.DownloadURL, nil).want(200); string(got.body) != "second one" {
		t.Errorf("downloadUrl returns %q", got.body)
	}
}

// peak returns the peak memory of the server.
func (s *instance) peak() int64 {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	must(s.t, err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	must(s.t, err)
	return kib << 10
}

func TestUploadsAndDownloadsOfAnySizeUseConstantMemory(t *testing.T) {
	t.Parallel()
	const size = 160 << 20
	s := startServer(t, serverOptions{config: "[limits]\nbody = \"1KiB\"\n"}) // applies to JSON; files are unlimited
	u := s.user("lab", "ann@lab.example")
	before := s.peak()
	for _, chunked := range []bool{true, false} {
		g := u.grant("large.bin")
		r, err := http.NewRequestWithContext(t.Context(), "PUT", g.UploadURL, io.LimitReader(zeros{}, size))
		must(t, err)
		if !chunked {
			r.ContentLength = size
		}
		response, err := http.DefaultClient.Do(r)
		must(t, err)
		if text := body(t, response); response.StatusCode != 200 {
			t.Fatalf("%d %s", response.StatusCode, text)
		}
		u.do("POST", "/upload/"+g.FileID+"/complete", fmt.Sprintf(`{"size":%d}`, size)).want(200)
		response, err = http.Get(g.DownloadURL)
		must(t, err)
		n, err := io.Copy(io.Discard, response.Body)
		must(t, err)
		must(t, response.Body.Close())
		if n != size {
			t.Errorf("downloaded %d bytes, want %d", n, size)
		}
		u.do("DELETE", "/files/"+g.FileID, nil).want(204)
	}
	if grown := s.peak() - before; grown > size/4 {
		t.Errorf("memory grew by %d MiB for files of %d MiB", grown>>20, size>>20)
	}
}

// zeros is an endless file.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestFilesAreListedNewestFirstAndDeletedPermanently(t *testing.T) {
	t.Parallel()
	s := plain(t)
	ann, bob := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example")
	var want []string
	for i := range 5 {
		want = append([]string{ann.upload(fmt.Sprintf("%d.txt", i), "x")}, want...)
	}
	theirs := bob.upload("bob.txt", "x")
	list := func(u user, query string) (ids []string) {
		for key := ""; ; {
			var p struct {
				Files    []struct{ FileID string }
				StartKey string
			}
			u.do("GET", "/files?limit=2"+query+key, nil).want(200).into(&p)
			for _, f := range p.Files {
				ids = append(ids, f.FileID)
			}
			if p.StartKey == "" {
				return ids
			}
			key = "&startKey=" + p.StartKey
		}
	}
	same(t, "own files", list(ann, ""), want)
	same(t, "the organization's files", list(ann, "&organization=true"), append([]string{theirs}, want...))
	same(t, "by folder", list(ann, "&folder=inputs"), want)
	same(t, "by another folder", list(ann, "&folder=other"), nil)
	ann.do("DELETE", "/files/"+want[0], nil).want(204)
	ann.do("DELETE", "/files/"+want[0], nil).code(404, "NOT_FOUND")
	same(t, "after a delete", list(ann, ""), want[1:])
}

func TestLinkLifetimes(t *testing.T) {
	t.Parallel()
	for config, upload := range map[string]time.Duration{"": 24 * time.Hour, "[links]\nupload = \"5m\"\n": 5 * time.Minute} {
		u := shellServer(t, config).user("lab", "ann@lab.example")
		u.submit("j", "shell", script("echo a > out/a"))
		u.finished("j")
		g, start := u.grant("a.txt"), time.Now()
		whole, part := u.linkTo(`{"jobName":"j"}`), u.linkTo(`{"jobName":"j","fileName":"a"}`)
		for _, tt := range []struct {
			name, link, expires string
			lives               time.Duration
		}{
			{"uploadUrl", g.UploadURL, g.ExpiresAt, upload},
			{"downloadUrl of an upload", g.DownloadURL, g.ExpiresAt, upload},
			{"link to an archive", whole.DownloadURL, whole.ExpiresAt, time.Hour},
			{"link to a file", part.DownloadURL, part.ExpiresAt, time.Hour},
		} {
			expires, err := time.Parse(time.RFC3339Nano, tt.expires)
			must(t, err)
			signed := time.Unix(int64(claims(t, tt.link)["exp"].(float64)), 0)
			for what, at := range map[string]time.Time{"expiresAt": expires, "the token": signed} {
				if off := at.Sub(start) - tt.lives; off < -5*time.Second || off > patience {
					t.Errorf("%s, %s: lives %v, want %v", tt.name, what, at.Sub(start), tt.lives)
				}
			}
		}
	}
}

func TestInterruptedUploadLeavesNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	u := s.user("lab", "ann@lab.example")
	g := u.grant("a.txt")
	r, err := http.NewRequestWithContext(t.Context(), "PUT", g.UploadURL, io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), brokenReader{}))
	must(t, err)
	r.ContentLength = 2 << 20
	if response, err := http.DefaultClient.Do(r); err == nil {
		t.Errorf("an interrupted upload got status %d", response.StatusCode)
		response.Body.Close()
	}
	u.do("POST", "/upload/"+g.FileID+"/complete", nil).code(409, "UPLOAD_NOT_RECEIVED")
	s.stop()
	s.stored(func(path string, info os.FileInfo) {
		if info.Size() >= 1<<20 && filepath.Base(path) != "jobs.db" || strings.Contains(path, g.FileID) {
			t.Errorf("the interrupted upload left %s", path)
		}
	})
}

// brokenReader is a client that disconnects.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
