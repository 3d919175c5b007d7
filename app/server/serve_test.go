package server

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
	"molrun/app/client"
	"molrun/app/executor/local/gpu"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/server/config"
	"molrun/app/test/must"
	"molrun/app/test/smi"
	"molrun/blobs/link"
)

func TestServiceRunsJobsUntilItIsStopped(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	r := run(t, testConfig(t))
	u := r.user()
	_, err := u.Submit(t.Context(), client.Submission{Name: "j", Type: "shell", Settings: json.RawMessage(`{"script":"echo hello > out/a.txt"}`)})
	must.OK(t, err)
	if j, err := u.Wait(t.Context(), "j"); err != nil || j.Status != "COMPLETED" {
		t.Errorf("the job: %+v, %v", j, err)
	}
	if to := filepath.Join(t.TempDir(), "a.txt"); u.Download(t.Context(), client.ResultRequest{Job: "j", File: "a.txt"}, to) != nil || fileText(to) != "hello\n" {
		t.Errorf("the result is %q", fileText(to))
	}
	started := logged(t, r.log, "started")
	if started["listen"] != strings.TrimPrefix(r.base, "http://") || started["version"] != "v1" || started["data"] != r.config.Data || started["fingerprint"] != nil {
		t.Errorf("the log has %v", started)
	}
	if answer, _ := r.get("/openapi.yaml"); answer.StatusCode != http.StatusOK {
		t.Errorf("openapi.yaml: status %d", answer.StatusCode)
	}
	control := client.NewControl(filepath.Join(r.config.Data, "control.sock"))
	if isolation, err := control.Isolation(t.Context()); err != nil || isolation.Kind == "" || logged(t, r.log, isolation.Sentence)["isolation"] != isolation.Kind {
		t.Errorf("isolation %+v, %v", isolation, err)
	}
	procs := runtime.GOMAXPROCS(0)

	must.OK(t, r.stop())
	if conn, err := net.Dial("tcp", strings.TrimPrefix(r.base, "http://")); err == nil {
		t.Errorf("the address is still open: %v", conn.Close())
	}
	must.Equal(t, "goroutines may run at once", runtime.GOMAXPROCS(0), before)
	if logged(t, r.log, "stopping; running jobs continue") == nil {
		t.Error("the log does not say that the service stops")
	}
	if os.Getenv("GOMAXPROCS") == "" && procs < minProcs {
		t.Errorf("%d goroutines ran at once", procs)
	}
	s, _ := opened(t, r.config) // the directory is unlocked
	keys, err := s.accounts.Keys(t.Context(), app.Operator())
	if err != nil || len(keys) != 1 || keys[0].LastUsedAt.IsZero() {
		t.Errorf("keys %+v, %v, want one whose last use was saved", keys, err)
	}
}

func fileText(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

func TestServiceSpeaksHTTPSWithACertificate(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.TLS.SelfSigned = true
	r := run(t, c)
	if !strings.HasPrefix(r.base, "https://") {
		t.Errorf("it is reached at %s", r.base)
	}
	if print, _ := logged(t, r.log, "started")["fingerprint"].(string); print == "" {
		t.Errorf("the log has no fingerprint: %s", r.log)
	}
	_, err := (&http.Client{}).Get(r.base + "/healthz")
	must.Fail(t, "the error", err, "certificate")
	must.OK(t, syscall.Kill(os.Getpid(), syscall.SIGHUP)) // would end the process if there were no handler
}

func TestServiceThatCannotStartReleasesTheDirectory(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer taken.Close()
	for name, tt := range map[string]struct {
		spoil func(c *config.Config)
		says  string
		data  bool // a second start fails in the same way
	}{
		"address in use": {func(c *config.Config) { c.Listen = taken.Addr().String() }, "address already in use", false},
		"no certificate": {func(c *config.Config) { c.TLS.Cert, c.TLS.Key = "/nowhere/cert", "/nowhere/key" }, "/nowhere/", false},
		"an unsafe shared folder": {func(c *config.Config) {
			c.Slurm.SharedDir = t.TempDir()
			must.OK(t, os.Chmod(c.Slurm.SharedDir, 0o777))
		}, "is writable by others", false},
		"a damaged secret": {func(c *config.Config) {
			must.OK(t, os.MkdirAll(c.Data, 0o700))
			must.OK(t, os.WriteFile(filepath.Join(c.Data, "secret"), []byte("x"), 0o600))
		}, "secret", true},
		"a directory open to others": {func(c *config.Config) {
			must.OK(t, os.MkdirAll(c.Data, 0o700))
			must.OK(t, os.Chmod(c.Data, 0o777))
		}, "chmod 700", true},
		"a folder in place of the database": {func(c *config.Config) {
			must.OK(t, os.RemoveAll(c.Data))
			must.OK(t, os.MkdirAll(filepath.Join(c.Data, "jobs.db"), 0o700))
		}, "jobs.db", true},
		"no folder of algorithms": {func(c *config.Config) { c.Algorithms = "/nowhere/algorithms" }, "algorithms folder", false},
		"a file in place of the uploads": {func(c *config.Config) {
			must.OK(t, os.MkdirAll(c.Data, 0o700))
			must.OK(t, os.WriteFile(filepath.Join(c.Data, "uploads"), nil, 0o600))
		}, "uploads", true},
		"a folder in place of the audit log": {func(c *config.Config) { must.OK(t, os.MkdirAll(filepath.Join(c.Data, "audit.log"), 0o700)) }, "audit", true},
	} {
		good := testConfig(t)
		c := good
		tt.spoil(&c)
		ctx, cancel := context.WithCancel(t.Context())
		err := Run(ctx, c, Options{Log: zerolog.Nop(), Started: func(string) { cancel() }})
		cancel()
		must.Fail(t, name, err, tt.says)
		if s, err := openService(good, zerolog.Nop()); (err == nil) == tt.data {
			t.Errorf("%s: the next start: %v", name, err)
		} else if err == nil {
			must.OK(t, s.close())
		}
	}
}

func TestSecondServiceOnADirectoryIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := opened(t, testConfig(t))
	if _, err := openService(s.config, zerolog.Nop()); !errors.Is(err, fault.Unavailable) {
		t.Errorf("error %v, want %s", err, string(fault.Unavailable))
	}
}

// Checks that configured limits take effect on requests.
func TestConfigurationBoundsRequests(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.PublicURL = "https://molrun.lab.example/api"
	c.CORS.Origins = config.Origins{"https://pages.lab.example"}
	c.Limits.URL, c.Limits.Body, c.Limits.JSONDepth, c.Limits.Header = 200, 300, 4, 2000
	c.Rates.List, c.Rates.Submit, c.Rates.Upload = 1, 1000, 1000
	r := run(t, c)
	u := r.user()
	if answer, _ := r.get("/healthz", "Origin", "https://pages.lab.example"); answer.Header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("a page of an allowed origin gets %v", answer.Header)
	}
	for length, want := range map[int]bool{100: true, 2100: false} {
		if answer, _ := r.get("/healthz", "X-Long", strings.Repeat("x", length)); (answer.StatusCode == http.StatusOK) != want {
			t.Errorf("a header of %d bytes: status %d", length, answer.StatusCode)
		}
	}
	submit := func(script string) error {
		settings, err := json.Marshal(map[string]string{"script": script})
		must.OK(t, err)
		_, err = u.Submit(t.Context(), client.Submission{Name: "j", Type: "shell", Settings: settings})
		return err
	}
	var refused *client.Error
	if _, err := u.Job(t.Context(), strings.Repeat("x", 250)); !errors.As(err, &refused) || refused.Status != 422 {
		t.Errorf("a long path: %v", err)
	}
	if err := submit(strings.Repeat("x", 400)); !errors.As(err, &refused) || refused.Status != 413 {
		t.Errorf("a long body: %v", err)
	}
	must.OK(t, submit("true"))
	must.Become(t, "the job ends", func() bool { // otherwise it would outlive the service
		j, err := u.Job(t.Context(), "j")
		return err == nil && j.Status == "COMPLETED"
	})
	upload, err := u.CreateUpload(t.Context(), "", "a.txt")
	if err != nil || !strings.HasPrefix(upload.UploadURL, c.PublicURL+"/") {
		t.Errorf("the link is %+v, %v", upload, err)
	}
	for range 50 {
		for _, err = range u.Jobs(t.Context(), client.JobFilter{}) {
			break
		}
		if err != nil {
			break
		}
	}
	if !errors.As(err, &refused) || refused.Status != 429 {
		t.Errorf("many listings: %v", err)
	}
}

func TestServerHasTheBoundsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	s := &service{config: config.Default()}
	l := &s.config.Limits
	l.HeaderTime, l.IdleTime, l.TransferIdle = unit.Duration(time.Second), unit.Duration(2*time.Second), unit.Duration(3*time.Second)
	l.URL, l.Header = 100, 1000
	got := s.server(http.NotFoundHandler())
	if got.ReadHeaderTimeout != time.Second || got.IdleTimeout != 2*time.Second || got.MaxHeaderBytes != 2100 {
		t.Errorf("times %s and %s, %d bytes of headers", got.ReadHeaderTimeout, got.IdleTimeout, got.MaxHeaderBytes)
	}
	// A connection must not use more than a MiB, whatever its streams do.
	h := got.HTTP2
	if h.MaxReceiveBufferPerConnection > 1<<20 || h.MaxReceiveBufferPerStream > 256<<10 || h.MaxReadFrameSize > 64<<10 || h.MaxConcurrentStreams > 64 {
		t.Errorf("HTTP/2 has the bounds %+v", h)
	}
	if h.SendPingTimeout != 2*time.Second || h.PingTimeout > 15*time.Second || h.WriteByteTimeout != 3*time.Second {
		t.Errorf("HTTP/2 has the times %+v", h)
	}

	s.config.Rates = config.Rates{Submit: 2, List: 3, Upload: 4, Failed: 5}
	if r := s.rates(); r.Submit != 2 || r.List != 3 || r.Upload != 4 || r.Failed != 5 {
		t.Errorf("rates %+v", r)
	}
	s.config.Rates.Failed = 0
	if r := s.rates(); r.Failed >= 0 {
		t.Errorf("without a limit of refused keys, it is %v", r.Failed)
	}
}

func TestReadinessSaysWhatIsReady(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.Catalogue = config.NameList{"none"} // which programs it finds depends on the machine
	s, _ := opened(t, c)
	builtin := len(s.app.Algorithms.List(anybody)) - 2
	checks, ok := s.ready(t.Context())
	if !ok || checks["database"] != "ok" || checks["algorithmsReady"] != builtin+1 || checks["algorithmsNotReady"] != 1 || checks["drained"] != nil || checks["slurm"] != nil {
		t.Errorf("ready %t: %v, want %d algorithms and one that is not", ok, checks, builtin+1)
	}
	of := s.gpus
	s.gpus = gpu.New(gpu.Options{Program: smi.New(t).Cards(0, smi.Card(0, "GPU-a"), smi.Card(1, "[GPU is lost]")).Program})
	must.OK(t, s.gpus.Check(t.Context()))
	if checks, ok := s.ready(t.Context()); !ok || checks["gpus"] != "1 can be used; 0000:11:00.0 is lost" {
		t.Errorf("with a GPU that is lost: %t, %v", ok, checks)
	}
	must.OK(t, s.gpus.Close())
	s.gpus = of
	s.gaps = []string{"a", "b"}
	if checks, ok := s.ready(t.Context()); !ok || checks["sandbox"] != "a; b" {
		t.Errorf("with a sandbox that leaves something open: %t, %v", ok, checks)
	}
	_, err := s.app.Runs.Drain(t.Context(), anybody, "repair")
	must.OK(t, err)
	if checks, ok := s.ready(t.Context()); !ok || !strings.HasPrefix(checks["drained"].(string), "the queue has been paused since 20") {
		t.Errorf("drained: %t, %v", ok, checks)
	}
	must.OK(t, s.alive(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if checks, ok := s.ready(ctx); ok || checks["database"] != "can't be read" {
		t.Errorf("when the keys can't be read: %t, %v", ok, checks)
	}
}

// TestRotationNowEndsAllLinks covers sign-in links, which the secret does not sign, as
// well as links that it signs.
func TestRotationNowEndsAllLinks(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	s, _ := opened(t, c)
	must.OK(t, must.Error3(s.accounts.CreateKey(t.Context(), app.Operator(), access.KeyRequest{Organization: "lab", Email: "ann@lab.example", Role: apikey.Member})))
	invited, err := s.accounts.Invite(t.Context(), "lab", "ann@lab.example")
	must.OK(t, err)
	must.OK(t, must.Error2(s.endLinks(t.Context())))
	if _, err := s.accounts.Accept(t.Context(), invited.Token); fault.CodeOf(err) != fault.Unauthorized {
		t.Errorf("a link that signs in: %v", err)
	}
	secret, err := link.LoadSecret(c.Data)
	must.OK(t, err)
	must.Equal(t, "keys that verify links", len(secret.Keys), 1)
}

// If a process is allowed few open files, fewer connections are better than failing ones.
func TestBoundsFollowTheLimitOfOpenFiles(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	s, log := opened(t, c)
	if fits := s.config.Limits == c.Limits; fits != (logged(t, log, "low open-file limit") == nil) {
		t.Errorf("all fits: %t; the log has %s", fits, log)
	}
	s.errorLog().Print("accept: too many open files")
	if logged(t, log, "accept: too many open files")["message"] != "accept: too many open files" {
		t.Errorf("the log has %s", log)
	}
	c = testConfig(t)
	c.Limits.Connections = 1 << 40
	s, log = opened(t, c)
	if s.config.Limits.Connections >= 1<<40 || logged(t, log, "low open-file limit")["connections"] == nil {
		t.Errorf("%d connections are allowed; the log has %s", s.config.Limits.Connections, log)
	}
}

func TestAlgorithmFilesWithMistakesAreLeftOut(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	must.OK(t, os.WriteFile(filepath.Join(c.Algorithms, "bad.toml"), []byte("format = 1\ntype = 7\n"), 0o600))
	s, log := opened(t, c)
	if entry := logged(t, log, "skipped algorithm file"); entry["file"] != filepath.Join(c.Algorithms, "bad.toml") || entry["line"] == nil {
		t.Errorf("the log has %v", entry)
	}
	if s.builtin([]string{s.program, "engine", "cg-idp", "--validate"}) == nil {
		t.Error("the check of the built-in engine would start a process")
	}
}

func TestBuiltinChecksAreThoseOfThisProgram(t *testing.T) {
	t.Parallel()
	s := &service{program: "/opt/molrun"}
	for line, want := range map[string]bool{
		"/opt/molrun engine cg-idp --validate":                      true,
		"/opt/molrun engine cg-idp --validate --fasta a.fasta":      true,
		"/opt/molrun engine cg-idp --validate --fasta":              false,
		"/opt/molrun engine cg-idp --validate --other a.fasta":      false,
		"/opt/molrun engine cg-idp --validate --fasta a.fasta more": false,
		"/opt/molrun engine cg-idp":                                 false,
		"/usr/bin/molrun engine cg-idp --validate":                  false,
	} {
		check := s.builtin(strings.Fields(line))
		if (check != nil) != want {
			t.Errorf("%s is built in: %t, want %t", line, check != nil, want)
		}
		if check == nil {
			continue
		}
		var faults strings.Builder
		err := check(t.Context(), strings.NewReader(`{"settings":{}}`), &faults)
		if fasta := strings.Contains(line, "--fasta"); fasta != strings.Contains(faults.String()+errText(err), "a.fasta") {
			t.Errorf("%s says %q, %v", line, faults.String(), err)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
