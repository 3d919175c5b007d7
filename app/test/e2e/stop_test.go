package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app/test/must"
)

// halfPut sends the first half of an 8-byte file and returns the connection.
func (u user) halfPut() net.Conn {
	u.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(u.base, "http://"))
	must.OK(u.t, err)
	u.t.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: molrun\r\nContent-Length: 8\r\n\r\nhalf", strings.TrimPrefix(u.grant("slow.txt").UploadURL, u.base))
	must.OK(u.t, err)
	u.eventually("an upload has begun", u.receives)
	return conn
}

// receives reports whether an upload is in progress.
func (s *instance) receives() bool {
	found, err := filepath.Glob(filepath.Join(s.data(), "uploads", "tmp", "*"))
	must.OK(s.t, err)
	return len(found) > 0
}

func TestSecondSignalEndsTheServiceAtOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: "[stop]\nrequests = \"1h\"\n"})
	s.user("lab", "ann@lab.example").halfPut()
	must.OK(t, s.process.Process.Signal(syscall.SIGTERM))
	s.eventually("the service stops", func() bool { return strings.Contains(s.log.String(), "stopping; running jobs continue") })
	must.OK(t, s.process.Process.Signal(syscall.SIGTERM))
	<-s.exited
	if status := s.process.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() {
		t.Errorf("server ended with %v, want death by signal", s.process.ProcessState)
	}
	s.ok("check")
	s.start() // removes the interrupted upload
	s.eventually("interrupted uploads are removed", func() bool { return !s.receives() })
}

// notified returns the messages sent to a systemd notification socket.
func notified(t *testing.T, address string) <-chan string {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	must.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	messages := make(chan string, 10_000)
	go func() { // ends when the socket is closed
		defer close(messages)
		for buffer := make([]byte, 4096); ; {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			messages <- string(buffer[:n])
		}
	}()
	return messages
}

func TestSystemdIsNotifiedOfReadinessLivenessAndStop(t *testing.T) {
	t.Parallel()
	address := fmt.Sprintf("@molrun-e2e-%d", os.Getpid())
	messages := notified(t, address)
	if _, errs, code := unstarted(t, "listen = \"256.0.0.1:1\"\n", "NOTIFY_SOCKET="+address).run("serve"); code == 0 || len(messages) > 0 {
		t.Fatalf("a service that cannot start sends %d messages: %s", len(messages), errs)
	}
	s := startServer(t, serverOptions{env: []string{"NOTIFY_SOCKET=" + address, "WATCHDOG_USEC=60000"}})
	next := func() string {
		select {
		case got := <-messages:
			return got
		case <-time.After(patience):
			t.Fatal("systemd receives no notification")
			return ""
		}
	}
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		must.Equal(t, "the message", next(), want)
	}
	s.stop()
	for got := ""; got != "STOPPING=1"; {
		if got = next(); got != "STOPPING=1" && got != "WATCHDOG=1" {
			t.Errorf("unexpected message %q", got)
		}
	}
}

func TestSystemdAcceptsTheUnitFile(t *testing.T) {
	t.Parallel()
	s := unstarted(t, "[slurm]\nshared_dir = \"/shared/molrun\"\n")
	unit := s.ok("systemd-unit", "--user", "root", "--data", s.data())
	for _, line := range []string{
		"KillMode=process", "Restart=always", "Type=notify", "NoNewPrivileges=yes", "UMask=0077", "LimitNOFILE=65536",
		"ProtectSystem=strict", "Delegate=yes",
		"ReadWritePaths=" + s.data() + " /tmp /var/tmp -/shared/molrun",
		"ExecStart=" + molrun + " serve --init --config " + filepath.Join(s.dir, "config.toml") + " --data " + s.data(),
	} {
		must.Contain(t, "the unit", unit, "\n"+line+"\n")
	}
	s.fails(exitInvalid, "with space", "systemd-unit", "--data", "/srv/with space")
	analyze := must.Installed(t, "systemd-analyze")
	must.OK(t, os.MkdirAll(s.data(), 0o700))
	for _, kind := range []struct {
		flags   []string
		exposed string // maximum exposure level, in tenths
	}{{nil, "35"}, {[]string{"--podman"}, "65"}} {
		unit := s.ok(append([]string{"systemd-unit", "--data", s.data()}, kind.flags...)...)
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
