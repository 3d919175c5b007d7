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
	"molrun/app/test/must"
)

// begun submits and starts a job. It returns the job and its output directory.
func (s *service) begun(name string) (j *app.Job, out string) {
	s.t.Helper()
	s.submit(name)
	j = s.claim(name)
	return j, s.outOf(j)
}

func (s *service) outOf(j *app.Job) string {
	return filepath.Join(s.blobs.JobDir(j.ID), strconv.Itoa(j.Attempts), "work", "out")
}

func TestFilesAreServedInEveryState(t *testing.T) {
	s := start(t)
	s.submit("a")
	same(t, "list queued", s.want(409, "GET", "/jobs/a/files", "").code(), "JOB_NOT_COMPLETED")
	same(t, "queued", s.want(409, "GET", "/jobs/a/files/a.csv", "").code(), "JOB_NOT_COMPLETED")

	j := s.claim("a")
	s.write(filepath.Join(s.outOf(j), "sub/a b.csv"), "x,y\n1,2\n")
	s.write(filepath.Join(s.outOf(j), "job.json"), "{}")
	same(t, "list running", s.want(200, "GET", "/jobs/a/files", "").body,
		`{"files":[{"path":"job.json","size":2},{"path":"sub/a b.csv","size":8}],"incomplete":true}`+"\n")
	same(t, "result of a running job", s.want(409, "POST", "/result", `{"jobName":"a","fileName":"job.json","partial":true}`).code(), "JOB_NOT_COMPLETED")
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
	must.OK(t, os.RemoveAll(filepath.Dir(s.outOf(j))))
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
	s.refused(s.ann, 404, "NOT_FOUND", "GET", "/jobs/a/files", "")
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

// TestRunningProgramsCannotMakeTheServiceReadOtherFiles creates hostile files and links
// in a program's output directory.
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
		must.OK(t, err)
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
	// The output directory itself, or its parent, could be a link.
	for _, dir := range []string{out, filepath.Dir(out)} {
		aside := dir + ".aside"
		must.OK(t, os.Rename(dir, aside))
		must.OK(t, os.Symlink(aside, dir))
		s.want(404, "GET", "/jobs/a/files/dir/own.txt", "")
		s.want(404, "GET", "/jobs/a/files", "")
		must.OK(t, os.Remove(dir))
		must.OK(t, os.Rename(aside, dir))
	}
	s.want(200, "GET", "/jobs/a/files/dir/own.txt", "")
	// The service itself creates a link if the task runs on another machine.
	attempt := filepath.Dir(filepath.Dir(out))
	elsewhere := filepath.Join(t.TempDir(), "there")
	must.OK(t, os.Rename(attempt, elsewhere))
	must.OK(t, os.Symlink(elsewhere, attempt))
	same(t, "on other machines", s.want(200, "GET", "/jobs/a/files/dir/own.txt", "").body, "own")
	// While a result is being collected, it is already in place and the job is still
	// RUNNING.
	must.OK(t, os.Rename(filepath.Join(elsewhere, "work/out"), filepath.Join(s.blobs.JobDir(j.ID), "result")))
	same(t, "being collected", s.want(200, "GET", "/jobs/a/files/dir/own.txt", "").body, "own")
}

// TestFilesThatChangeWhileTheyAreSent changes a large file after the client has read only
// its beginning.
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
		must.OK(t, os.Truncate(path, size))
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/jobs/a/files/a.dat", nil)
		must.OK(t, err)
		r.Header.Set("x-api-key", s.ann)
		resp, err := http.DefaultTransport.RoundTrip(r) // bypasses the checker, which would read the whole body
		must.OK(t, err)
		must.OK(t, must.Error2(io.ReadFull(resp.Body, make([]byte, 10))))
		must.OK(t, change())
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

// viewing sets up an algorithm that has views.
func viewing(s *setup) {
	s.algorithm = echoAlgorithm + `
[[outputs]]
name = "motion"
file = "*/run*.xtc"

[[outputs]]
name = "start"
file = "*/top.pdb"

[[outputs]]
name = "series"
file = "*.csv"

[[outputs]]
name = "hits"
file = "hits*.tsv"

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

[[views]]
name = "all"
kind = "series"
file = "*.csv"

[[views]]
name = "hits"
kind = "table"
file = "hits*.tsv"
units = { score = "bits" }
`
}

func TestViewsAreShownWithTheFilesThereAre(t *testing.T) {
	s := start(t, viewing)
	const motion, energy = `{"name":"motion","kind":"trajectory","title":"Motion","files":[`, `{"name":"energy","kind":"series","title":"energy","x":"time","y":["potential"],"units":{"time":"ps"},"files":[`
	const rest = `,{"name":"all","kind":"series","title":"all","files":[]},{"name":"hits","kind":"table","title":"hits","units":{"score":"bits"},"files":[]}]`
	const none = `{"views":[` + motion + `]},` + energy + `]}` + rest + "}\n"
	s.submit("a")
	same(t, "queued", s.want(200, "GET", "/jobs/a/views", "").body, none)
	j := s.claim("a")
	for _, name := range []string{"a/run.xtc", "a/run2.xtc", "a/top.pdb", "b/run.xtc", "b/.run.xtc", ".c/run.xtc", "run.xtc"} {
		s.write(filepath.Join(s.outOf(j), name), "x")
	}
	const files = `{"path":"a/run.xtc","size":1,"topology":"a/top.pdb"},{"path":"a/run2.xtc","size":1,"topology":"a/top.pdb"},{"path":"b/run.xtc","size":1}`
	same(t, "running", s.want(200, "GET", "/jobs/a/views", "").body, `{"views":[`+motion+files+`]},`+energy+`]}`+rest+`,"incomplete":true}`+"\n")
	s.finish(j)
	same(t, "failed", s.want(200, "GET", "/jobs/a/views", "").body, `{"views":[`+motion+files+`]},`+energy+`]}`+rest+"}\n")
	must.OK(t, os.RemoveAll(s.outOf(j)))
	same(t, "removed", s.want(200, "GET", "/jobs/a/views", "").body, none)
	s.want(200, "POST", "/jobs/a/retry", "")
	s.run("a", map[string]string{"energy.csv": "1"})
	completed := strings.Replace(strings.ReplaceAll(none, energy, energy+`{"path":"energy.csv","size":1}`), `"title":"all","files":[`, `"title":"all","files":[{"path":"energy.csv","size":1}`, 1)
	same(t, "completed", s.want(200, "GET", "/jobs/a/views", "").body, completed)

	s.want(200, "POST", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{}]}`)
	s.want(404, "GET", "/jobs/b/views", "")
	same(t, "of a row", s.want(200, "GET", "/jobs/b-1/views", "").body, none)
	same(t, "in the catalogue", len(s.want(200, "GET", "/algorithms/echo", "").fields(t)["views"].([]any)), 4)
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

func TestSeriesAreShownWhileTheyAreWritten(t *testing.T) {
	s := start(t, viewing)
	s.submit("a")
	s.want(409, "GET", "/jobs/a/series/energy", "")
	j := s.claim("a")
	s.want(404, "GET", "/jobs/a/series/energy", "")
	path := filepath.Join(s.outOf(j), "energy.csv")
	s.write(path, "time,potential,kin")
	same(t, "no line yet", s.want(200, "GET", "/jobs/a/series/energy", "").body, `{"name":"energy","file":"energy.csv","rows":0,"columns":[],"values":[],"incomplete":true}`+"\n")
	s.write(path, "time,potential,kinetic,note\n0,-1.5,1,a\n1,nan,2,b\n2,-1.25,3,c\n3,-1")
	const columns = `"columns":[{"name":"time","unit":"ps"},{"name":"potential"}],`
	same(t, "running", s.want(200, "GET", "/jobs/a/series/energy", "").body, `{"name":"energy","file":"energy.csv","rows":3,`+columns+`"values":[[0,1,2],[-1.5,null,-1.25]],"incomplete":true}`+"\n")
	same(t, "columns that were chosen", s.want(200, "GET", "/jobs/a/series/energy?column=kinetic&column=potential", "").fields(t)["values"], any([]any{[]any{0.0, 1.0, 2.0}, []any{1.0, 2.0, 3.0}, []any{-1.5, nil, -1.25}}))
	same(t, "all columns with numbers", s.want(200, "GET", "/jobs/a/series/all", "").fields(t)["columns"], any([]any{map[string]any{"name": "time"}, map[string]any{"name": "potential"}, map[string]any{"name": "kinetic"}}))
	s.finish(j)
	same(t, "failed", s.want(200, "GET", "/jobs/a/series/energy", "").fields(t)["rows"], any(3.0))
	must.OK(t, os.RemoveAll(s.outOf(j)))
	same(t, "removed", s.want(404, "GET", "/jobs/a/series/energy", "").code(), "OUTPUT_REMOVED")

	s.want(200, "POST", "/jobs/a/retry", "")
	var long strings.Builder
	long.WriteString("time,potential\n")
	for i := range 10_000 {
		long.WriteString(strconv.Itoa(i) + "," + strconv.Itoa(i*7919%101) + "\n")
	}
	s.run("a", map[string]string{"energy.csv": long.String() + "10000,7", "z.csv": "t,v\n1,2\n", "many.csv": "t" + strings.Repeat(",v", 30) + "\n1" + strings.Repeat(",2", 30) + "\n"})
	series := func(query string) map[string]any {
		return s.want(200, "GET", "/jobs/a/series/energy"+query, "").fields(t)
	}
	for query, points := range map[string]int{"": 2000, "?points=3": 3, "?points=10000": 10_000} {
		got := series(query)
		x := got["values"].([]any)[0].([]any)
		if got["rows"] != 10_001.0 || len(x) != points || x[0] != 0.0 || x[points-1] != 10_000.0 {
			t.Errorf("%q: %d points of %v rows, from %v to %v", query, len(x), got["rows"], x[0], x[len(x)-1])
		}
	}
	same(t, "default columns", len(s.want(200, "GET", "/jobs/a/series/all?file=many.csv", "").fields(t)["columns"].([]any)), 21)
	same(t, "another file", s.want(200, "GET", "/jobs/a/series/all?file=z.csv", "").fields(t)["file"], any("z.csv"))
}

// TestSeriesHaveTheirErrorsAndTicks uses a view that specifies how its columns are drawn.
// If a tick is not a number, such as the residue number 19A, the series has no ticks.
func TestSeriesHaveTheirErrorsAndTicks(t *testing.T) {
	s := start(t, func(s *setup) {
		s.algorithm = echoAlgorithm + `
[[outputs]]
name = "rg"
kind = "series"
file = "rg.csv"

[[views]]
name = "rg"
output = "rg"
x = "index"
y = ["rg"]
titles = { index = "Residue", rg = "Size" }
errors = { rg = "rg_se" }
ticks = "number"
`
	})
	s.submit("a")
	s.run("a", map[string]string{"rg.csv": "index,other,rg,rg_se,number\n1,0,2.5,0.1,19\n2,0,2.6,0.2,20\n"})
	const rg = `{"name":"rg","file":"rg.csv","rows":2,"columns":[{"name":"index","title":"Residue"},{"name":"rg","title":"Size"},{"name":"rg_se"}`
	same(t, "numbers", s.want(200, "GET", "/jobs/a/series/rg", "").body, rg+`,{"name":"number"}],"values":[[1,2],[2.5,2.6],[0.1,0.2],[19,20]]}`+"\n")
	s.submit("b")
	s.run("b", map[string]string{"rg.csv": "index,rg,rg_se,number\n1,2.5,0.1,19\n2,2.6,0.2,19A\n"})
	same(t, "texts", s.want(200, "GET", "/jobs/b/series/rg", "").body, rg+`],"values":[[1,2],[2.5,2.6],[0.1,0.2]]}`+"\n")
}

// TestAViewThatIsNotWrittenYetIsNoFault requests views of a running job, and again after
// it has finished with the same files.
func TestAViewThatIsNotWrittenYetIsNoFault(t *testing.T) {
	s := start(t, viewing)
	j, out := s.begun("a")
	s.write(filepath.Join(out, "notes.txt"), "") // creates the output directory
	for _, path := range []string{"series/energy", "tables/hits"} {
		s.want(404, "GET", "/jobs/a/"+path, "").has(t, "is RUNNING and has written no file of the view")
	}
	for _, path := range []string{"files/energy.csv", "series/energy?file=energy.csv"} {
		s.want(404, "GET", "/jobs/a/"+path, "").has(t, `is RUNNING and has no file \"energy.csv\" yet`)
	}
	s.write(filepath.Join(out, "hits.tsv"), "")
	same(t, "an empty table", s.want(200, "GET", "/jobs/a/tables/hits", "").body, `{"name":"hits","file":"hits.tsv","columns":[],"rows":[],"incomplete":true}`+"\n")
	const nothing = `{"name":"energy","file":"energy.csv","rows":0,"columns":[],"values":[],"incomplete":true}` + "\n"
	for _, text := range []string{"", "time,potential", "step,kinetic\n1,2\n", "time,kinetic\n1,2\n"} {
		s.write(filepath.Join(out, "energy.csv"), text)
		same(t, strconv.Quote(text), s.want(200, "GET", "/jobs/a/series/energy", "").body, nothing)
	}
	s.want(422, "GET", "/jobs/a/series/energy?column=potential", "") // explicitly requested by the client

	must.OK(t, os.Rename(out, out+".aside"))
	same(t, "moved", s.want(200, "GET", "/jobs/a/views", "").fields(t)["incomplete"], any(true))
	must.OK(t, os.Rename(out+".aside", out))
	s.finish(j)
	for path, want := range map[string]string{
		"series/energy":            `the file \"energy.csv\" has no column \"potential\"`,
		"series/all?file=none.csv": `has no file \"none.csv\"; GET`,
	} {
		if a := s.as(s.ann, "GET", "/jobs/a/"+path, ""); a.status != 422 && a.status != 404 || !strings.Contains(a.body, want) {
			t.Errorf("%s once it has ended: %d %s", path, a.status, a.body)
		}
	}
}

func TestInvalidSeriesAndTablesAreExplained(t *testing.T) {
	s := start(t, viewing)
	j, out := s.begun("a")
	s.write(filepath.Join(out, "energy.csv"), "time,potential,name\n1,2,a\n2,high,b\n")
	s.write(filepath.Join(out, "other.csv"), "t,potential\n1,2\n")
	s.write(filepath.Join(out, "hits.tsv"), "name\tscore\na\t1\n")
	for path, want := range map[string]string{
		"series/none":                       `cho 1 has no view \"none\" of this kind; it has energy, all.`,
		"series/hits":                       `it has energy, all.`,
		"tables/motion":                     `it has energy, all, hits.`,
		"series/all?file=hits.tsv":          `\"hits.tsv\" is not a file of the view \"all\"`,
		"series/all?file=none.csv":          `has no file \"none.csv\"`,
		"series/energy":                     `the file \"energy.csv\" has \"high\" in line 3 of the column \"potential\", which is not a number`,
		"series/energy?column=name":         `has \"a\" in line 2 of the column \"name\"`,
		"series/energy?column=none":         `"loc":["query","column"],"msg":"the file \"energy.csv\" has no column \"none\"; it has time, potential, name"`,
		"series/energy?points=2":            `use a number from 3 to 10000`,
		"series/energy?point=5":             `did you mean \"points\"?`,
		"tables/hits?sort=scores":           `"loc":["query","sort"],"msg":"the file \"hits.tsv\" has no column \"scores\"; it has name, score"`,
		"tables/hits?limit=1001":            `use a number from 1 to 1000`,
		"tables/hits?startKey=abc":          `"loc":["query","startKey"]`,
		"tables/hits?file=../settings.json": `is not a file of the view`,
	} {
		a := s.as(s.ann, "GET", "/jobs/a/"+path, "")
		if a.status != 404 && a.status != 422 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s, want %s", path, a.status, a.body, want)
		}
	}
	if err := os.Truncate(filepath.Join(out, "other.csv"), 1<<30+1); err != nil { // a sparse file
		t.Fatal(err)
	}
	must.OK(t, os.Truncate(filepath.Join(out, "hits.tsv"), 1<<30+1))
	same(t, "a large series", s.want(413, "GET", "/jobs/a/series/all?file=other.csv", "").code(), "FILE_TOO_LARGE")
	same(t, "a large table", s.want(413, "GET", "/jobs/a/tables/hits?sort=score", "").code(), "FILE_TOO_LARGE")
	s.want(422, "GET", "/jobs/a/tables/hits", "") // a row of one gigabyte
	must.OK(t, os.Remove(filepath.Join(out, "energy.csv")))
	must.OK(t, syscall.Mkfifo(filepath.Join(out, "energy.csv"), 0o600))
	s.want(404, "GET", "/jobs/a/series/energy", "") // does not wait for a writer
	s.want(404, "GET", "/jobs/a/series/energy?file=energy.csv", "")
	s.finish(j)
}

func TestTablesAreReadInPages(t *testing.T) {
	s := start(t, viewing)
	s.submit("waits")
	same(t, "queued", s.want(409, "GET", "/jobs/waits/tables/hits", "").code(), "JOB_NOT_COMPLETED")
	j, out := s.begun("a")
	path := filepath.Join(out, "hits.tsv")
	s.write(path, "name\tscore\nb\t1.50\na\t\nd\t3\nc\t2\ne")
	get := func(query string) map[string]any {
		return s.want(200, "GET", "/jobs/a/tables/hits?"+query, "").fields(t)
	}
	same(t, "all", s.want(200, "GET", "/jobs/a/tables/hits", "").body, `{"name":"hits","file":"hits.tsv","columns":[{"name":"name","type":"text"},{"name":"score","type":"number","unit":"bits"}],`+
		`"rows":[["b",1.50],["a",null],["d",3],["c",2]],"incomplete":true}`+"\n")
	for sort, want := range map[string]string{"": "badc", "&sort=score": "bcda", "&sort=-score": "dcba", "&sort=name": "abcd", "&sort=-name": "dcba"} {
		names, page := "", map[string]any{"startKey": ""}
		for more := true; more; _, more = page["startKey"] {
			page = get("limit=1" + sort + "&startKey=" + page["startKey"].(string))
			for _, row := range page["rows"].([]any) {
				names += row.([]any)[0].(string)
			}
		}
		same(t, "pages"+sort, names, want)
	}
	key := get("limit=1")["startKey"].(string)
	sorted := get("limit=1&sort=score")["startKey"].(string)
	s.write(filepath.Join(out, "hits2.tsv"), "name\tscore\nb\t1\na\t2\n")
	for query, startKey := range map[string]string{"file=hits2.tsv": key, "sort=score": key, "sort=-score": sorted, "": sorted} {
		s.want(422, "GET", "/jobs/a/tables/hits?"+query+"&startKey="+startKey, "")
	}
	// Paging continues in a file that has grown, but must restart in one that was
	// replaced.
	s.write(path, "name\tscore\nb\t1.50\na\t\nd\t3\nc\t2\ne\t9\n")
	same(t, "grown", len(get("startKey=" + key)["rows"].([]any)), 4)
	s.write(path, "name\tscore\nbbbbbbbbbbbbbbbbbb\t1\n")
	s.want(422, "GET", "/jobs/a/tables/hits?startKey="+key, "")
	s.finish(j)
	s.want(200, "POST", "/jobs/a/retry", "")
	s.write(filepath.Join(s.outOf(s.claim("a")), "hits.tsv"), "name\tscore\nb\t1.50\na\t\n")
	s.want(422, "GET", "/jobs/a/tables/hits?startKey="+key, "")
}
