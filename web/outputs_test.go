package web_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"molrun/app"
)

// begun submits a job and starts it. It returns where its program writes.
func (s *service) begun(name string) (j *app.Job, out string) {
	s.t.Helper()
	s.submit(name)
	j = s.claim(name)
	return j, s.outOf(j)
}

func (s *service) outOf(j *app.Job) string {
	return filepath.Join(s.blobs.JobDir(j.ID), strconv.Itoa(j.Attempts), "work", "out")
}

func TestFilesAreServedInEveryStateThatHasSome(t *testing.T) {
	s := start(t)
	s.submit("a")
	same(t, "list queued", s.want(409, "GET", "/jobs/a/files", "").code(), "JOB_NOT_COMPLETED")
	same(t, "queued", s.want(409, "GET", "/jobs/a/files/a.csv", "").code(), "JOB_NOT_COMPLETED")

	j := s.claim("a")
	s.write(filepath.Join(s.outOf(j), "sub/a b.csv"), "x,y\n1,2\n")
	s.write(filepath.Join(s.outOf(j), "job.json"), "{}")
	same(t, "list running", s.want(200, "GET", "/jobs/a/files", "").body,
		`{"files":[{"path":"job.json","size":2},{"path":"sub/a b.csv","size":8}],"incomplete":true}`+"\n")
	for _, path := range []string{"/jobs/a/files/sub/a%20b.csv", "/jobs/a/files/sub%2Fa%20b.csv"} {
		running := s.want(200, "GET", path, "")
		same(t, "running", running.body, "x,y\n1,2\n")
		same(t, "headers", []string{
			running.header.Get("X-Incomplete"), running.header.Get("Content-Type"), running.header.Get("X-Content-Type-Options"),
			running.header.Get("Content-Disposition"), running.header.Get("Content-Security-Policy"), running.header.Get("Cache-Control"),
		}, []string{"1", "text/plain; charset=utf-8", "nosniff", `attachment; filename="a b.csv"; filename*=UTF-8''a%20b.csv`, "sandbox; default-src 'none'", "private, no-store"})
		if tag := running.header.Get("ETag"); !strings.HasPrefix(tag, `W/"`) {
			t.Errorf("the ETag of a file that may change is %s", tag)
		}
		same(t, "HEAD", s.want(200, "HEAD", path, "").header.Get("Content-Length"), "8")
	}

	s.finish(j)
	same(t, "list failed", s.want(200, "GET", "/jobs/a/files", "").body, `{"files":[{"path":"job.json","size":2},{"path":"sub/a b.csv","size":8}]}`+"\n")
	failed := s.want(200, "GET", "/jobs/a/files/job.json", "")
	same(t, "failed", []string{failed.body, failed.header.Get("X-Incomplete")}, []string{"{}", ""})
	if err := os.RemoveAll(filepath.Dir(s.outOf(j))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "/job.json"} {
		same(t, "removed", s.want(404, "GET", "/jobs/a/files"+path, "").code(), "OUTPUT_REMOVED")
	}

	s.want(200, "POST", "/jobs/a/retry", "")
	s.run("a", map[string]string{"sub/a b.csv": "x\n", "page.html": "<script>"})
	done := s.want(200, "GET", "/jobs/a/files/sub/a%20b.csv", "")
	same(t, "completed", []string{done.body, done.header.Get("ETag"), done.header.Get("X-Incomplete")}, []string{"x\n", `"` + sha256Hex("x\n") + `"`, ""})
	same(t, "a page", s.want(200, "GET", "/jobs/a/files/page.html", "").header.Get("Content-Type"), "application/octet-stream")
	for _, path := range []string{"sub", "none", "../a", "sub/../page.html", "/page.html", "sub%2F", "%00", "%FF"} {
		if a := s.as(s.ann, "GET", "/jobs/a/files/"+path, ""); a.status != 404 && a.status != 422 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestFilesOfAJobThatNeverRan(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.want(200, "POST", "/jobs/a/cancel", "")
	same(t, "code", s.want(404, "GET", "/jobs/a/files", "").code(), "NOT_FOUND")
}

func TestFilesOfABatchAreThoseOfItsRows(t *testing.T) {
	s := start(t)
	s.want(200, "POST", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{},{}]}`)
	s.submit("other")
	s.run("b-1", map[string]string{"a.txt": "one"})
	j := s.claim("b-2")
	s.write(filepath.Join(s.outOf(j), "a.txt"), "two")
	same(t, "list", s.want(200, "GET", "/jobs/b/files", "").body, `{"files":[{"path":"b-1/a.txt","size":3,"sha256":"`+sha256Hex("one")+`"}],"incomplete":true}`+"\n")
	same(t, "of a completed row", s.want(200, "GET", "/jobs/b/files/b-1/a.txt", "").body, "one")
	same(t, "of a running row", s.want(200, "GET", "/jobs/b/files/b-2/a.txt", "").body, "two")
	for _, path := range []string{"b-1", "b-1/none", "b-3/a.txt", "other/a.txt", "a.txt"} {
		s.want(404, "GET", "/jobs/b/files/"+path, "")
	}
}

func TestRangesOfFiles(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.run("a", map[string]string{"a.txt": "0123456789"})
	get := func(headers ...string) answer {
		return s.send("GET", "/jobs/a/files/a.txt", "", append(headers, "x-api-key", s.ann)...)
	}
	same(t, "part", get("Range", "bytes=2-4").body, "234")
	same(t, "end", get("Range", "bytes=-3").body, "789")
	beyond := get("Range", "bytes=20-")
	same(t, "beyond", []string{strconv.Itoa(beyond.status), beyond.code(), beyond.header.Get("Content-Range"), beyond.header.Get("ETag")}, []string{"416", "RANGE_INVALID", "bytes */10", ""})
	tag := get().header.Get("ETag")
	same(t, "same", get("If-None-Match", tag).status, 304)
	same(t, "still the same", get("If-Range", tag, "Range", "bytes=0-0").status, 206)
	same(t, "another", get("If-Range", `"x"`, "Range", "bytes=0-0").status, 200)
}

// TestRunningProgramsCannotMakeTheServiceReadOtherFiles lays what a program could
// into its output directory.
func TestRunningProgramsCannotMakeTheServiceReadOtherFiles(t *testing.T) {
	s := start(t)
	j, out := s.begun("a")
	s.write(filepath.Join(out, "dir/own.txt"), "own")
	secret := filepath.Join(t.TempDir(), "secret.txt")
	s.write(secret, "secret")
	for _, err := range []error{
		os.Symlink(secret, filepath.Join(out, "link.txt")),
		os.Symlink(filepath.Dir(secret), filepath.Join(out, "linked")),
		os.Symlink("dir", filepath.Join(out, "inside")),
		os.Symlink("own.txt", filepath.Join(out, "dir/inside.txt")),
		os.Symlink("/proc/self/root"+secret, filepath.Join(out, "proc.txt")),
		os.Link(secret, filepath.Join(out, "hard.txt")),
		syscall.Mkfifo(filepath.Join(out, "fifo.txt"), 0o600),
		os.WriteFile(filepath.Join(out, "closed.txt"), nil, 0o000),
		os.WriteFile(filepath.Join(out, "not\xffutf8"), nil, 0o600),
		os.WriteFile(filepath.Join(out, "line\nbreak"), nil, 0o600),
		os.Truncate(filepath.Join(out, "dir/own.txt"), 3),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	listed := s.want(200, "GET", "/jobs/a/files", "").body
	same(t, "list", listed, `{"files":[{"path":"closed.txt","size":0},{"path":"dir/own.txt","size":3}],"incomplete":true}`+"\n")
	same(t, "own", s.want(200, "GET", "/jobs/a/files/dir/own.txt", "").body, "own")
	for _, path := range []string{
		"link.txt", "linked/secret.txt", "inside/own.txt", "dir/inside.txt", "proc.txt", "hard.txt", "fifo.txt", "dir", "not%FFutf8",
		"../settings.json", "%2E%2E/settings.json", "dir/../dir/own.txt", "./dir/own.txt", secret, "%2F" + secret,
	} {
		if a := s.as(s.ann, "GET", "/jobs/a/files/"+path, ""); a.status != 404 && a.status != 422 || strings.Contains(a.body, `"secret"`) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	// A link may stand for the output directory itself, and for the one above it.
	for _, dir := range []string{out, filepath.Dir(out)} {
		aside := dir + ".aside"
		if err := os.Rename(dir, aside); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(aside, dir); err != nil {
			t.Fatal(err)
		}
		s.want(404, "GET", "/jobs/a/files/dir/own.txt", "")
		s.want(404, "GET", "/jobs/a/files", "")
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(aside, dir); err != nil {
			t.Fatal(err)
		}
	}
	s.want(200, "GET", "/jobs/a/files/dir/own.txt", "")
	// The service itself puts a link where the task runs on other machines.
	attempt := filepath.Dir(filepath.Dir(out))
	elsewhere := filepath.Join(t.TempDir(), "there")
	if err := os.Rename(attempt, elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, attempt); err != nil {
		t.Fatal(err)
	}
	same(t, "on other machines", s.want(200, "GET", "/jobs/a/files/dir/own.txt", "").body, "own")
	// While a result is collected, it is in its place and the job is still RUNNING.
	if err := os.Rename(filepath.Join(elsewhere, "work/out"), filepath.Join(s.blobs.JobDir(j.ID), "result")); err != nil {
		t.Fatal(err)
	}
	same(t, "being collected", s.want(200, "GET", "/jobs/a/files/dir/own.txt", "").body, "own")
}

// TestFilesThatChangeWhileTheyAreSent sends a large file of which the client has
// read only the beginning.
func TestFilesThatChangeWhileTheyAreSent(t *testing.T) {
	const size = 32 << 20
	s := start(t)
	_, out := s.begun("a")
	path := filepath.Join(out, "a.dat")
	for name, change := range map[string]func() error{
		"grows": func() error {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.Write(make([]byte, 1<<20))
			return err
		},
		"is replaced": func() error {
			if err := os.WriteFile(path+".new", []byte("new"), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"is removed": func() error { return os.Remove(path) },
		"shrinks":    func() error { return os.Truncate(path, 0) },
	} {
		s.write(path, "")
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/jobs/a/files/a.dat", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("x-api-key", s.ann)
		resp, err := http.DefaultTransport.RoundTrip(r) // the checker would read all of the body
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if name == "shrinks" {
			if err == nil {
				t.Errorf("a file that %s: %d bytes came as if they were all", name, n)
			}
		} else if n != size-10 || err != nil || resp.ContentLength != size {
			t.Errorf("a file that %s: %d bytes of %d, %v", name, n+10, resp.ContentLength, err)
		}
	}
}

// viewing returns a setup with an algorithm that has views.
func viewing(s *setup) {
	s.algorithm = echoAlgorithm + `
[[views]]
name = "motion"
kind = "trajectory"
title = "Motion"
file = "*/run*.xtc"
topology = "*/top.pdb"

[[views]]
name = "energy"
kind = "series"
file = "energy.csv"
x = "time"
y = ["potential"]
units = { time = "ps" }
`
}

func TestViewsAreShownWithTheFilesThereAre(t *testing.T) {
	s := start(t, viewing)
	const motion, energy = `{"name":"motion","kind":"trajectory","title":"Motion","files":[`, `{"name":"energy","kind":"series","title":"energy","x":"time","y":["potential"],"units":{"time":"ps"},"files":[`
	const none = `{"views":[` + motion + `]},` + energy + "]}]}\n"
	s.submit("a")
	same(t, "queued", s.want(200, "GET", "/jobs/a/views", "").body, none)
	j := s.claim("a")
	for _, name := range []string{"a/run.xtc", "a/run2.xtc", "a/top.pdb", "b/run.xtc", "b/.run.xtc", ".c/run.xtc", "run.xtc"} {
		s.write(filepath.Join(s.outOf(j), name), "x")
	}
	const files = `{"path":"a/run.xtc","size":1,"topology":"a/top.pdb"},{"path":"a/run2.xtc","size":1,"topology":"a/top.pdb"},{"path":"b/run.xtc","size":1}`
	same(t, "running", s.want(200, "GET", "/jobs/a/views", "").body, `{"views":[`+motion+files+`]},`+energy+`]}],"incomplete":true}`+"\n")
	s.finish(j)
	same(t, "failed", s.want(200, "GET", "/jobs/a/views", "").body, `{"views":[`+motion+files+`]},`+energy+"]}]}\n")
	if err := os.RemoveAll(s.outOf(j)); err != nil {
		t.Fatal(err)
	}
	same(t, "removed", s.want(200, "GET", "/jobs/a/views", "").body, none)
	s.want(200, "POST", "/jobs/a/retry", "")
	s.run("a", map[string]string{"energy.csv": "1"})
	same(t, "completed", s.want(200, "GET", "/jobs/a/views", "").body, `{"views":[`+motion+`]},`+energy+`{"path":"energy.csv","size":1}]}]}`+"\n")

	s.want(200, "POST", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{}]}`)
	s.want(404, "GET", "/jobs/b/views", "")
	same(t, "of a row", s.want(200, "GET", "/jobs/b-1/views", "").body, none)
	same(t, "in the catalogue", len(s.want(200, "GET", "/algorithms/echo", "").fields(t)["views"].([]any)), 2)
}

func TestAViewListsAThousandFiles(t *testing.T) {
	s := start(t, viewing)
	_, out := s.begun("a")
	for i := range 1001 {
		s.write(filepath.Join(out, strconv.Itoa(i), "run.xtc"), "")
	}
	one := s.want(200, "GET", "/jobs/a/views", "").fields(t)["views"].([]any)[0].(map[string]any)
	same(t, "files", len(one["files"].([]any)), 1000)
	same(t, "truncated", one["truncated"], any(true))
}
