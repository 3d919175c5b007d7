package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/base/fault"
	"molrun/app/job/audit"
	"molrun/app/test/must"
)

func TestStatusShowsWhatRunsAndWaits(t *testing.T) {
	s := start(t)
	for _, name := range []string{"a", "b", "c"} {
		s.submit(name)
	}
	s.as(s.bob, "POST", "/submit-job", `{"jobName":"of-bob","type":"echo","settings":{}}`)
	for _, name := range []string{"e", "f"} {
		s.as(s.eve, "POST", "/submit-job", `{"jobName":"`+name+`","type":"echo","settings":{}}`)
	}
	s.claim("a")
	f := s.as(s.root, "GET", "/admin/status", "").fields(t)
	same(t, "the service", []any{f["version"], f["drained"], f["drain"]}, []any{"test", false, nil})
	if at, err := time.Parse(time.RFC3339, f["startedAt"].(string)); err != nil || time.Since(at) > time.Hour {
		t.Errorf("it has started at %v: %v", f["startedAt"], err)
	}
	same(t, "executors", f["executors"], any([]any{map[string]any{
		"name": "local", "state": "ok",
		"capacity":   map[string]any{"cpus": 64.0, "memoryBytes": float64(1 << 40), "gpus": 1.0},
		"used":       map[string]any{"cpus": 1.0, "memoryBytes": float64(64 << 20), "gpus": 0.0},
		"faultyGpus": []any{map[string]any{"name": "1", "fault": "lost", "reason": "is lost"}},
		"running":    1.0, "queued": 3.0,
		"others": map[string]any{"running": 0.0, "queued": 2.0},
		"queue": []any{
			map[string]any{"email": "ann@lab.example", "priority": 0.0, "jobs": 2.0},
			map[string]any{"email": "bob@lab.example", "priority": 0.0, "jobs": 1.0},
		},
	}}))
	other := s.as(s.eve, "GET", "/admin/status", "")
	if strings.Contains(other.body, "ann@") || !strings.Contains(other.body, `"others":{"running":1,"queued":3}`) {
		t.Errorf("another organization sees %s", other.body)
	}
}

func TestAdminsSeeWhoStoresHowMuch(t *testing.T) {
	s := start(t)
	s.upload("a.pdb", "ATOM")
	s.submit("a")
	s.run("a", map[string]string{"a.txt": "12345"})
	s.as(s.eve, "POST", "/submit-job", `{"jobName":"e","type":"echo","settings":{}}`)
	f := s.as(s.root, "GET", "/admin/storage", "").fields(t)
	rows := f["rows"].([]any)
	if len(rows) != 1 || f["by"] != "user" || f["disk"].(map[string]any)["size"].(float64) <= 0 {
		t.Fatalf("%v", f)
	}
	row := rows[0].(map[string]any)
	same(t, "ann's row", []any{row["organization"], row["user"], row["files"], row["uploadBytes"], row["jobs"]}, []any{"lab", "ann@lab.example", 1.0, 4.0, 1.0})
	for by, want := range map[string]string{"algorithm": `"algorithm":"echo"`, "age": `"age":`} {
		s.wantAs(s.root, 200, "GET", "/admin/storage?by="+by, "").has(t, want).lacks(t, "other")
	}
	s.wantAs(s.root, 422, "GET", "/admin/storage?by=organization", "")
}

func TestAdminsPruneTheirOrganization(t *testing.T) {
	s := start(t)
	for _, name := range []string{"a", "b", "pinned"} {
		s.submit(name)
		s.run(name, map[string]string{"a.txt": "12345"})
	}
	s.want(200, "POST", "/jobs/pinned/pin", "")
	keep := s.ann
	s.ann = s.eve // the helpers act as ann
	s.submit("e")
	s.run("e", map[string]string{"a.txt": "12345"})
	s.ann = keep
	const all = `{"endedBefore":"2999-01-01T00:00:00.000Z"`
	pruned := func(body string) (names []string) {
		t.Helper()
		a := s.wantAs(s.root, 200, "POST", "/admin/prune", body)
		for _, j := range a.fields(t)["jobs"].([]any) {
			names = append(names, fmt.Sprint(j.(map[string]any)["jobName"]))
		}
		return names
	}
	same(t, "what would go", pruned(all+`,"dryRun":true}`), []string{"a", "b"})
	same(t, "of another user", pruned(all+`,"user":"bob@lab.example"}`), []string(nil))
	same(t, "of long ago", pruned(`{"endedBefore":"2000-01-01T00:00:00.000Z"}`), []string(nil))
	s.wantAs(s.root, 422, "POST", "/admin/prune", all+`,"organization":"other"}`)
	full := fault.Errorf(fault.StorageFull, "The disk is full.")
	s.store.writing.Store(&full)
	s.wantAs(s.root, 507, "POST", "/admin/prune", all+"}")
	s.store.writing.Store(nil)
	same(t, "what goes", pruned(all+"}"), []string{"a", "b"})
	s.want(404, "GET", "/jobs/a", "")
	s.want(200, "GET", "/jobs/pinned", "")
	s.wantAs(s.eve, 200, "GET", "/jobs/e", "")
}

func TestAdminsReadTheAuditLogOfTheirOrganization(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(dir, 1<<20, 2, zerolog.Nop())
	must.OK(t, err)
	defer log.Close()
	s := start(t, func(with *setup) {
		with.options.Audit = log.Add
		with.options.LastAudited = func(f audit.Filter, limit int) ([]audit.Entry, bool, error) { return audit.ReadLast(dir, f, limit) }
	})
	s.submit("a")
	s.as(s.eve, "POST", "/submit-job", `{"jobName":"e","type":"echo","settings":{}}`)
	s.want(404, "POST", "/jobs/none/cancel", "")
	s.send("GET", "/jobs", "", "x-api-key", "wrong")
	read := func(key, query string) (lines []string) {
		t.Helper()
		a := s.wantAs(key, 200, "GET", "/admin/audit"+query, "")
		for _, e := range a.fields(t)["entries"].([]any) {
			e := e.(map[string]any)
			lines = append(lines, fmt.Sprint(e["action"], " ", e["result"]))
		}
		return lines
	}
	same(t, "of lab, newest first", read(s.root, ""), []string{"job.cancel NOT_FOUND", "job.submit ok"})
	same(t, "of the other", read(s.eve, ""), []string{"job.submit ok"})
	same(t, "failed", read(s.root, "?failed=true"), []string{"job.cancel NOT_FOUND"})
	same(t, "of an action", read(s.root, "?action=job.submit"), []string{"job.submit ok"})
	same(t, "of a key", read(s.root, "?key="+idOf(s.eve)), []string(nil))
	same(t, "of the past", read(s.root, "?until=2000-01-01"), []string(nil))
	same(t, "the newest one", read(s.root, "?limit=1"), []string{"job.cancel NOT_FOUND"})
	same(t, "there are more", s.as(s.root, "GET", "/admin/audit?limit=1", "").fields(t)["more"], true)
	s.without("other")
	same(t, "where lab is alone", read(s.root, ""), []string{"authenticate UNAUTHORIZED", "job.cancel NOT_FOUND", "job.submit ok"})
	for _, bad := range []string{"?limit=0", "?limit=1001", "?since=soon", "?failed=x", "?x=1"} {
		s.wantAs(s.root, 422, "GET", "/admin/audit"+bad, "")
	}
}

func TestFilesOfExamplesAreSentAsTheyAre(t *testing.T) {
	s := start(t, func(with *setup) {
		with.options.Example = func(typ, version, name string) ([]byte, error) {
			return []byte("<script>" + typ + version + name), nil
		}
	})
	a := s.want(200, "GET", "/algorithms/echo/example/a%22b.html?version=1", "")
	same(t, "the file", []string{a.body, a.header.Get("Content-Type"), a.header.Get("X-Content-Type-Options"), a.header.Get("Content-Disposition")},
		[]string{`<script>echo1a"b.html`, "application/octet-stream", "nosniff", `attachment; filename="a\"b.html"`})
	s.want(404, "GET", "/algorithms/absent/example/a.html", "")
	s.want(404, "GET", "/algorithms/echo/example/a.html?version=9", "")
}

func TestFilesKnowWhichJobsReadThem(t *testing.T) {
	s := start(t)
	file, unread := s.upload("a.pdb", "ATOM"), s.upload("b.pdb", "ATOMS")
	for _, name := range []string{"a", "b"} {
		s.want(200, "POST", "/submit-job", `{"jobName":"`+name+`","type":"echo","settings":{"structure":"`+file+`"}}`)
	}
	s.want(200, "POST", "/submit-job", `{"jobName":"other","type":"echo","settings":{}}`)
	s.want(200, "POST", "/submit-batch", `{"batchName":"many","type":"echo","settings":[{"structure":"`+file+`"},{"steps":2,"structure":"inputs/a.pdb"},{}]}`)
	f := s.as(s.bob, "GET", "/files/"+file+"/jobs", "").fields(t)
	var got []string
	for _, j := range f["jobs"].([]any) {
		j := j.(map[string]any)
		got = append(got, fmt.Sprint(j["jobName"], " ", j["status"], " ", j["jobEmail"], " ", j["rows"]))
	}
	same(t, "readers", got, []string{"many QUEUED ann@lab.example 2", "b QUEUED ann@lab.example <nil>", "a QUEUED ann@lab.example <nil>"})
	same(t, "there are no others", f["more"], any(false))
	same(t, "of a file that nobody reads", s.want(200, "GET", "/files/"+unread+"/jobs", "").body, `{"jobs":[],"more":false}`+"\n")
	s.want(404, "GET", "/files/absent/jobs", "")
	s.wantAs(s.eve, 404, "GET", "/files/"+file+"/jobs", "")
	for i := range 150 {
		s.want(200, "POST", "/submit-job", fmt.Sprintf(`{"jobName":"more-%d","type":"echo","settings":{"structure":"%s","steps":%d}}`, i, file, i+1))
	}
	f = s.want(200, "GET", "/files/"+file+"/jobs", "").fields(t)
	same(t, "of many", []any{len(f["jobs"].([]any)), f["more"], f["jobs"].([]any)[0].(map[string]any)["jobName"]}, []any{100, true, "more-149"})
}
