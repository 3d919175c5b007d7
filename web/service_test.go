package web_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/base/fault"
	"molrun/app/base/limit"
	"molrun/app/base/unit"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/job/delivery"
	"molrun/app/job/follow"
	"molrun/app/job/listing"
	"molrun/app/job/notice"
	"molrun/app/job/output"
	"molrun/app/job/retention"
	"molrun/app/job/status"
	"molrun/app/job/upload"
	"molrun/app/job/usage"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
	"molrun/app/test/whole"
	"molrun/blobs"
	"molrun/web"
	"molrun/web/edge"
	"molrun/web/respond"
)

// echoAlgorithm is the default algorithm of these tests.
const echoAlgorithm = `
format = 1
type = "echo"
version = "1"
default = true
title = "Echo"
description = "Prints its text."
executor = "any"
max_runtime = "1h"
command = ["echo", "{settings.steps}"]

[[parameters]]
name = "steps"
title = "Steps"
type = "integer"
minimum = 1
maximum = 1000
default = 10

[[parameters]]
name = "structure"
title = "Structure"
file = [".pdb"]

[resources]
cpus = 1
memory = "64MiB"
`

// breakable is a real store that can be made to fail.
type breakable struct {
	app.Store
	reading, writing atomic.Pointer[error]
	panics           atomic.Bool
}

func (b *breakable) View(ctx context.Context, fn func(app.Tx) error) error {
	if b.panics.Load() {
		panic("the store panics")
	}
	if err := b.reading.Load(); err != nil {
		return *err
	}
	return b.Store.View(ctx, fn)
}

func (b *breakable) Update(ctx context.Context, fn func(app.Tx) error) error {
	if err := b.writing.Load(); err != nil {
		return *err
	}
	return b.Store.Update(ctx, fn)
}

// service is a running service with real storage and files. It has no runner:
// tests claim and finish jobs by hand.
type service struct {
	t      *testing.T
	app    web.Services
	keeper *retention.Keeper
	store  *breakable
	blobs  *blobs.Dir
	url    string
	client *http.Client
	log    *whole.Log

	ann, bob, root, eve string // keys: two members, an admin, and a user of another organization
	made                int    // number of generated names
}

// setup configures the service to start.
type setup struct {
	options   web.Options
	algorithm string        // replaces echo
	from      string        // remote address of all requests; "" keeps the real one
	address   func() string // the same, per request
	signIn    edge.SignIn
	users     access.SignIn
	http2     bool             // over TLS
	now       func() time.Time // clock of accounts
	arrivals  *limit.Slots
}

func start(t *testing.T, change ...func(*setup)) *service {
	t.Helper()
	var with setup
	for _, c := range change {
		c(&with)
	}
	s := &service{t: t, log: &whole.Log{}}
	log := zerolog.New(s.log)
	store, files, closed := fixture.Open(t, t.TempDir(), blobs.Options{Now: time.Now, Log: log, Reserve: 1})
	t.Cleanup(closed)
	s.store, s.blobs = &breakable{Store: store}, files
	s.app = newApp(t, s.store, s.blobs, cmp.Or(with.algorithm, echoAlgorithm))
	s.keeper = retention.New(s.store, s.blobs, s.app.Jobs, retention.Options{Now: time.Now})
	if with.now != nil {
		s.app.Accounts = access.New(s.store, s.blobs, with.now)
	}
	s.app.Keeper = s.keeper
	with.options.Version = "test"
	api := web.New(s.app, with.options)
	s.app.Accounts.AllowSignIn(with.users)
	policy := edge.Policy{MaxHeader: 16 << 10, Trusted: with.options.TrustedProxies, SignIn: with.signIn}
	handler := web.Outer(policy.Wrap(api), blobs.Handler(s.blobs, linked(s.app), respond.Error), log)
	if with.from != "" {
		with.address = func() string { return with.from }
	}
	if with.address != nil {
		inner := handler
		handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.RemoteAddr = with.address()
			inner.ServeHTTP(w, r)
		})
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config = edge.Server(handler)
	server.Listener = edge.LimitConnections(server.Config, server.Listener, edge.Bounds{Connections: 1024}, with.arrivals)
	transport := &http.Transport{DisableCompression: true}
	if server.EnableHTTP2 = with.http2; with.http2 {
		server.StartTLS()
		transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
		transport.ForceAttemptHTTP2 = true
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	s.url = server.URL
	s.client = &http.Client{
		Transport:     described.Transport(t, transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(s.client.CloseIdleConnections)
	s.ann = newKey(t, s.app.Accounts, "lab", "ann@lab.example", apikey.Member)
	s.bob = newKey(t, s.app.Accounts, "lab", "bob@lab.example", apikey.Member)
	s.root = newKey(t, s.app.Accounts, "lab", "root@lab.example", apikey.Admin)
	s.eve = newKey(t, s.app.Accounts, "other", "eve@other.example", apikey.Admin)
	return s
}

// newApp returns a service that offers one algorithm.
func newApp(t testing.TB, store app.Store, files *blobs.Dir, algorithmText string) web.Services {
	t.Helper()
	s, err := app.NewService(store, files, fixture.Catalogue(t, algorithmText), app.Options{
		Now:     time.Now,
		Notices: policy,
		Routing: routing.Table{Executor: "local", Machines: map[string]placement.Machine{"local": {CPUs: 64, MemoryBytes: 1 << 40, Local: true}}},
	})
	must.OK(t, err)
	lists, err := listing.New(store, s.Jobs, bytes.Repeat([]byte{7}, 32))
	must.OK(t, err)
	accounts := access.New(store, files, time.Now)
	results := output.NewResults(store, files, s.Jobs, time.Now)
	services := web.Services{
		Service: s, Accounts: accounts, Lists: lists,
		Files:   upload.New(store, files, upload.Options{Now: time.Now, LinkTTL: time.Hour}),
		Results: results, Shares: output.NewShares(store, s.Jobs, results, time.Now),
		Outputs: output.NewOutputs(store, files, s, bytes.Repeat([]byte{7}, 32)), Sender: files, Follower: follow.New(store, s, accounts),
		Status: status.New(store, files, s.Runs, []status.Executor{{Executor: machine{}, State: func() string { return "ok" }}}, time.Now()),
		Usage:  usage.New(store, time.Now), Notices: delivery.NewNotices(store, policy, time.Now),
	}
	services.Linked = blobs.Handler(files, linked(services), respond.Error)
	return services
}

// machine is an executor that has only a name and a capacity.
type machine struct{ app.Executor }

func (machine) Name() string { return "local" }

func (machine) Capacity() (app.Capacity, bool) {
	return app.Capacity{CPUs: 64, MemoryBytes: 1 << 40, GPUs: []string{"0"}, FaultyGPUs: []app.FaultyGPU{{Name: "1", Fault: app.GPULost, Text: "is lost"}}}, true
}

// policy says who can be notified when jobs finish.
var policy = notice.Policy{Mail: true, Domains: []string{"partner.example"}}

// linked returns the service that resolves signed links.
func linked(s web.Services) blobs.Service {
	return struct {
		*upload.Files
		blobs.Archives
	}{s.Files, s.Results}
}

func newKey(t testing.TB, accounts *access.Accounts, organization, email string, role apikey.Role) string {
	t.Helper()
	key, _, err := accounts.CreateKey(context.Background(), app.Operator(), access.KeyRequest{Organization: organization, Email: email, Role: role})
	must.OK(t, err)
	return key
}

// answer is a response with its whole body.
type answer struct {
	status int
	header http.Header
	body   string
}

// send sends a request without a key. Headers alternate names and values.
func (s *service) send(method, path, body string, headers ...string) answer {
	s.t.Helper()
	r := s.request(method, path, body)
	r.Header.Del("x-api-key")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return s.do(r)
}

// request returns a request with ann's key to a path or to the URL of a link.
func (s *service) request(method, path, body string) *http.Request {
	s.t.Helper()
	url := path
	if !strings.HasPrefix(path, "http://") {
		url = s.url + path
	}
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	must.OK(s.t, err)
	r.Header.Set("x-api-key", s.ann)
	return r
}

// do sends a request and reads its response.
func (s *service) do(r *http.Request) answer {
	s.t.Helper()
	resp, err := s.client.Do(r)
	must.OK(s.t, err)
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		return answer{resp.StatusCode, resp.Header, s.beginning(resp.Body)}
	}
	data, err := io.ReadAll(resp.Body)
	must.OK(s.t, err)
	return answer{resp.StatusCode, resp.Header, string(data)}
}

// as sends a request with a key. A body is declared as JSON.
func (s *service) as(key, method, path, body string) answer {
	s.t.Helper()
	headers := []string{"x-api-key", key}
	if body != "" {
		headers = append(headers, "Content-Type", "application/json")
	}
	return s.send(method, path, body, headers...)
}

// want sends a request as ann and requires a status.
func (s *service) want(status int, method, path, body string) answer {
	s.t.Helper()
	return s.wantAs(s.ann, status, method, path, body)
}

// wantAs sends a request with a key and requires a status.
func (s *service) wantAs(key string, status int, method, path, body string) answer {
	s.t.Helper()
	return s.is(status, s.as(key, method, path, body), s.owner(key), method, path, body)
}

// wantSent sends a request without a key and requires a status.
func (s *service) wantSent(status int, method, path, body string, headers ...string) answer {
	s.t.Helper()
	return s.is(status, s.send(method, path, body, headers...), fmt.Sprintf("with %q", headers), method, path, body)
}

// refused sends a request with a key and requires an error.
func (s *service) refused(key string, status int, code, method, path, body string) {
	s.t.Helper()
	same(s.t, s.owner(key)+": "+method+" "+path, s.wantAs(key, status, method, path, body).code(), code)
}

func (s *service) is(status int, a answer, by, method, path, body string) answer {
	s.t.Helper()
	if a.status != status {
		s.t.Fatalf("%s: %s %s %s: status %d, want %d; body %s", by, method, path, body, a.status, status, a.body)
	}
	return a
}

// owner returns the name of a key's user, for messages.
func (s *service) owner(key string) string {
	switch key {
	case s.ann:
		return "ann"
	case s.bob:
		return "bob"
	case s.root:
		return "an admin"
	case s.eve:
		return "another organization"
	}
	return "another key"
}

// fields returns the members of a response.
func (a answer) fields(t *testing.T) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return out
}

// code returns the code of an error, or "" for any other response.
func (a answer) code() string {
	var e struct{ Error struct{ Code string } }
	_ = json.Unmarshal([]byte(a.body), &e)
	return e.Error.Code
}

// has requires that the status and body contain all texts.
func (a answer) has(t *testing.T, texts ...string) answer {
	t.Helper()
	contains(t, fmt.Sprint(a.status, " ", a.body), texts...)
	return a
}

// lacks requires that the body does not contain text.
func (a answer) lacks(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(a.body, text) {
		t.Errorf("%d with %q: %s", a.status, text, a.body)
	}
}

// faults returns the errors in a 422 response as text, such as "body.settings.0.steps
// value".
func (a answer) faults(t *testing.T) []string {
	t.Helper()
	var e struct{ Detail []fault.Field }
	if err := json.Unmarshal([]byte(a.body), &e); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	places := []string{}
	for _, f := range e.Detail {
		place := ""
		for _, part := range f.Loc {
			switch part := part.(type) {
			case string:
				place += "." + part
			case float64:
				place += "." + strconv.Itoa(int(part))
			}
		}
		places = append(places, place[1:]+" "+f.Type)
	}
	return places
}

// submit queues a job as ann.
func (s *service) submit(name string) {
	s.t.Helper()
	s.want(200, "POST", "/submit-job", `{"jobName":"`+name+`","type":"echo","settings":{}}`)
}

// claim starts an attempt at a queued job, as a runner would.
func (s *service) claim(name string) *app.Job {
	s.t.Helper()
	id := s.want(200, "GET", "/jobs/"+name, "").fields(s.t)["jobId"].(string)
	j, _, err := s.app.Runs.Claim(context.Background(), app.JobID(id), placement.Devices{}, app.ClaimLimit{})
	must.OK(s.t, err)
	must.OK(s.t, s.app.Runs.Started(context.Background(), j.ID, j.Attempts, time.Now(), app.ClusterJob{}))
	return j
}

// run runs a queued job and writes its log. The job completes with files as its
// result, or fails if files is nil.
func (s *service) run(name string, files map[string]string) {
	s.t.Helper()
	j := s.claim(name)
	s.printed(j, "line 1\nline 2\n")
	var ending app.Ending
	if files == nil {
		code := 1
		ending.Failure = &app.Failure{Code: app.FailedExit, Message: "It ended with status 1.", ExitCode: &code, LogTail: "line 2\n"}
	} else {
		ending.Results = json.RawMessage(`{"rg_nm":1.316}`)
		ending.ResultBytes = fixture.Result(s.t, s.blobs, j.ID, files)
	}
	s.end(j, 0, ending)
}

// finish ends an attempt with a failure.
func (s *service) finish(j *app.Job) {
	s.t.Helper()
	s.end(j, 0, app.Ending{Failure: &app.Failure{Code: app.FailedExit, Message: "It failed."}})
}

// end ends an attempt that has run for the given time.
func (s *service) end(j *app.Job, took time.Duration, e app.Ending) {
	s.t.Helper()
	now := time.Now()
	e.Outcome = &app.Outcome{StartedAt: now, EndedAt: now.Add(took)}
	must.OK(s.t, s.app.Runs.Finish(context.Background(), j.ID, j.Attempts, e))
}

// printed writes the log of an attempt.
func (s *service) printed(j *app.Job, text string) {
	s.t.Helper()
	s.write(filepath.Join(s.blobs.JobDir(j.ID), strconv.Itoa(j.Attempts), "log"), text)
}

func (s *service) write(path, text string) {
	s.t.Helper()
	must.Write(s.t, path, text)
}

// upload uploads and completes a file as ann and returns its ID.
func (s *service) upload(name, text string) string {
	s.t.Helper()
	grant := s.want(200, "PUT", "/upload/"+name, "").fields(s.t)
	id := grant["fileId"].(string)
	headers := grant["instructions"].(map[string]any)["headers"].(map[string]any)
	put := s.send("PUT", grant["uploadUrl"].(string), text, "Content-Type", headers["Content-Type"].(string))
	if put.status/100 != 2 {
		s.t.Fatalf("upload: status %d: %s", put.status, put.body)
	}
	s.want(200, "POST", "/upload/"+id+"/complete", "")
	return id
}

// chunked sends a body as root without a Content-Length.
func (s *service) chunked(c call, body string) answer {
	s.t.Helper()
	r, err := http.NewRequest(c.method, s.url+c.path, struct{ *strings.Reader }{strings.NewReader(body)})
	must.OK(s.t, err)
	r.ContentLength = -1
	r.Header.Set("x-api-key", s.root)
	r.Header.Set("Content-Type", "application/json; charset=UTF-8")
	return s.do(r)
}

func (s *service) disable(key string) {
	s.t.Helper()
	must.OK(s.t, must.Error2(s.app.Accounts.DisableKey(s.t.Context(), app.Operator(), strings.Split(key, "_")[1], true)))
}

// expiredKey returns an expired key.
func (s *service) expiredKey() string {
	s.t.Helper()
	key, record, err := s.app.Accounts.CreateKey(s.t.Context(), app.Operator(), access.KeyRequest{Organization: "lab", Email: "dora@lab.example", Role: apikey.Member, Expires: time.Hour})
	must.OK(s.t, err)
	record.ExpiresAt = unit.At(time.Now().Add(-time.Hour))
	must.OK(s.t, s.store.Update(s.t.Context(), func(tx app.Tx) error { return tx.PutKey(record) }))
	return key
}
