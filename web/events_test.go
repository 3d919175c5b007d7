package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/job/apikey"
	"molrun/app/test/must"
	"molrun/web"
)

// beginning reads a stream until the initial events are complete.
func (s *service) beginning(body io.Reader) string {
	s.t.Helper()
	text := ""
	for lines := bufio.NewReader(body); ; {
		line, err := lines.ReadString('\n')
		if text += line; err == io.EOF || line == ": listening\n" {
			return text
		}
		must.OK(s.t, err)
	}
}

// sse is an event of a stream.
type sse struct{ id, event, data string }

// about returns the name and status of the job that an event is about.
func (e sse) about(t *testing.T) (name, status string) {
	t.Helper()
	var about struct{ JobName, Status string }
	if err := json.Unmarshal([]byte(e.data), &about); err != nil {
		t.Fatalf("%v in %s", err, e.data)
	}
	return about.JobName, about.Status
}

// following is a stream that is read in the background.
type following struct {
	t      *testing.T
	events chan sse // closed at the end of the stream
	stop   func()
	last   string // ID of the last event taken
}

// follow opens a stream with a key ("" means none), waits for the initial events and
// returns them.
func (s *service) follow(key, path string, headers ...string) (*following, []sse) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	r := s.request("GET", path, "").WithContext(ctx)
	r.Header.Set("x-api-key", key)
	if key == "" {
		r.Header.Del("x-api-key")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.client.Do(r)
	must.OK(s.t, err)
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		s.t.Fatalf("GET %s: %d %s", path, resp.StatusCode, body)
	}
	if resp.ProtoMajor == 1 && !resp.Close {
		s.t.Error("the client considers the connection reusable")
	}
	f := &following{t: s.t, events: make(chan sse, 10_000), stop: cancel}
	s.t.Cleanup(func() {
		cancel()
		for range f.events {
		}
	})
	go f.read(resp.Body)
	var present []sse
	for {
		e, open := f.next()
		if !open || e.event == "" && e.data == "listening" {
			return f, present
		}
		present = append(present, e)
	}
}

// read parses the stream. A comment counts as an event without a name.
func (f *following) read(body io.ReadCloser) {
	defer close(f.events)
	defer body.Close()
	var e sse
	for lines := bufio.NewScanner(body); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.event = value
		case "data":
			e.data = value
		case "":
			if value == "listening" {
				e.data = value
			} else if e != (sse{}) {
				f.events <- e
				e = sse{}
			}
		}
	}
}

// next returns the next event, or false at the end of the stream.
func (f *following) next() (sse, bool) {
	f.t.Helper()
	select {
	case e, open := <-f.events:
		if e.id != "" {
			f.last = e.id
		}
		return e, open
	case <-time.After(must.Patience):
		f.t.Fatal("timed out waiting for an event")
		return sse{}, false
	}
}

// ends requires that the stream ends without another event.
func (f *following) ends() {
	f.t.Helper()
	for e, open := f.next(); open; e, open = f.next() {
		same(f.t, "an event before the end", e.event, "")
	}
}

// until returns the events up to the first one of that kind about a job with that status,
// or with any status if status is "".
func (f *following) until(kind, name, status string) (all []sse) {
	f.t.Helper()
	for {
		e, open := f.next()
		if !open {
			f.t.Fatalf("the stream ended before %s %s %s, after %v", kind, name, status, all)
		}
		if e.event == "" {
			continue
		}
		all = append(all, e)
		if n, s := e.about(f.t); e.event == kind && n == name && (status == "" || s == status) {
			return all
		}
	}
}

// told formats events as "job a RUNNING".
func told(t *testing.T, all []sse) []string {
	t.Helper()
	var text []string
	for _, e := range all {
		name, status := e.about(t)
		text = append(text, strings.TrimSpace(fmt.Sprint(e.event, " ", name, " ", status)))
	}
	return text
}

func wantTold(t *testing.T, what string, all []sse, want ...string) {
	t.Helper()
	same(t, what, told(t, all), want)
}

func TestEventsTellWhatHappensToAJob(t *testing.T) {
	s := start(t)
	own, present := s.follow(s.ann, "/events")
	wantTold(t, "at first", present)
	s.submit("a")
	wantTold(t, "submission", own.until("job", "a", "QUEUED"), "job a QUEUED")
	j := s.claim("a")
	wantTold(t, "start", own.until("job", "a", "RUNNING"), "job a RUNNING")
	s.app.Runs.SetProgress(j, app.Progress{Fraction: 0.5, Text: "half"})
	if all := own.until("progress", "a", ""); len(all) != 1 || all[0].id != "" || !strings.Contains(all[0].data, `"fraction":0.5,"text":"half"`) {
		t.Errorf("progress: %v", all)
	}
	s.want(200, "PATCH", "/jobs/a", `{"note":"seen"}`)
	if all := own.until("job", "a", ""); len(all) != 1 || !strings.Contains(all[0].data, `"note":"seen"`) {
		t.Errorf("note: %v", all)
	}
	s.want(200, "POST", "/jobs/a/pin", "")
	own.until("job", "a", "")
	s.finish(j)
	wantTold(t, "end", own.until("job", "a", "FAILED"), "metrics a", "job a FAILED")
	s.want(200, "POST", "/jobs/a/retry", "")
	own.until("job", "a", "QUEUED")
	s.run("a", map[string]string{"out.txt": "x"})
	all := own.until("job", "a", "COMPLETED")
	wantTold(t, "second end", all, "job a RUNNING", "metrics a", "job a COMPLETED")
	if !strings.Contains(all[1].data, `"results":{"rg_nm":1.316}`) || !strings.Contains(all[2].data, `"previousStatus":"RUNNING"`) {
		t.Errorf("end: %v", all)
	}
	s.want(204, "DELETE", "/jobs/a", "")
	wantTold(t, "deletion", own.until("deleted", "a", ""), "deleted a")
	_, present = s.follow(s.ann, "/events")
	wantTold(t, "a new listener", present)
}

// TestListingAndListeningMissNothing changes jobs between a listing and the stream that
// continues it.
func TestListingAndListeningMissNothing(t *testing.T) {
	s := start(t)
	s.submit("a")
	id := s.want(200, "GET", "/jobs", "").header.Get("X-Event-ID")
	j := s.claim("a")
	s.submit("b")
	for _, how := range [][]string{{"/events", "Last-Event-ID", id}, {"/events?lastEventId=" + id}, {"/events?lastEventId=1-00000000", "Last-Event-ID", id}} {
		f, present := s.follow(s.ann, how[0], how[1:]...)
		wantTold(t, how[0], present, "job a RUNNING", "job b QUEUED")
		f.stop()
	}
	f, _ := s.follow(s.ann, "/events", "Last-Event-ID", id)
	f.stop()
	s.finish(j)
	again, present := s.follow(s.ann, "/events", "Last-Event-ID", f.last)
	wantTold(t, "from the last event on", present, "metrics a", "job a FAILED")
	again.stop()
	_, present = s.follow(s.ann, "/events", "Last-Event-ID", again.last)
	wantTold(t, "told again", present)
}

func TestUnknownEventIDsResetTheStream(t *testing.T) {
	s := start(t)
	s.submit("a")
	last := s.want(200, "GET", "/jobs", "").header.Get("X-Event-ID")
	for _, id := range []string{"99-00000000", "1-00000000", "0-00000001"} {
		f, present := s.follow(s.ann, "/events", "Last-Event-ID", id)
		if len(present) != 1 || present[0].event != "reset" || present[0].id != last {
			t.Errorf("%s: %v, want a reset at %s", id, present, last)
		}
		s.submit("b" + id)
		f.until("job", "b"+id, "QUEUED")
		_, present = s.follow(s.ann, "/jobs/a/events", "Last-Event-ID", id)
		wantTold(t, id+" of one job", present, "reset", "job a QUEUED")
		last = f.last
	}
	for _, id := range []string{"x", "1", "1-0", "1-00000000.", "1-00000000.1", "-1-00000000", "01-00000000", "1-0000000G"} {
		a := s.send("GET", "/events", "", "x-api-key", s.ann, "Last-Event-ID", id)
		if a.status != 422 || a.faults(t)[0] != "header.Last-Event-ID value" {
			t.Errorf("%q: %d %s", id, a.status, a.body)
		}
		same(t, fmt.Sprintf("%q", id), s.want(422, "GET", "/jobs/a/events?lastEventId="+id, "").faults(t)[0], "query.lastEventId value")
	}
}

func TestEventsAreSelectedAsJobsAre(t *testing.T) {
	s := start(t)
	paths := map[string][]string{ // expected events by path
		"/events":                                 {"job a QUEUED", "job batch QUEUED", "job a FAILED", "job a FAILED", "deleted a"},
		"/events?organization=true":               {"job a QUEUED", "job batch QUEUED", "job b QUEUED", "job a FAILED", "job a FAILED", "deleted a"},
		"/events?jobEmail=Bob@lab.example":        {"job b QUEUED"},
		"/events?jobName=a":                       {"job a QUEUED", "job a FAILED", "job a FAILED", "deleted a"},
		"/events?jobName=row":                     {"job row FAILED"},
		"/events?batch=batch":                     {"job batch QUEUED", "job row FAILED", "job batch QUEUED"},
		"/events?algorithm=none&organization=1":   nil,
		"/events?status=QUEUED":                   {"job a QUEUED", "job batch QUEUED", "job a FAILED"},
		"/events?status=RUNNING&status=COMPLETED": nil,
		"/events?tag=round:1":                     {"job a QUEUED", "job a FAILED", "job a FAILED"}, // the last change removes the tag
		"/events?search=ROUND:1":                  {"job a QUEUED", "job a FAILED", "job a FAILED"},
	}
	streams := map[string]*following{}
	for path := range paths {
		streams[path], _ = s.follow(s.ann, path)
	}
	before := s.want(200, "GET", "/jobs", "").header.Get("X-Event-ID")
	s.want(200, "POST", "/submit-job", `{"jobName":"a","type":"echo","settings":{},"tags":{"round":"1"}}`)
	s.want(200, "POST", "/submit-batch", `{"batchName":"batch","type":"echo","settings":[{},{}],"jobNames":["row","row-2"]}`)
	s.as(s.bob, "POST", "/submit-job", `{"jobName":"b","type":"echo","settings":{}}`)
	s.want(200, "POST", "/jobs/a/cancel", "")
	s.want(200, "POST", "/jobs/row/cancel", "")
	s.want(200, "PATCH", "/jobs/a", `{"tags":{"round":null}}`)
	s.want(204, "DELETE", "/jobs/a", "")
	for path, want := range paths {
		again, later := s.follow(s.ann, path, "Last-Event-ID", before)
		again.stop()
		wantTold(t, path+" afterwards", withoutCounts(t, later), want...)
		wantTold(t, path, withoutCounts(t, streams[path].take(len(later))), want...)
	}
}

// take returns the next n events.
func (f *following) take(n int) (all []sse) {
	for len(all) < n {
		if e, _ := f.next(); e.event != "" {
			all = append(all, e)
		}
	}
	return all
}

// withoutCounts omits changes of a batch's counts, except in streams that include its
// jobs.
func withoutCounts(t *testing.T, all []sse) []sse {
	rows := slices.ContainsFunc(all, func(e sse) bool { name, _ := e.about(t); return name == "row" })
	batches := 0
	return slices.DeleteFunc(all, func(e sse) bool {
		name, _ := e.about(t)
		if name == "batch" {
			batches++
		}
		return name == "batch" && batches > 1 && !rows
	})
}

func TestAStreamOfAJobHasItsLogAndItsEnd(t *testing.T) {
	s := start(t)
	s.submit("a")
	f, present := s.follow(s.bob, "/jobs/a/events?logs=1")
	wantTold(t, "present", present, "job a QUEUED")
	j := s.claim("a")
	f.until("job", "a", "RUNNING")
	s.printed(j, "one\ntwo\nhal")
	logs := f.until("log", "a", "")
	contains(t, logs[len(logs)-1].data, `"attempt":1,"offset":0,"text":"one\ntwo\n"`)
	f.stop()
	s.printed(j, "one\ntwo\nhalf\nrest")
	again, present := s.follow(s.bob, "/jobs/a/events?logs=1", "Last-Event-ID", f.last)
	wantTold(t, "again", present, "log a")
	contains(t, present[0].data, `"offset":8,"text":"half\n"`)
	s.finish(j)
	all := again.until("end", "a", "FAILED")
	wantTold(t, "end", all, "metrics a", "job a FAILED", "log a", "end a FAILED")
	contains(t, all[2].data, `"offset":13,"text":"rest"`)
	again.ends()
	_, present = s.follow(s.ann, "/jobs/a/events?logs=1")
	wantTold(t, "afterwards", present, "metrics a", "job a FAILED", "log a", "end a FAILED")
	_, present = s.follow(s.ann, "/jobs/a/events", "Last-Event-ID", again.last)
	wantTold(t, "behind the end", present, "end a FAILED")
}

func TestAStreamOfADeletedJobEnds(t *testing.T) {
	s := start(t)
	s.submit("a")
	f, _ := s.follow(s.ann, "/jobs/a/events")
	s.want(200, "POST", "/jobs/a/cancel", "")
	wantTold(t, "end", f.until("end", "a", "FAILED"), "job a FAILED", "end a FAILED")
	s.want(200, "POST", "/jobs/a/retry", "")
	f, _ = s.follow(s.ann, "/jobs/a/events")
	id, _ := f.last, s.want(200, "POST", "/jobs/a/cancel", "")
	f.until("end", "a", "")
	s.want(204, "DELETE", "/jobs/a", "")
	s.submit("a")
	f, present := s.follow(s.ann, "/jobs/a/events", "Last-Event-ID", id)
	wantTold(t, "its successor", present, "job a QUEUED")
	f.stop()
}

func TestOtherOrganizationsHearNothing(t *testing.T) {
	s := start(t)
	s.submit("a")
	var streams []*following
	for _, path := range []string{"/events", "/events?organization=1", "/events?jobEmail=ann@lab.example", "/events?jobName=a", "/events?batch=a"} {
		f, _ := s.follow(s.eve, path)
		streams = append(streams, f)
	}
	s.wantAs(s.eve, 404, "GET", "/jobs/a/events", "")
	s.app.Runs.SetProgress(s.claim("a"), app.Progress{Fraction: 0.5})
	s.as(s.eve, "POST", "/submit-job", `{"jobName":"hers","type":"echo","settings":{}}`)
	streams[1].until("job", "hers", "QUEUED")
	wantTold(t, "own", streams[0].until("job", "hers", "QUEUED"), "job hers QUEUED")
	if got := streams[0].last; !strings.HasPrefix(got, "1-") {
		t.Errorf("the first event of the organization has the id %s", got)
	}
	for _, f := range streams[2:] {
		f.stop()
		f.ends()
	}
}

func TestStreamsEndWithTheirKey(t *testing.T) {
	s := start(t)
	f, _ := s.follow(s.ann, "/events")
	deleted, _ := s.follow(s.eve, "/events")
	other, _ := s.follow(s.bob, "/events?organization=1")
	s.disable(s.ann)
	must.OK(t, s.app.Accounts.DeleteKey(t.Context(), app.Operator(), apikey.ID(s.eve)))
	f.ends()
	deleted.ends()
	s.as(s.root, "POST", "/submit-job", `{"jobName":"b","type":"echo","settings":{}}`)
	other.until("job", "b", "QUEUED")
}

func TestStreamsHaveTheirOwnLimit(t *testing.T) {
	s := start(t, func(with *setup) {
		with.options = web.Options{MaxInFlight: 2, MaxInFlightPerKey: 1, MaxListeners: 4, MaxListenersPerKey: 3}
	})
	var streams []*following
	for range 3 {
		f, _ := s.follow(s.ann, "/events")
		streams = append(streams, f)
	}
	if a := s.want(429, "GET", "/events", ""); a.code() != "RATE_LIMITED" || a.header.Get("Retry-After") == "" {
		t.Errorf("%v %s", a.header, a.body)
	}
	s.submit("a") // streams do not block requests
	last, _ := s.follow(s.bob, "/jobs/a/events")
	s.wantAs(s.root, 503, "GET", "/jobs/a/events", "")
	last.stop()
	streams[0].stop()
	must.Become(t, "the slot of an ended stream is free", func() bool { return s.as(s.ann, "HEAD", "/events", "").status == 200 })
}

// TestStreamsOverHTTP2 uses a shared connection, which is not taken over.
func TestStreamsOverHTTP2(t *testing.T) {
	s := start(t, func(with *setup) { with.http2 = true })
	f, _ := s.follow(s.ann, "/events")
	s.wantAs(s.ann, 200, "POST", "/submit-job", `{"jobName":"a","type":"echo","settings":{}}`)
	f.until("job", "a", "QUEUED")
	s.disable(s.ann)
	f.ends()
}

// TestStreamsAreLoggedWithTheirSize checks the size of a stream that net/http did not
// write.
func TestStreamsAreLoggedWithTheirSize(t *testing.T) {
	s := start(t)
	s.submit("a")
	s.as(s.ann, "POST", "/jobs/a/cancel", "")
	body := s.as(s.ann, "GET", "/jobs/a/events", "").body
	want := fmt.Sprintf(`"path":"/jobs/a/events","remote":"127.0.0.1","status":200,"bytes":%d,`, len(body))
	must.Become(t, "the log has "+want, func() bool { return strings.Contains(s.log.String(), want) })
}

func TestStreamsEndWhenTheServiceStops(t *testing.T) {
	stopping, stop := context.WithCancel(t.Context())
	s := start(t, func(with *setup) { with.options.Stopping = stopping })
	f, _ := s.follow(s.ann, "/events")
	stop()
	f.ends()
}

func TestUnsupportedEventParametersAreRejected(t *testing.T) {
	s := start(t)
	s.submit("a")
	for query, want := range map[string]string{
		"limit=5": "query.limit unknown", "startKey=x": "query.startKey unknown", "since=2026-01-01": "query.since unknown",
		"until=2026-01-01": "query.until unknown", "sort=createdAt": "query.sort unknown", "order=asc": "query.order unknown",
		"count=1": "query.count unknown", "statuses=1": "query.statuses unknown", "includeSubjobs=1": "query.includeSubjobs unknown",
		"logs=1": "query.logs unknown", "status=DONE": "query.status value", "tag=x": "query.tag value",
	} {
		same(t, query, s.want(422, "GET", "/events?"+query, "").faults(t), []string{want})
	}
	if got := s.want(422, "GET", "/jobs/a/events?status=QUEUED&logs=2", "").faults(t); len(got) != 2 {
		t.Errorf("%v", got)
	}
}
