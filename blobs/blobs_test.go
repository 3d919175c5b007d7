package blobs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
	"molrun/app/job/upload"
	"molrun/app/test/must"
	"molrun/blobs/link"
)

// clock is a wall clock that changes only when moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 20, 10, 40, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// rules is a Service backed by plain maps.
type rules struct {
	mu      sync.Mutex
	uploads map[app.UploadID]*app.Upload
	begun   map[app.UploadID]int
	folders map[app.JobID][]app.Folder
	inputs  map[app.JobID][]app.InputFile
	finish  error // error that FinishUpload returns, if set
}

func newRules() *rules {
	return &rules{
		uploads: make(map[app.UploadID]*app.Upload),
		begun:   make(map[app.UploadID]int),
		folders: make(map[app.JobID][]app.Folder),
		inputs:  make(map[app.JobID][]app.InputFile),
	}
}

func (s *rules) Upload(_ context.Context, id app.UploadID) (*app.Upload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.uploads[id]
	if !ok {
		return nil, fault.Errorf(fault.NotFound, "There is no such upload.")
	}
	c := *u
	return &c, nil
}

// BeginUpload reserves nothing, since there is no quota.
func (s *rules) BeginUpload(_ context.Context, id app.UploadID, _ int64) (int, *upload.Reservation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.uploads[id]
	switch {
	case !ok:
		return 0, nil, fault.Errorf(fault.NotFound, "There is no such upload.")
	case u.Completed():
		return 0, nil, fault.Errorf(fault.UploadCompleted, "This upload is complete; make a new one.")
	}
	s.begun[id] = max(s.begun[id], u.Generation) + 1
	return s.begun[id], nil, nil
}

func (s *rules) BeginPart(ctx context.Context, id app.UploadID, _, _ int64) (int, *upload.Reservation, error) {
	return s.BeginUpload(ctx, id, 0)
}

func (s *rules) FinishUpload(_ context.Context, id app.UploadID, f app.StoredFile) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finish != nil {
		return 0, s.finish
	}
	u, ok := s.uploads[id]
	if !ok || u.Completed() || f.Generation <= u.Generation {
		return 0, fault.Errorf(fault.UploadCompleted, "Another upload was faster.")
	}
	stale := u.Generation
	u.Partial = nil
	u.Generation, u.Size, u.SHA256, u.CRC32 = f.Generation, f.Size, f.SHA256, f.CRC32
	return stale, nil
}

func (s *rules) BeginPartial(_ context.Context, id app.UploadID, p *app.Partial) error {
	return s.putPartial(id, p)
}

func (s *rules) SavePartial(_ context.Context, id app.UploadID, p *app.Partial) error {
	return s.putPartial(id, p)
}

func (s *rules) DropPartial(_ context.Context, id app.UploadID) error { return s.putPartial(id, nil) }

func (s *rules) putPartial(id app.UploadID, p *app.Partial) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.uploads[id]
	switch {
	case !ok:
		return fault.Errorf(fault.NotFound, "There is no such upload.")
	case p != nil:
		c := *p
		p = &c
	}
	u.Partial = p
	return nil
}

func (s *rules) Archive(_ context.Context, id app.JobID, form app.ArchiveForm) (app.Archive, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	folders, ok := s.folders[id]
	if !ok {
		return app.Archive{}, fault.Errorf(fault.NotFound, "There is no such job.")
	}
	if form.Partial {
		folders = folders[:1]
	}
	a := app.Archive{Folders: slices.Clone(folders)}
	if form.Inputs {
		a.Inputs = s.inputs[id]
	}
	return a, nil
}

// complete confirms an upload as its owner would.
func (s *rules) complete(id app.UploadID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uploads[id].CompletedAt = unit.Time{Time: time.Unix(1, 0)}
}

var _ Service = struct {
	*upload.Files
	Archives
}{}

// fixture is a directory served on the loopback interface.
type fixture struct {
	*Dir
	t      testing.TB
	path   string
	clock  *clock
	rules  *rules
	server *httptest.Server
	ids    byte
}

func start(t testing.TB, change ...func(*Options)) *fixture {
	t.Helper()
	return startIn(t, t.TempDir(), change...)
}

func startIn(t testing.TB, path string, change ...func(*Options)) *fixture {
	t.Helper()
	f := &fixture{t: t, path: path, clock: newClock(), rules: newRules()}
	secret, err := link.LoadSecret(path)
	must.OK(t, err)
	o := Options{Now: f.clock.Now, Secret: secret, Log: zerolog.Nop(), Reserve: 1}
	for _, c := range change {
		c(&o)
	}
	f.Dir, err = Open(path, o)
	must.OK(t, err)
	f.server = httptest.NewServer(Handler(f.Dir, f.rules, writeError))
	t.Cleanup(func() {
		f.server.Close()
		must.OK(t, f.Close())
	})
	return f
}

// writeError writes errors as a stand-in for package web.
func writeError(w http.ResponseWriter, _ *http.Request, err error) {
	status, ok := map[fault.Code]int{
		fault.NotFound: 404, fault.LinkInvalid: 403, fault.LinkExpired: 403, fault.QuotaExceeded: 403, fault.MethodNotAllowed: 405,
		fault.UploadCompleted: 409, fault.UploadNotReceived: 409, fault.FileTooLarge: 413,
		fault.UnsupportedMediaType: 415, fault.RangeInvalid: 416, fault.Invalid: 422,
		fault.Unavailable: 503, fault.StorageFull: 507,
		fault.UploadOffset: 409, fault.UploadLength: 400, fault.DigestMismatch: 400,
	}[fault.CodeOf(err)]
	if !ok {
		status = 500
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"code":%q}}`, fault.CodeOf(err))
}

// id returns an ID not yet used in this test.
func (f *fixture) id() string {
	f.ids++
	return sortid.ID{0: 1, 15: f.ids}.String()
}

// newUpload creates the record of a pending upload.
func (f *fixture) newUpload(contentType string) app.UploadID {
	id := app.UploadID(f.id())
	f.rules.mu.Lock()
	defer f.rules.mu.Unlock()
	f.rules.uploads[id] = &app.Upload{ID: id, ContentType: contentType}
	return id
}

// link returns the URL of a link that is valid for an hour.
func (f *fixture) link(l app.Link) string {
	l.Expires = f.clock.Now().Add(time.Hour)
	return f.server.URL + f.Link(l)
}

func (f *fixture) putLink(id app.UploadID) string {
	return f.link(app.Link{Kind: app.UploadPut, ID: string(id), Filename: "a.pdb", ContentType: "text/plain"})
}

func (f *fixture) getLink(id app.UploadID) string {
	return f.link(app.Link{Kind: app.UploadGet, ID: string(id), Filename: "a.pdb"})
}

// resultLink returns the URL of a file of a result.
func (f *fixture) resultLink(id app.JobID, file int) string {
	return f.link(app.Link{Kind: app.ResultGet, ID: string(id), File: file, Filename: "a"})
}

// upload sends content and checks that it is accepted.
func (f *fixture) upload(id app.UploadID, content string) {
	f.t.Helper()
	if res := f.do("PUT", f.putLink(id), content); res.status != 200 {
		f.t.Fatalf("PUT: status %d, body %s", res.status, res.body)
	}
}

// uploaded creates an upload and sends its content.
func (f *fixture) uploaded(content string) app.UploadID {
	f.t.Helper()
	id := f.newUpload("text/plain")
	f.upload(id, content)
	return id
}

// stored creates an upload whose bytes are on disk without a PUT.
func (f *fixture) stored(content string) app.UploadID {
	f.t.Helper()
	id := f.newUpload("text/plain")
	write(f.t, f.path, map[string]string{uploadName(id, 1): content})
	u := f.rules.uploads[id]
	u.Generation, u.Size, u.SHA256 = 1, int64(len(content)), sha(content)
	return id
}

// result creates a completed job with these result files.
func (f *fixture) result(files map[string]string) app.JobID {
	f.t.Helper()
	id := app.JobID(f.id())
	must.OK(f.t, os.MkdirAll(f.JobDir(id), 0o700))
	m := &app.Manifest{}
	for name, content := range files {
		write(f.t, f.JobDir(id), map[string]string{"result/" + name: content})
		m.Files = append(m.Files, app.ManifestFile{
			Name: name, Path: "result/" + name, Size: int64(len(content)),
			CRC32: crc32.ChecksumIEEE([]byte(content)), SHA256: fmt.Sprintf("%064x", len(name)),
		})
	}
	slices.SortFunc(m.Files, func(a, b app.ManifestFile) int { return strings.Compare(a.Name, b.Name) })
	must.OK(f.t, f.WriteManifest(id, m))
	f.rules.folders[id] = []app.Folder{{Job: id}}
	return id
}

// response is a response with its body fully read.
type response struct {
	status int
	header http.Header
	body   string
	err    error // error from reading the body
}

// do sends a request; headers are name-value pairs.
func (f *fixture) do(method, url, body string, headers ...string) response {
	f.t.Helper()
	return f.send(method, url, strings.NewReader(body), headers...)
}

// send is do with a body that might not reveal its length.
func (f *fixture) send(method, url string, body io.Reader, headers ...string) response {
	f.t.Helper()
	return f.traced(&httptrace.ClientTrace{}, method, url, body, headers...)
}

// traced is send with a client trace.
func (f *fixture) traced(trace *httptrace.ClientTrace, method, url string, body io.Reader, headers ...string) response {
	f.t.Helper()
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), method, url, body)
	must.OK(f.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := f.server.Client().Do(req)
	must.OK(f.t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return response{res.StatusCode, res.Header, string(data), err}
}

// code returns the error code of a response.
func (r response) code() fault.Code {
	var body struct {
		Error struct{ Code fault.Code }
	}
	_ = json.Unmarshal([]byte(r.body), &body)
	return body.Error.Code
}

// want checks status and code.
func (r response) want(t testing.TB, status int, code fault.Code) {
	t.Helper()
	if r.status != status || r.code() != code {
		t.Errorf("status %d, code %q, body %.200q; want %d, %q", r.status, r.code(), r.body, status, code)
	}
}

// write creates files in a directory tree.
func write(t testing.TB, top string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(top, name)
		must.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
}

// names lists the files in a directory tree of the fixture.
func (f *fixture) names(dir string) []string {
	f.t.Helper()
	var names []string
	root := filepath.Join(f.path, dir)
	err := filepath.WalkDir(root, func(p string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(root, p)
			names = append(names, rel)
		}
		return err
	})
	must.OK(f.t, err)
	return names
}

// dial sends the header of a request on a separate connection.
func (f *fixture) dial(method, link string, headers ...string) (*net.TCPConn, *bufio.Reader) {
	f.t.Helper()
	u, err := url.Parse(link)
	must.OK(f.t, err)
	conn, err := net.Dial("tcp", u.Host)
	must.OK(f.t, err)
	f.t.Cleanup(func() { conn.Close() })
	head := append([]string{method + " " + u.RequestURI() + " HTTP/1.1", "Host: " + u.Host}, headers...)
	fmt.Fprint(conn, strings.Join(head, "\r\n"), "\r\n\r\n")
	return conn.(*net.TCPConn), bufio.NewReader(conn)
}

// wantLine reads a response up to the first nonempty line and checks that it contains
// want.
func wantLine(t testing.TB, answer *bufio.Reader, want string) {
	t.Helper()
	for {
		line, err := answer.ReadString('\n')
		if line == "\r\n" && err == nil {
			continue
		}
		if err != nil || !strings.Contains(line, want) {
			t.Fatalf("line %q, err %v; want %q", line, err, want)
		}
		return
	}
}
