package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"molrun/app/test/must"
	"molrun/app/test/need"
)

// send sends a PUT that may be cut off and returns the response; status 0 means
// that there was none.
func (u user) send(target string, body io.Reader, length int64) (status int, text []byte) {
	r, err := http.NewRequestWithContext(u.t.Context(), http.MethodPut, target, body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	r.ContentLength = length
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return response.StatusCode, text
}

func TestStopUnderLoadLosesNothingAndLeavesJobsRunning(t *testing.T) {
	t.Parallel()
	s := shellServer(t, noSandbox+"[stop]\nrequests = \"2s\"\n")
	u := s.user("lab", "ann@lab.example")
	open := s.gate("go")
	mark := filepath.Join(s.dir, "ran")
	u.submit("runs", "shell", script(fmt.Sprintf("echo run >> '%s'; %s", mark, open.wait())))
	u.running("runs")
	stalled := u.put("stalled.txt", 1<<20)
	_, err := io.WriteString(stalled.pipe, "half")
	must.OK(t, err)
	s.waitForUpload()

	// Submit jobs until the service no longer responds, and wait for a job to change.
	var known sync.Map
	var submitted atomic.Int64
	var load sync.WaitGroup
	for i := range 8 {
		load.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("load-%d-%d", i, n)
				body := fmt.Sprintf(`{"jobName":%q,"type":"shell","settings":%s,"priority":-1}`, name, script("true"))
				r, err := http.NewRequest(http.MethodPost, s.base+"/submit-job", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("x-api-key", u.key)
				r.Header.Set("Content-Type", "application/json")
				response, err := http.DefaultClient.Do(r)
				if err != nil {
					return // the service has stopped
				}
				response.Body.Close()
				if response.StatusCode == http.StatusOK {
					known.Store(name, true)
					submitted.Add(1)
				}
			}
		})
	}
	waiting := make(chan int, 1)
	go func() {
		r, _ := http.NewRequest(http.MethodGet, s.base+"/jobs/runs?wait=60s", nil)
		r.Header.Set("x-api-key", u.key)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			waiting <- 0
			return
		}
		response.Body.Close()
		waiting <- response.StatusCode
	}()
	s.eventually("some jobs are submitted", func() bool { return submitted.Load() > 20 })

	begin := time.Now()
	s.stop() // checks for exit status 0
	t.Logf("stopped in %v with a stalled upload and requests = 2s; %d submissions succeeded", time.Since(begin), submitted.Load())
	load.Wait()
	if status := <-waiting; status != http.StatusOK {
		t.Errorf("waiting for a change: status %d, want 200", status)
	}
	if got := stalled.end(); got.status == http.StatusOK {
		t.Error("the stalled upload was accepted as complete")
	}
	if left := s.tempUploads(); len(left) > 0 {
		t.Errorf("the stalled upload left %v", left)
	}

	s.start()
	u.base = s.base
	known.Range(func(name, _ any) bool {
		u.do("GET", "/jobs/"+url.PathEscape(name.(string)), nil).want(200)
		return true
	})
	if r := u.job("runs"); r.Status != "RUNNING" || r.Attempts != 1 {
		t.Errorf("the running job: %s, attempt %d", r.Status, r.Attempts)
	}
	u.do("POST", "/upload/"+stalled.id+"/complete", nil).code(409, "UPLOAD_NOT_RECEIVED")
	open.open(t)
	if r := u.finished("runs"); r.Status != "COMPLETED" {
		t.Errorf("%+v", r.Failure)
	}
	if text, err := os.ReadFile(mark); err != nil || string(text) != "run\n" {
		t.Errorf("the job's program ran %q, %v; want once, without interruption", text, err)
	}
}

func TestStopAcceptsNoMoreConnections(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: "[stop]\nrequests = \"1h\"\n"})
	u := s.user("lab", "ann@lab.example")
	slow := u.put("slow.txt", 8)
	_, err := io.WriteString(slow.pipe, "half")
	must.OK(t, err)
	s.waitForUpload()
	must.OK(t, s.process.Process.Signal(syscall.SIGTERM))
	s.eventually("connections are refused", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	_, err = io.WriteString(slow.pipe, "half")
	must.OK(t, err)
	slow.end().want(200) // requests in progress may finish
	select {
	case <-s.exited:
	case <-time.After(patience):
		t.Fatalf("the server does not stop after the last request:\n%s", s.tail())
	}
	if code := s.process.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func TestSecondSignalEndsTheServiceAtOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: "[stop]\nrequests = \"1h\"\n"})
	u := s.user("lab", "ann@lab.example")
	stalled := u.put("stalled.txt", 8)
	_, err := io.WriteString(stalled.pipe, "half")
	must.OK(t, err)
	s.waitForUpload()
	must.OK(t, s.process.Process.Signal(syscall.SIGTERM))
	s.eventually("the service stops", func() bool { return strings.Contains(s.log.String(), "stopping; running jobs go on") })
	must.OK(t, s.process.Process.Signal(syscall.SIGTERM))
	select {
	case <-s.exited:
	case <-time.After(patience):
		t.Fatal("the server did not end after the second signal")
	}
	if status := s.process.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() {
		t.Errorf("server ended with %v, want death by signal", s.process.ProcessState)
	}
	s.ok("check")
	s.start() // removes the interrupted upload
	s.eventually("interrupted uploads are removed", func() bool { return len(s.tempUploads()) == 0 })
}

// notifySocket receives notifications like systemd.
type notifySocket struct {
	conn     *net.UnixConn
	messages chan string
}

func listenNotify(t *testing.T, address string) *notifySocket {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	must.OK(t, err)
	n := &notifySocket{conn, make(chan string, 1000)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(n.messages)
		buffer := make([]byte, 4096)
		for {
			length, err := conn.Read(buffer)
			if err != nil {
				return
			}
			n.messages <- string(buffer[:length])
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-ended
	})
	return n
}

// waitFor waits for a message and returns those received before it.
func (n *notifySocket) waitFor(t *testing.T, want string) (before []string) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case got := <-n.messages:
			if got == want {
				return before
			}
			before = append(before, got)
		case <-limit:
			t.Fatalf("no message %q, only %q", want, before)
		}
	}
}

func TestSystemdIsNotifiedOfReadinessLivenessAndStop(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "n")
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, os.RemoveAll(folder)) })
	for name, address := range map[string]string{
		"path":     filepath.Join(folder, "s"),
		"abstract": fmt.Sprintf("@molrun-test-%d", os.Getpid()),
	} {
		t.Run(name, func(t *testing.T) {
			supervisor := listenNotify(t, address)
			s := startServer(t, serverOptions{env: []string{"NOTIFY_SOCKET=" + address, "WATCHDOG_USEC=60000"}})
			if before := supervisor.waitFor(t, "READY=1"); len(before) > 0 {
				t.Errorf("before READY=1: %q", before)
			}
			for range 3 {
				if before := supervisor.waitFor(t, "WATCHDOG=1"); len(before) > 0 {
					t.Errorf("between watchdog messages: %q", before)
				}
			}
			s.stop()
			for _, message := range supervisor.waitFor(t, "STOPPING=1") {
				if message != "WATCHDOG=1" {
					t.Errorf("unexpected message %q", message)
				}
			}
		})
	}
}

func TestServiceThatCannotStartNeverReportsReady(t *testing.T) {
	t.Parallel()
	address := fmt.Sprintf("@molrun-test-bad-%d", os.Getpid())
	supervisor := listenNotify(t, address)
	s := unstarted(t, "listen = \"256.0.0.1:1\"\n", "NOTIFY_SOCKET="+address)
	if _, errs, code := s.run("serve"); code == 0 {
		t.Fatalf("the service started: %s", errs)
	}
	supervisor.conn.Close()
	for message := range supervisor.messages {
		t.Errorf("unexpected message %q", message)
	}
}

func TestSystemdAcceptsTheUnitFile(t *testing.T) {
	t.Parallel()
	s := unstarted(t, "[slurm]\nshared_dir = \"/shared/molrun\"\n")
	unit, errs, code := s.run("systemd-unit", "--user", "root", "--data", s.data())
	if code != 0 {
		t.Fatalf("%d: %s", code, errs)
	}
	for _, line := range []string{
		"KillMode=process", "Restart=always", "Type=notify", "NoNewPrivileges=yes", "UMask=0077", "LimitNOFILE=65536",
		"ProtectSystem=strict", "Delegate=yes",
		"ReadWritePaths=" + s.data() + " /tmp /var/tmp -/shared/molrun",
		"ExecStart=" + molrun + " serve --init --config " + filepath.Join(s.dir, "config.toml") + " --data " + s.data(),
	} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("the unit lacks %s:\n%s", line, unit)
		}
	}
	if _, errs, code := s.run("systemd-unit", "--data", "/srv/with space"); code != exitInvalid || !strings.Contains(errs, "with space") {
		t.Errorf("a path with a space: exit code %d: %s", code, errs)
	}
	analyze := need.Program(t, "systemd-analyze")
	must.OK(t, os.MkdirAll(s.data(), 0o700))
	for _, kind := range []struct {
		flags   []string
		exposed string // at most, in tenths
	}{{nil, "35"}, {[]string{"--podman"}, "65"}} {
		unit, errs, code := s.run(append([]string{"systemd-unit", "--data", s.data()}, kind.flags...)...)
		if code != 0 {
			t.Fatalf("%d: %s", code, errs)
		}
		file := filepath.Join(t.TempDir(), "molrun.service")
		must.OK(t, os.WriteFile(file, []byte(unit), 0o600))
		for _, args := range [][]string{
			{"verify", file},
			{"security", "--offline=yes", "--no-pager", "--threshold=" + kind.exposed, file},
		} {
			out, err := exec.Command(analyze, args...).CombinedOutput()
			if err != nil {
				t.Errorf("systemd-analyze %s: %v\n%s", args, err, out)
			}
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, file) {
					t.Errorf("systemd-analyze %s: %s", args, line)
				}
			}
		}
	}
}
