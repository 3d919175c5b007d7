package web_test

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// share shares a job of ann's and returns the ID and token of the share.
func (s *service) share(job, body string) (id, token string) {
	s.t.Helper()
	made := s.want(200, "POST", "/jobs/"+job+"/share", body).fields(s.t)
	url := made["url"].(string)
	return made["id"].(string), url[strings.LastIndexByte(url, '/')+1:]
}

// stranger sends a request without a key.
func (s *service) stranger(path string, headers ...string) answer {
	s.t.Helper()
	return s.send("GET", path, "", headers...)
}

// shared returns the names of the files that a share lists, and of the files in its
// archive.
func (s *service) shared(token string) (listed, archived []string) {
	s.t.Helper()
	a := s.stranger("/shared/" + token + "/files")
	if a.status != 200 {
		s.t.Fatal(a.status, a.body)
	}
	for _, f := range a.fields(s.t)["files"].([]any) {
		listed = append(listed, f.(map[string]any)["path"].(string))
	}
	a = s.stranger("/shared/" + token + "/archive")
	r, err := zip.NewReader(strings.NewReader(a.body), int64(len(a.body)))
	if err != nil {
		s.t.Fatal(a.status, err)
	}
	for _, f := range r.File {
		if in, err := f.Open(); err != nil {
			s.t.Error(err)
		} else if _, err := io.ReadAll(in); err != nil { // verifies the CRC-32
			s.t.Error(f.Name, err)
		}
		archived = append(archived, f.Name)
	}
	return listed, archived
}

// nothing lists the paths below a token that an ended share must not serve.
var nothing = []string{"", "/files", "/files/a.txt", "/files/none", "/archive", "/views", "/series/energy", "/tables/hits"}

// showsNothing checks that a token gets the same responses as one that never existed.
func (s *service) showsNothing(what, token string) {
	s.t.Helper()
	absent := strings.Repeat("01AAAAAAAAAAAAAAAAAAAAAAAA", 2)
	for _, path := range nothing {
		got, want := s.stranger("/shared/"+token+path), s.stranger("/shared/"+absent+path)
		if got.status != 404 || got.without(token) != want.without(absent) {
			s.t.Errorf("%s, %s: %d %s, want %d %s", what, path, got.status, got.body, want.status, want.body)
		}
	}
}

func TestShareShowsAResultWithoutAKey(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.run("a", map[string]string{"a.txt": "0123456789", "models/b.txt": "b", "models-2/c.txt": "c"})
	all := []string{"a.txt", "models-2/c.txt", "models/b.txt"}

	_, token := s.share("a", "")
	listed, archived := s.shared(token)
	same(t, "files", listed, all)
	same(t, "files of the archive", archived, all)
	job := s.stranger("/shared/" + token).fields(t)
	names := slices.Sorted(maps.Keys(job))
	same(t, "members", names, []string{"algorithm", "completedAt", "createdAt", "expiresAt", "jobName", "metrics", "partial", "settings", "startedAt", "status", "type", "version"})
	a := s.stranger("/shared/"+token+"/files/a.txt", "Range", "bytes=2-4")
	if a.status != 206 || a.body != "234" || a.header.Get("ETag") == "" || a.header.Get("Cache-Control") != "private, no-store" || a.header.Get("Content-Disposition") == "" {
		t.Errorf("a range: %d %q %v", a.status, a.body, a.header)
	}
	s.wantSent(304, "GET", "/shared/"+token+"/files/a.txt", "", "If-None-Match", a.header.Get("ETag"))
	if a := s.stranger("/shared/"+token+"/files/a.txt", "Range", "bytes=10-"); a.status != 416 || a.code() != "RANGE_INVALID" {
		t.Errorf("a range past the end: %d %s", a.status, a.body)
	}
	if a := s.stranger("/shared/"+token+"/archive", "Range", "bytes=0-3"); a.status != 206 || a.body != "PK\x03\x04" {
		t.Errorf("a range of the archive: %d %q", a.status, a.body)
	}
	if a := s.send("HEAD", "/shared/"+token+"/archive", ""); a.status != 200 || a.header.Get("Content-Length") == "" {
		t.Errorf("HEAD: %d %v", a.status, a.header)
	}
	s.wantSent(304, "GET", "/shared/"+token+"/archive", "", "If-None-Match", s.stranger("/shared/"+token+"/archive").header.Get("ETag"))
	s.wantSent(416, "GET", "/shared/"+token+"/archive", "", "Range", "bytes=99999-")
	for _, method := range []string{"PUT", "POST", "DELETE", "PATCH"} {
		s.wantSent(405, method, "/shared/"+token+"/files/a.txt", "")
	}
	s.wantSent(422, "GET", "/shared/"+token+"?wait=1s", "")
}

// grow makes a file of a completed job too large to be read for a view.
func (s *service) grow(job, name string) {
	s.t.Helper()
	const size = 1<<30 + 1 // sparse file
	id := app.JobID(s.want(200, "GET", "/jobs/"+job, "").fields(s.t)["jobId"].(string))
	m, err := s.blobs.Manifest(id)
	must.OK(s.t, err)
	m.Files[m.Find(name)].Size = size
	must.OK(s.t, errors.Join(os.Truncate(filepath.Join(s.blobs.JobDir(id), "result", name), size), s.blobs.WriteManifest(id, m)))
}

func TestShareShowsTheViewsOfItsFiles(t *testing.T) {
	s := start(t, viewing)
	s.submit("a")
	s.run("a", map[string]string{"energy.csv": "time,potential\n0,-1.5\n", "hits-1.tsv": "name\tscore\nx\t1\n", "hits-2.tsv": "name\tscore\ny\t2\n", "r/run.xtc": "x", "r/top.pdb": "x"})
	_, all := s.share("a", "")
	for shared, own := range map[string]string{"/views": "/views", "/series/energy": "/series/energy", "/tables/hits?file=hits-2.tsv&sort=-score": "/tables/hits?file=hits-2.tsv&sort=-score"} {
		same(t, "of everything, "+shared, s.stranger("/shared/"+all+shared).body, s.want(200, "GET", "/jobs/a"+own, "").body)
	}
	same(t, "a missing view", s.stranger("/shared/"+all+"/series/none").status, 404)

	s.grow("a", "energy.csv")
	s.grow("a", "hits-1.tsv")
	same(t, "a large series", s.stranger("/shared/"+all+"/series/energy").code(), "FILE_TOO_LARGE")
	same(t, "a large table", s.stranger("/shared/"+all+"/tables/hits?sort=score").code(), "FILE_TOO_LARGE")

	_, some := s.share("a", `{"files":["hits-2.tsv","r/run.xtc"]}`)
	const motion = `{"name":"motion","kind":"trajectory","title":"Motion","files":[{"path":"r/run.xtc","size":1}]}`
	const hits = `{"name":"hits","kind":"table","title":"hits","units":{"score":"bits"},"files":[{"path":"hits-2.tsv","size":15}]}`
	same(t, "of some files", s.stranger("/shared/"+some+"/views").body, `{"views":[`+motion+","+hits+"]}\n")
	same(t, "the first that it shows", s.stranger("/shared/"+some+"/tables/hits").body, s.want(200, "GET", "/jobs/a/tables/hits?file=hits-2.tsv", "").body)
	same(t, "the one that is named", s.stranger("/shared/"+some+"/tables/hits?file=hits-2.tsv").status, 200)
	for _, hidden := range []string{"/tables/hits?file=hits-1.tsv", "/tables/hits?file=none", "/series/energy", "/series/energy?file=energy.csv", "/series/all"} {
		a := s.stranger("/shared/" + some + hidden)
		if a.status != 404 || strings.Contains(a.body, "energy.csv") {
			t.Errorf("%s: %d %s", hidden, a.status, a.body)
		}
	}
}

func TestShareOfSomeFilesShowsNoOther(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.run("a", map[string]string{"a.txt": "secret", "models/b.txt": "b", "models/deep/c.txt": "c", "models-2/d.txt": "secret"})
	_, token := s.share("a", `{"files":["models/"],"ttlSeconds":60}`)
	listed, archived := s.shared(token)
	same(t, "files", listed, []string{"models/b.txt", "models/deep/c.txt"})
	same(t, "files of the archive", archived, listed)
	job := s.stranger("/shared/" + token).fields(t)
	if job["partial"] != true || job["settings"] != nil || job["metrics"] != nil || job["algorithm"] != nil {
		t.Errorf("of a part it shows %v", job)
	}
	hidden, absent := s.stranger("/shared/"+token+"/files/a.txt"), s.stranger("/shared/"+token+"/files/x.txt")
	if hidden.status != 404 || hidden.without("a.txt") != absent.without("x.txt") {
		t.Errorf("a file that is not shared: %d %s, one that is not there: %s", hidden.status, hidden.body, absent.body)
	}
	_, all := s.share("a", "")
	if a, b := s.send("HEAD", "/shared/"+token+"/archive", ""), s.send("HEAD", "/shared/"+all+"/archive", ""); a.header.Get("ETag") == b.header.Get("ETag") {
		t.Error("the archives of a part and of all have one ETag")
	}
	a := s.want(422, "POST", "/jobs/a/share", `{"files":["models/b.txt","none","models"],"ttlSeconds":0}`)
	if strings.Count(a.body, `"loc"`) != 1 || !strings.Contains(a.body, "ttlSeconds") {
		t.Errorf("%s", a.body)
	}
	a = s.want(422, "POST", "/jobs/a/share", `{"files":["models/b.txt","none","models"]}`)
	if !strings.Contains(a.body, `["body","files",1]`) || !strings.Contains(a.body, `["body","files",2]`) || strings.Contains(a.body, `"files",0`) {
		t.Errorf("%s", a.body)
	}
	s.want(422, "POST", "/jobs/a/share", `{"files":[]}`)
}

func TestShareOfABatchShowsItsRows(t *testing.T) {
	s := start(t)
	s.want(200, "POST", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{},{}]}`)
	s.run("b-1", map[string]string{"a.txt": "one"})
	s.refused(s.ann, 409, "JOB_NOT_COMPLETED", "POST", "/jobs/b/share", "")
	s.run("b-2", map[string]string{"a.txt": "two", "b.txt": "three"})
	_, token := s.share("b", "")
	_, part := s.share("b", `{"files":["b-2/"]}`)
	for token, want := range map[string][]string{token: {"b-1/a.txt", "b-2/a.txt", "b-2/b.txt"}, part: {"b-2/a.txt", "b-2/b.txt"}} {
		listed, archived := s.shared(token)
		same(t, "files", listed, want)
		same(t, "files of the archive", archived, want)
	}
	if a := s.stranger("/shared/" + part + "/files/b-2%2Fb.txt"); a.status != 200 || a.body != "three" {
		t.Errorf("a file of a row: %d %s", a.status, a.body)
	}
	s.submit("other")
	s.run("other", map[string]string{"a.txt": "secret"})
	for _, path := range []string{"b-1/a.txt", "other/a.txt", "b.zip", "b-2", "b-2/"} {
		s.wantSent(404, "GET", "/shared/"+part+"/files/"+path, "")
	}
	s.wantSent(404, "GET", "/shared/"+token+"/files/other/a.txt", "")
}

func TestAShareHasOnlyTheRecordsThatItNames(t *testing.T) {
	s := start(t)
	files := map[string]string{"job.json": "{}", "log.txt": "", "own/job.json": "{}"}
	s.submit("a")
	s.run("a", files)
	s.want(200, "POST", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{}]}`)
	s.run("b-1", files)
	for _, c := range []struct {
		job, share string
		want       []string
	}{
		{"a", "", []string{"log.txt", "own/job.json"}},
		{"a", `{"files":["own/","job.json"]}`, []string{"job.json", "own/job.json"}},
		{"b", "", []string{"b-1/log.txt", "b-1/own/job.json"}},
		{"b", `{"files":["b-1/"]}`, []string{"b-1/log.txt", "b-1/own/job.json"}},
		{"b", `{"files":["b-1/job.json"]}`, []string{"b-1/job.json"}},
	} {
		_, token := s.share(c.job, c.share)
		listed, archived := s.shared(token)
		same(t, "files of "+c.job+c.share, listed, c.want)
		same(t, "files of the archive", archived, c.want)
		for _, name := range []string{"job.json", "b-1/job.json"} {
			want := 404
			if slices.Contains(c.want, name) {
				want = 200
			}
			same(t, name+" of "+c.job+c.share, s.stranger("/shared/"+token+"/files/"+name).status, want)
		}
	}
}

// TestSharesEnd ends shares in every way except expiry.
func TestSharesEnd(t *testing.T) {
	s := start(t)
	done := func(name string) {
		s.submit(name)
		s.run(name, map[string]string{"a.txt": "text"})
	}
	done("a")
	done("deleted")
	id, revoked := s.share("a", "")
	_, kept := s.share("a", "")
	_, ofDeleted := s.share("deleted", "")

	s.want(204, "DELETE", "/shares/"+id, "")
	s.want(404, "DELETE", "/shares/"+id, "")
	s.showsNothing("revoked", revoked)
	s.want(204, "DELETE", "/jobs/deleted", "")
	s.showsNothing("of a deleted job", ofDeleted)
	done("deleted") // another job with that name
	s.showsNothing("of a deleted job, whose name is another's", ofDeleted)
	for name, token := range map[string]string{
		"another secret": kept[:len(kept)-1] + flipped(kept[len(kept)-1]), "another share's secret": kept[:26] + revoked[26:],
		"its id": kept[:26], "longer": kept + "A", "lower case": strings.ToLower(kept), "no text": "%FF", "nothing to see": "..", "a key": s.ann,
	} {
		s.showsNothing(name, token)
	}
	s.wantSent(200, "GET", "/shared/"+kept, "")
}

// TestSharesEndWithTheirKey disables, deletes and rotates the key that created the
// shares.
func TestSharesEndWithTheirKey(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.run("a", map[string]string{"a.txt": "text"})
	_, token := s.share("a", "")
	shown := func(what string, want int) {
		t.Helper()
		s.wantSent(want, "GET", "/shared/"+token+"/files/a.txt", "")
	}
	id := strings.Split(s.ann, "_")[1]
	disable := func(id string, disabled bool) {
		must.OK(t, must.Error2(s.app.Accounts.DisableKey(t.Context(), app.Operator(), id, disabled)))
	}
	disable(id, true)
	s.showsNothing("its key is disabled", token)
	disable(id, false)
	shown("its key is enabled again", 200)
	_, next, err := s.app.Accounts.RotateKey(t.Context(), app.Operator(), id, 0)
	must.OK(t, err)
	shown("its key was rotated", 200)
	disable(id, true)
	shown("the old key is disabled, its successor is not", 404)
	disable(id, false)
	shown("the old key is enabled", 200)
	disable(next.ID, true)
	shown("the successor is disabled", 404)
	disable(next.ID, false)
	must.OK(t, s.app.Accounts.DeleteKey(t.Context(), app.Operator(), id))
	s.showsNothing("its key is deleted", token)
}

func TestWhoMayShareAndRevoke(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.refused(s.ann, 409, "JOB_NOT_COMPLETED", "POST", "/jobs/a/share", "")
	s.run("a", map[string]string{"a.txt": "text"})
	id, token := s.share("a", "")
	for _, tt := range []struct {
		key, method, path string
		status            int
	}{
		{s.bob, "POST", "/jobs/a/share", 403},
		{s.eve, "POST", "/jobs/a/share", 404},
		{s.root, "POST", "/jobs/a/share", 200},
		{s.bob, "DELETE", "/shares/" + id, 403},
		{s.eve, "DELETE", "/shares/" + id, 404},
		{s.bob, "DELETE", "/shares/none", 404},
	} {
		s.wantAs(tt.key, tt.status, tt.method, tt.path, "")
	}
	for path, want := range map[string]int{"/shares": 1, "/shares?organization=true": 2} {
		list := s.want(200, "GET", path, "")
		if got := list.fields(t)["shares"].([]any); len(got) != want || strings.Contains(list.body, token[26:]) || strings.Contains(list.body, "lastUsedAt") {
			t.Errorf("%s: %s", path, list.body)
		}
	}
	same(t, "another organization's", s.as(s.eve, "GET", "/shares?organization=true", "").body, `{"shares":[]}`+"\n")
	s.stranger("/shared/" + token)
	s.want(200, "GET", "/shares", "").has(t, "lastUsedAt")
	s.wantAs(s.root, 204, "DELETE", "/shares/"+id, "")
	same(t, "revoked", s.want(200, "GET", "/shares", "").body, `{"shares":[]}`+"\n")
}

func TestSharesOfAnOrganizationAreBounded(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.run("a", map[string]string{"a.txt": "text"})
	id, _ := s.share("a", "")
	err := s.store.Update(t.Context(), func(tx app.Tx) error {
		one, err := tx.Share(app.ShareID(id))
		if err != nil {
			return err
		}
		for i := range 999 {
			one.ID = app.ShareID(fmt.Sprintf("01BBBBBBBBBBBBBBBBBBBB%04d", i))
			if err := tx.PutShare(one); err != nil {
				return err
			}
		}
		return nil
	})
	must.OK(t, err)
	s.refused(s.ann, 403, "QUOTA_EXCEEDED", "POST", "/jobs/a/share", "")
	s.want(204, "DELETE", "/shares/"+id, "")
	s.share("a", "")
}

// TestSharedRoutesReportFailures makes the store fail, fills the disk, and
// exceeds the rate limit.
func TestSharedRoutesReportFailures(t *testing.T) {
	now := &clock{now: time.Unix(1e9, 0)}
	s := start(t, func(with *setup) {
		with.options.Now, with.from, with.options.Rates.Shared = now.read, "192.0.2.1:4711", 7
		viewing(with)
	})
	s.submit("a")
	s.run("a", map[string]string{"a.txt": "text", "energy.csv": "time,potential\n", "hits.tsv": "name\n"})
	id, token := s.share("a", "")
	paths := []string{"", "/archive", "/files", "/files/a.txt", "/views", "/series/energy", "/tables/hits"}
	each := func(status int, code string) {
		t.Helper()
		for _, path := range paths {
			if a := s.stranger("/shared/" + token + path); a.status != status || a.status != 200 && a.code() != code {
				t.Errorf("%s: %d %s, want %d", path, a.status, a.body, status)
			}
		}
	}
	internal, busy := fault.Errorf(fault.Internal, "the disk says no"), fault.Errorf(fault.Unavailable, "The service is stopping.")
	full := fault.Errorf(fault.StorageFull, "The disk is full.")
	s.store.reading.Store(&internal)
	each(500, "INTERNAL")
	each(429, "RATE_LIMITED")
	now.advance(time.Second)
	s.store.reading.Store(&busy)
	each(503, "UNAVAILABLE")
	s.store.reading.Store(nil)
	now.advance(time.Second)

	s.store.writing.Store(&full)
	each(200, "") // existing shares can be read
	s.want(507, "POST", "/jobs/a/share", "")
	s.want(507, "DELETE", "/shares/"+id, "")
	s.store.writing.Store(nil)
	s.wantSent(200, "GET", "/readyz", "")
}
