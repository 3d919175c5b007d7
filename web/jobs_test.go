package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

func TestSubmissionSaysWhetherItCreatedTheJob(t *testing.T) {
	s := start(t)
	const body = `{"jobName":"a","type":"echo","settings":{"steps":5}}`
	first := s.want(200, "POST", "/submit-job", body)
	if !strings.HasSuffix(first.body, `,"created":true}`+"\n") || !strings.HasPrefix(first.body, `{"jobId":"`) {
		t.Error(first.body)
	}
	again := s.wantAs(s.bob, 200, "POST", "/submit-job", body).fields(t)
	same(t, "again", []any{again["jobId"], again["created"]}, []any{first.fields(t)["jobId"], false})
	s.refused(s.ann, 409, "JOB_ALREADY_EXISTS", "POST", "/submit-job", strings.Replace(body, "5", "6", 1))
	s.want(422, "POST", "/submit-job", strings.Replace(body, "5", "0", 1))
}

func TestListedRecordsEqualShownRecords(t *testing.T) {
	s := start(t)
	for i := range 5 {
		s.submit(fmt.Sprint("job-", i))
	}
	s.run("job-1", nil)
	s.run("job-2", map[string]string{"out.txt": "text"})
	j := s.claim("job-3")
	s.app.Runs.SetProgress(j, app.Progress{Fraction: 0.01, Text: "step 42/100"})

	var names []string
	query := "/jobs?limit=2"
	for {
		var page struct {
			Jobs     []json.RawMessage
			StartKey string
		}
		must.OK(t, json.Unmarshal([]byte(s.want(200, "GET", query, "").body), &page))
		for _, record := range page.Jobs {
			var name struct{ JobName string }
			must.OK(t, json.Unmarshal(record, &name))
			names = append(names, name.JobName)
			alone := s.want(200, "GET", "/jobs/"+name.JobName, "").body
			same(t, name.JobName, string(record)+"\n", alone)
		}
		if page.StartKey == "" {
			break
		}
		query = "/jobs?limit=2&startKey=" + page.StartKey
	}
	same(t, "names", names, []string{"job-4", "job-3", "job-2", "job-1", "job-0"})
	s.want(200, "GET", "/jobs/job-3", "").has(t, `"progress":{"fraction":0.01,"text":"step 42/100"}`)
}

// flipped returns a different letter.
func flipped(letter byte) string {
	if letter == 'A' {
		return "B"
	}
	return "A"
}

func TestMembersReadTheJobsOfOthersAndAdminsChangeThem(t *testing.T) {
	s := start(t)
	s.submit("a")
	for _, body := range []string{"", "{}", "null"} {
		same(t, "cancelled", s.wantAs(s.root, 200, "POST", "/jobs/a/cancel", body).fields(t)["status"], "FAILED")
	}
	s.wantAs(s.root, 200, "POST", "/jobs/a/retry", "")
	s.run("a", map[string]string{"out.txt": "text"})
	for _, path := range []string{"/jobs/a", "/jobs/a/logs", "/jobs/a/files", "/jobs/a/files/out.txt"} {
		s.wantAs(s.bob, 200, "GET", path, "")
	}
	link := s.as(s.bob, "POST", "/result", `{"jobName":"a","fileName":"out.txt"}`).fields(t)
	same(t, "a member's download", s.send("GET", link["downloadUrl"].(string), "").body, "text")
	s.wantAs(s.root, 204, "DELETE", "/jobs/a", "")
}

func TestLifeOfAJob(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.want(409, "DELETE", "/jobs/a", "")
	same(t, "retry", s.want(409, "POST", "/jobs/a/retry", "").code(), "JOB_NOT_FAILED")
	same(t, "files", s.want(409, "GET", "/jobs/a/files", "").code(), "JOB_NOT_COMPLETED")
	same(t, "log before the start", s.want(200, "GET", "/jobs/a/logs", "").body, "")
	s.run("a", nil)
	failed := s.want(200, "GET", "/jobs/a", "").fields(t)
	same(t, "failure", failed["failure"], any(map[string]any{"code": "EXIT_STATUS", "message": "It ended with status 1.", "exitCode": 1.0, "logTail": "line 2\n"}))
	same(t, "result of a failed job", s.want(409, "POST", "/result", `{"jobName":"a"}`).code(), "JOB_NOT_COMPLETED")
	same(t, "retried", s.want(200, "POST", "/jobs/a/retry", "{}").fields(t)["status"], any("QUEUED"))
	s.run("a", map[string]string{"out.txt": "text", "sub/b.txt": ""})
	completed := s.want(200, "GET", "/jobs/a", "")
	same(t, "status", completed.fields(t)["status"], any("COMPLETED"))
	s.want(200, "POST", "/jobs/a/cancel", "")
	same(t, "retry of a completed job", s.want(409, "POST", "/jobs/a/retry", "").code(), "JOB_NOT_FAILED")
	same(t, "after a cancel and a retry", s.want(200, "GET", "/jobs/a", "").body, completed.body)
	files := s.want(200, "GET", "/jobs/a/files", "")
	same(t, "files", files.body, `{"files":[{"path":"out.txt","size":4,"sha256":"`+sha256Hex("text")+`"},{"path":"sub/b.txt","size":0,"sha256":"`+sha256Hex("")+`"}]}`+"\n")
	gone := s.want(204, "DELETE", "/jobs/a", "")
	same(t, "body", gone.body, "")
	s.want(404, "DELETE", "/jobs/a", "")
}

func TestLogsAreReadInParts(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.run("a", nil)
	s.want(200, "POST", "/jobs/a/retry", "")
	text := strings.Repeat("é", 1000)
	s.printed(s.claim("a"), text)
	for query, want := range map[string][2]string{
		"?attempt=1&offset=7&limit=4": {"line", "14"},
		"?attempt=2":                  {text, "2000"},
		"":                            {text, "2000"},
	} {
		a := s.want(200, "GET", "/jobs/a/logs"+query, "")
		same(t, query, []string{a.body, a.header.Get("X-Log-Size"), a.header.Get("Content-Type"), a.header.Get("X-Content-Type-Options")},
			[]string{want[0], want[1], "text/plain; charset=utf-8", "nosniff"})
	}
	a := s.want(200, "HEAD", "/jobs/a/logs", "")
	same(t, "HEAD", []string{a.body, a.header.Get("Content-Length"), a.header.Get("X-Log-Size")}, []string{"", "2000", "2000"})
	s.want(404, "GET", "/jobs/a/logs?attempt=3", "")
	s.want(422, "GET", "/jobs/a/logs?attempt=0&offset=-1&limit=x", "")
}

func TestLongLogsArriveComplete(t *testing.T) {
	s := start(t)
	s.submit("a")
	j := s.claim("a")
	text := strings.Repeat("0123456789abcde\n", 200_000) // three times what is sent between two extensions of the deadline
	s.printed(j, text)
	if a := s.want(200, "GET", "/jobs/a/logs", ""); a.body != text {
		t.Errorf("%d bytes arrived of %d", len(a.body), len(text))
	}
}

func TestWaitingEndsWithAChange(t *testing.T) {
	s := start(t)
	s.submit("a")
	j := s.claim("a")
	same(t, "in vain", s.want(200, "GET", "/jobs/a?wait=1ms", "").fields(t)["status"], "RUNNING")
	answers := make(chan answer)
	go func() { answers <- s.as(s.ann, "GET", "/jobs/a?wait=60s", "") }()
	go func() { answers <- s.as(s.bob, "GET", "/jobs/a?wait=60", "") }()
	s.finish(j)
	for range 2 {
		if a := <-answers; a.status != 200 || a.fields(t)["status"] != "FAILED" {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	s.want(200, "GET", "/jobs/a?wait=60s", "") // already finished, so it does not wait
	s.want(404, "GET", "/jobs/x?wait=60s", "")
	s.want(422, "GET", "/jobs/a?wait=61s", "")
}

func TestWaitingEndsWithTheServer(t *testing.T) {
	stopping, stop := context.WithCancel(t.Context())
	s := start(t, func(with *setup) { with.options.Stopping = stopping })
	s.submit("a")
	waiting := make(chan answer)
	go func() { waiting <- s.as(s.ann, "GET", "/jobs/a?wait=60s", "") }()
	stop()
	if a := <-waiting; a.status != 200 || a.fields(t)["status"] != "QUEUED" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestListingsCountJobsByStatus(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.submit("b")
	s.as(s.bob, "POST", "/submit-job", `{"jobName":"c","type":"echo","settings":{}}`)
	s.want(200, "POST", "/submit-batch", `{"batchName":"many","type":"echo","settings":[{},{},{}]}`)
	s.want(200, "POST", "/jobs/b/cancel", "")
	for query, want := range map[string]string{
		"":                                  `{"QUEUED":2,"RUNNING":0,"COMPLETED":0,"FAILED":1}`,
		"&organization=true":                `{"QUEUED":3,"RUNNING":0,"COMPLETED":0,"FAILED":1}`,
		"&organization=true&status=FAILED":  `{"QUEUED":3,"RUNNING":0,"COMPLETED":0,"FAILED":1}`,
		"&jobEmail=bob@lab.example&limit=1": `{"QUEUED":1,"RUNNING":0,"COMPLETED":0,"FAILED":0}`,
		"&batch=many":                       `{"QUEUED":3,"RUNNING":0,"COMPLETED":0,"FAILED":0}`,
		"&batch=nothing":                    `{"QUEUED":0,"RUNNING":0,"COMPLETED":0,"FAILED":0}`,
	} {
		if a := s.want(200, "GET", "/jobs?statuses=true"+query, ""); !strings.HasSuffix(a.body, `,"statuses":`+want+"}\n") {
			t.Errorf("%s: want %s: %s", query, want, a.body)
		}
	}
	if a := s.as(s.eve, "GET", "/jobs?organization=true&statuses=true", ""); !strings.HasSuffix(a.body, `{"QUEUED":0,"RUNNING":0,"COMPLETED":0,"FAILED":0}}`+"\n") {
		t.Errorf("another organization counts %s", a.body)
	}
}

func TestBatches(t *testing.T) {
	s := start(t)
	const body = `{"batchName":"screen","type":"echo","settings":[{"steps":1},{"steps":2}],"jobNames":["x","y"],"priority":-3}`
	first := s.want(200, "POST", "/submit-batch", body).fields(t)
	same(t, "batch", []any{first["created"], first["jobName"], first["subjobCounts"]}, []any{true, "screen", any(map[string]any{"QUEUED": 2.0, "RUNNING": 0.0, "COMPLETED": 0.0, "FAILED": 0.0})})
	again := s.want(200, "POST", "/submit-batch", body).fields(t)
	same(t, "again", []any{again["created"], again["jobId"]}, []any{false, first["jobId"]})
	same(t, "other rows", s.want(409, "POST", "/submit-batch", strings.Replace(body, `"steps":2`, `"steps":3`, 1)).code(), "JOB_ALREADY_EXISTS")
	s.want(200, "POST", "/submit-batch", `{"batchName":"plain","type":"echo","settings":[{},{}]}`)
	s.want(200, "GET", "/jobs/plain-2", "")

	rows := s.want(200, "GET", "/jobs?batch=screen", "").fields(t)["jobs"].([]any)
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	last := rows[0].(map[string]any)
	same(t, "the last row", []any{last["jobName"], last["batch"], last["settings"]}, []any{"y", "screen", map[string]any{"steps": 2.0}})
	s.want(200, "GET", "/jobs", "").lacks(t, `"subjobs`)
	all := s.want(200, "GET", "/jobs?includeSubjobs=true", "").fields(t)["jobs"].([]any)
	shown := all[1].(map[string]any)["subjobs"].([]any)
	if len(all) != 2 || len(shown) != 2 || shown[0].(map[string]any)["jobName"] != "x" {
		t.Errorf("%d jobs, the older with the rows %v", len(all), shown)
	}
	s.run("x", map[string]string{"out.txt": "x"})
	same(t, "result", s.want(409, "POST", "/result", `{"jobName":"screen"}`).code(), "JOB_NOT_COMPLETED")
	part := s.want(200, "POST", "/result", `{"jobName":"screen","partial":true}`).fields(t)
	archive := s.send("GET", part["downloadUrl"].(string), "")
	if archive.status != 200 || !strings.Contains(archive.body, "x/out.txt") || float64(len(archive.body)) != part["size"] {
		t.Errorf("archive of a part: %d, %d bytes of %v", archive.status, len(archive.body), part["size"])
	}
}
