package e2e

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/server/host"
	"molrun/app/test/containertest"
	"molrun/app/test/contract"
	"molrun/app/test/must"
	"molrun/app/test/whole"
	"molrun/web"
)

// molrun is the path of the program.
var molrun string

// TestMain builds molrun once for all tests.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(whole.Main("", func(program string) int {
		molrun = program
		code := m.Run()
		containertest.Remove()
		if err := errors.Join(plainServer.close(), slurmDaemons.Close()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		return code
	}))
}

// Exit codes of molrun.
const (
	exitFailed   = 1
	exitUsage    = 2
	exitKey      = 3
	exitMissing  = 4
	exitInvalid  = 5
	exitWaited   = 7
	exitJob      = 9
	exitDamaged  = 10
	exitUntested = 11
	exitLeft     = 130
)

// patience is the timeout for every wait in a test. Reaching it means failure.
const patience = must.Patience

// specChecker checks every response in every test against openapi.yaml.
var specChecker = sync.OnceValue(func() *contract.Checker {
	checker, err := contract.New(web.OpenAPI())
	if err != nil {
		panic(err)
	}
	return checker
})

// instance is a molrun process with its own data directory.
type instance struct {
	t       *testing.T
	dir     string // contains the configuration, algorithms and usually data
	dataDir string // if not in dir
	base    string
	process *exec.Cmd
	log     *whole.Log   // log of the last start
	logs    []*whole.Log // logs of all starts
	stderr  *whole.Log   // standard error of commands
	secrets *confidential
	shared  bool   // the server is not stopped when the test that started it ends
	tenant  string // suffix of a test's organizations and gates on a shared server
	http    *http.Client
	env     []string // additional environment variables
	flags   []string // flags of molrun serve
	binary  string   // instead of the binary built for the tests
	files   int      // open-file limit of serve; 0 means the inherited one
	exited  chan struct{}
}

// serverOptions are the options of a test's server.
type serverOptions struct {
	config     string            // TOML, without data and algorithms
	algorithms map[string]string // content by file name
	env        []string
	flags      []string // flags of molrun serve
	files      int      // open-file limit
	data       string   // data directory, if not in the server's directory
	binary     string   // instead of the binary built for the tests
}

// startServer starts a server, and stops it when the test ends.
func startServer(t *testing.T, o serverOptions) *instance {
	t.Helper()
	s := &instance{
		t: t, dir: t.TempDir(), dataDir: o.data, env: o.env, flags: o.flags, files: o.files, binary: o.binary,
		stderr: &whole.Log{}, secrets: &confidential{}, http: checkedClient(t),
	}
	s.writeFiles(o)
	t.Cleanup(func() {
		s.kill()
		s.killTasks()
		if t.Failed() {
			t.Logf("log of the server:\n%s", s.log.Tail())
		}
	})
	s.start()
	return s
}

// checkedClient returns a client that checks responses against openapi.yaml.
func checkedClient(t *testing.T) *http.Client {
	return &http.Client{Transport: specChecker().Transport(t, &http.Transport{}), Timeout: patience}
}

// writeFiles writes the configuration and algorithms of a server.
func (s *instance) writeFiles(o serverOptions) {
	s.t.Helper()
	folder := filepath.Join(s.dir, "algorithms")
	must.OK(s.t, os.Mkdir(folder, 0o700))
	must.OK(s.t, os.Mkdir(filepath.Join(s.dir, "gates"), 0o700))
	for name, text := range o.algorithms {
		s.algorithmFile(name, text)
	}
	config := fmt.Sprintf("data = %q\nalgorithms = %q\nlisten = \"127.0.0.1:0\"\n%s", s.data(), folder, o.config)
	must.OK(s.t, os.WriteFile(filepath.Join(s.dir, "config.toml"), []byte(config), 0o600))
}

// algorithmFile writes a file into the algorithms directory. It replaces @DIR@ with the
// server's directory, and makes scripts executable.
func (s *instance) algorithmFile(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "algorithms", name)
	must.OK(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	mode := os.FileMode(0o600)
	if strings.HasSuffix(name, ".sh") {
		mode = 0o700
	}
	must.OK(s.t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "@DIR@", s.dir)), mode))
}

func (s *instance) data() string {
	if s.dataDir != "" {
		return s.dataDir
	}
	return filepath.Join(s.dir, "data")
}

// command returns a molrun command that uses the server's configuration.
func (s *instance) command(args ...string) *exec.Cmd {
	c := exec.Command(cmp.Or(s.binary, molrun), args...)
	c.Dir = s.dir
	c.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "MOLRUN_CONFIG=" + filepath.Join(s.dir, "config.toml"),
		"MOLRUN_VALIDATORS_TIMEOUT=5m", // avoids a 503 on a busy machine
		"GORACE=" + os.Getenv("GORACE"),
	}, s.env...)
	return c
}

// run runs a molrun command with the server's configuration and returns its output and
// exit code.
func (s *instance) run(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	var out, errs bytes.Buffer
	c := s.command(args...)
	c.Stdout, c.Stderr = &out, io.MultiWriter(&errs, s.stderr)
	err := c.Run()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		s.t.Fatal(err)
	}
	s.secrets.keys(out.String())
	return out.String(), unnamed(errs.String()), c.ProcessState.ExitCode()
}

// outside runs a molrun command without the server's configuration, as a user would in a
// shell.
func outside(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	c := exec.Command(molrun, args...)
	c.Dir, c.Stdout, c.Stderr = t.TempDir(), &out, &errs
	if err := c.Run(); c.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), unnamed(errs.String()), c.ProcessState.ExitCode()
}

// unnamed removes the line with the data directory from a command's standard error, since
// another test checks that line.
func unnamed(errs string) string {
	if strings.HasPrefix(errs, "data directory: ") {
		_, errs, _ = strings.Cut(errs, "\n")
	}
	return errs
}

// start starts the process and waits until it listens.
func (s *instance) start() {
	s.t.Helper()
	s.process = s.command(append([]string{"serve", "--init"}, s.flags...)...)
	if s.files > 0 {
		s.process.Path = "/bin/sh"
		s.process.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, s.files)}, s.process.Args...)
	}
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := s.process.StderrPipe()
	must.OK(s.t, err)
	must.OK(s.t, s.process.Start())
	if s.logs == nil && !s.shared {
		s.t.Cleanup(s.checkLogs)
	}
	s.log = &whole.Log{}
	s.logs = append(s.logs, s.log)
	listening := make(chan string, 1)
	s.exited = make(chan struct{})
	go s.follow(stderr, s.log, listening, s.exited, s.process)
	select {
	case address := <-listening:
		s.base = "http://" + address
	case <-s.exited:
		s.t.Fatalf("the server ended at startup:\n%s", s.log)
	case <-time.After(patience):
		s.t.Fatalf("the server does not start:\n%s", s.log)
	}
}

// follow records the server's log and extracts the address from it.
func (s *instance) follow(stderr io.Reader, log *whole.Log, listening chan<- string, exited chan<- struct{}, process *exec.Cmd) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		log.AddLine(lines.Text())
		var line struct{ Message, Listen string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message == "started" {
			listening <- line.Listen
		}
	}
	_ = process.Wait() // the log shows how the process ended
	close(exited)
}

// kill kills the server, which simulates a crash. Its tasks keep running.
func (s *instance) kill() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Kill()
		<-s.exited
	}
}

// stop stops the server with SIGTERM, as an administrator would.
func (s *instance) stop() {
	s.t.Helper()
	must.OK(s.t, s.process.Process.Signal(syscall.SIGTERM))
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.t.Fatalf("the server does not stop:\n%s", s.log.Tail())
	}
	if code := s.process.ProcessState.ExitCode(); code != 0 {
		s.t.Errorf("the server exited with %d after SIGTERM:\n%s", code, s.log.Tail())
	}
}

// killTasks kills all processes of the server's tasks.
func (s *instance) killTasks() {
	for _, p := range s.processes(s.data()) {
		_ = syscall.Kill(p, syscall.SIGKILL)
	}
}

// processes returns the PIDs of the processes whose command line, environment or working
// directory contains text.
func (s *instance) processes(text string) (found []int) {
	entries, err := os.ReadDir("/proc")
	must.OK(s.t, err)
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil || pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		cwd, _ := os.Readlink("/proc/" + e.Name() + "/cwd")
		if strings.Contains(string(line)+string(env)+cwd, text) {
			found = append(found, pid)
		}
	}
	return found
}

// user is an API client with a key.
type user struct {
	*instance
	key string
}

// user creates a key through the running server's control socket, as `molrun key create`
// does, and returns a client with that key. If there are flags, it runs the command
// instead.
func (s *instance) user(organization, email string, flags ...string) user {
	s.t.Helper()
	organization += s.tenant
	if len(flags) > 0 {
		return user{s, strings.TrimSpace(s.ok(append([]string{"key", "create", "--organization", organization, "--email", email}, flags...)...))}
	}
	key, err := client.NewControl(filepath.Join(s.data(), host.Socket)).CreateKey(s.t.Context(), client.KeyRequest{Organization: organization, Email: email})
	must.OK(s.t, err)
	s.secrets.keys(key.Secret)
	return user{s, key.Secret}
}

// answer is a response with its complete body.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// do sends a request. A string is sent as JSON; headers are alternating names and
// values, and an empty value removes the header.
func (u user) do(method, path string, body any, header ...string) answer {
	u.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		u.secrets.settings(b)
		reader = strings.NewReader(b)
		header = append([]string{"Content-Type", "application/json"}, header...)
	case io.Reader:
		reader = b
	}
	target := path
	if !strings.HasPrefix(path, "http") {
		target = u.base + path
	}
	r, err := http.NewRequestWithContext(u.t.Context(), method, target, reader)
	must.OK(u.t, err)
	if u.key != "" && target != path {
		r.Header.Set("x-api-key", u.key)
	}
	if method == http.MethodPut {
		r.Header["Idempotency-Key"] = nil // not sent, but lets the client retry if the server has just closed an idle connection
	}
	for i := 0; i < len(header); i += 2 {
		if header[i+1] == "" {
			r.Header.Del(header[i])
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	response, err := u.http.Do(r)
	must.OK(u.t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	must.OK(u.t, err)
	return answer{u.t, response.StatusCode, response.Header, data}
}

// want fails the test unless the status is as given.
func (a answer) want(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d; body %s", a.status, status, a.body)
	}
	return a
}

// code checks the status and the error code.
func (a answer) code(status int, code string) {
	a.t.Helper()
	var e struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(a.body, &e); a.status != status || err != nil || e.Error.Code != code || e.Error.Message == "" {
		a.t.Errorf("status %d, body %s; want %d with %s", a.status, a.body, status, code)
	}
}

// detail checks that the response is a 422 with one error at each of the given locations,
// such as "body.jobName".
func (a answer) detail(places ...string) {
	a.t.Helper()
	var e struct {
		Detail []struct {
			Loc       []any
			Msg, Type string
		}
	}
	if err := json.Unmarshal(a.body, &e); a.status != 422 || err != nil {
		a.t.Errorf("status %d, body %s; want 422", a.status, a.body)
		return
	}
	got := map[string]bool{}
	for _, d := range e.Detail {
		var parts []string
		for _, p := range d.Loc {
			parts = append(parts, fmt.Sprint(p))
		}
		got[strings.Join(parts, ".")] = true
		if d.Msg == "" || d.Type == "" {
			a.t.Errorf("a fault without msg or type: %s", a.body)
		}
	}
	for _, place := range places {
		if !got[place] {
			a.t.Errorf("no fault at %s in %s", place, a.body)
		}
	}
}

// into decodes the body.
func (a answer) into(v any) answer {
	a.t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		a.t.Fatalf("%v in body %s", err, a.body)
	}
	return a
}

// record is a job record as returned by the API.
type record struct {
	JobID, JobName, Type, Version, Status, StatusReason string
	Settings                                            json.RawMessage
	Created                                             *bool
	Batch, Executor, Isolation, JobEmail, Organization  string
	ProgramVersion                                      string
	Attempts                                            int
	MemoryBytes                                         int64
	PastAttempts                                        []struct {
		Attempt       int
		Code, Message string
		MemoryBytes   int64
	}
	CreatedAt, StartedAt, CompletedAt string
	Progress                          *struct {
		Fraction float64
		Text     string
	}
	Metrics *struct {
		QueueSeconds, RunSeconds, CPUSeconds float64
		MaxRSSBytes                          int64
		Results                              map[string]any
	}
	Failure *struct {
		Code, Message, Signal, LogTail string
		ExitCode                       *int
	}
	Warnings     []string
	ResultBytes  int64
	SubjobCounts map[string]int
	Subjobs      []record
	Inputs       []struct{ Setting, FileID, Job, Output, Path, Filename, SHA256, Summary string }
}

// submit submits a job and returns its record.
func (u user) submit(name, typ, settings string) (r record) {
	u.t.Helper()
	body := fmt.Sprintf(`{"jobName":%q,"type":%q,"settings":%s}`, name, typ, settings)
	u.do("POST", "/submit-job", body).want(200).into(&r)
	return r
}

// job returns a job's record.
func (u user) job(name string) (r record) {
	u.t.Helper()
	u.do("GET", "/jobs/"+url.PathEscape(name), nil).want(200).into(&r)
	return r
}

// until waits until fn returns true for the job.
func (u user) until(name, what string, fn func(record) bool) record {
	u.t.Helper()
	return u.untilWithin(patience, name, what, fn)
}

func (u user) untilWithin(patience time.Duration, name, what string, fn func(record) bool) record {
	u.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		var r record
		u.do("GET", "/jobs/"+url.PathEscape(name)+"?wait=1s", nil).want(200).into(&r)
		if fn(r) {
			return r
		}
		if time.Now().After(deadline) {
			u.t.Fatalf("timeout waiting for job %s to be %s: %+v", name, what, r)
		}
	}
}

// finished waits until a job has finished.
func (u user) finished(name string) record {
	u.t.Helper()
	return u.until(name, "finished", func(r record) bool { return r.Status == "COMPLETED" || r.Status == "FAILED" })
}

// running waits until a job is running.
func (u user) running(name string) record {
	u.t.Helper()
	return u.until(name, "running", func(r record) bool { return r.Status == "RUNNING" })
}

// eventually waits until fn returns true.
func (s *instance) eventually(what string, fn func() bool) {
	s.t.Helper()
	must.Become(s.t, what, fn)
}

// result downloads a file of a job's result, or the archive if file is "".
func (u user) result(name, file string) []byte {
	u.t.Helper()
	var link struct{ DownloadURL, FileName string }
	request := map[string]string{"jobName": name}
	if file != "" {
		request["fileName"] = file
	}
	body, err := json.Marshal(request)
	must.OK(u.t, err)
	u.do("POST", "/result", string(body)).want(200).into(&link)
	return u.do("GET", link.DownloadURL, nil).want(200).body
}

// unzip returns the content of the files in an archive, by name.
func unzip(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	reader, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	must.OK(t, err)
	files := map[string]string{}
	for _, f := range reader.File {
		content, err := f.Open()
		must.OK(t, err)
		data, err := io.ReadAll(content)
		must.OK(t, err)
		files[f.Name] = string(data)
	}
	return files
}

// upload sends a file to its presigned URL and completes the upload.
func (u user) upload(filename, text string) (fileID string) {
	u.t.Helper()
	var grant struct {
		FileID, UploadURL string
		Instructions      struct{ Headers map[string]string }
	}
	u.secrets.add(strings.Split(text, "\n")...)
	u.do("PUT", "/upload/"+url.PathEscape(filename), nil).want(200).into(&grant)
	u.do("PUT", grant.UploadURL, strings.NewReader(text), "Content-Type", grant.Instructions.Headers["Content-Type"]).want(200)
	u.do("POST", "/upload/"+grant.FileID+"/complete", fmt.Sprintf(`{"size":%d}`, len(text))).want(200)
	return grant.FileID
}
