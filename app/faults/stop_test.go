package faults

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"

	"molrun/web/client"
)

// SIGTERM under load: what was acknowledged stays, jobs run on and are adopted
// by the next life, each once.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t, "", "[runner]\ncpus = 8\nmemory = \"1GiB\"\n")
	l, v := newLedger(), &verdict{}
	for life := range 3 {
		s.start()
		s.verify(l, v, false)
		o := load{life: fmt.Sprintf("s%d", life), clients: 6, jobs: 4, seed: *seed + uint64(life)}
		var took time.Duration
		s.loadUntil(l, o, 40, 0, func() {
			begin := time.Now()
			s.stop()
			took = time.Since(begin)
		})
		t.Logf("exit 0, %v after SIGTERM under load", took.Round(time.Millisecond))
		s.check()
	}
	s.start()
	s.conclude(l, v)
}

// An upload that stands still does not hold the end up for ever, and leaves
// nothing behind.
func TestStopDoesNotWaitForAStalledUpload(t *testing.T) {
	t.Parallel()
	s := newServer(t, "", "")
	s.start()
	ctx := t.Context()
	u, err := s.client().CreateUpload(ctx, "", "stalled.txt")
	must(t, err)
	conn := stall(t, u.UploadURL, u.Instructions.Headers["Content-Type"], 1<<20, 1000)
	begin := time.Now()
	s.stop()
	t.Logf("exit 0, %v after SIGTERM with a stalled upload", time.Since(begin).Round(time.Millisecond))
	if rest, err := io.ReadAll(conn); err == nil && len(rest) > 0 {
		t.Errorf("the stalled upload was answered: %.200s", rest)
	}
	s.start()
	for file, err := range s.client().Files(ctx, client.FileFilter{}) {
		if err != nil || file.Status == "completed" {
			t.Errorf("file %+v, error %v; want it pending", file, err)
		}
	}
	s.stop()
	s.check("--deep")
	if left := s.temporary(); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

// A second signal ends the service at once, whatever it waits for.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t, "", "")
	s.start()
	u, err := s.client().CreateUpload(t.Context(), "", "stalled.txt")
	must(t, err)
	stall(t, u.UploadURL, u.Instructions.Headers["Content-Type"], 1<<20, 1000)
	must(t, s.process.Process.Signal(syscall.SIGTERM))
	s.eventually("it says that it stops", func() bool { return s.logged("stopping") })
	for !s.ended() { // the first handler gives way a moment after it was told
		_ = s.process.Process.Signal(syscall.SIGTERM) // it may be over
		time.Sleep(10 * time.Millisecond)
	}
	if status := s.process.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() {
		t.Errorf("it ended with %v, want by the signal", s.process.ProcessState)
	}
	s.check()
}

// stall opens an upload of size bytes, sends some of them and no more. It
// returns when the service has begun to take it.
func stall(t *testing.T, link, contentType string, size, sent int) net.Conn {
	t.Helper()
	u, err := url.Parse(link)
	must(t, err)
	conn, err := net.Dial("tcp", u.Host)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
		u.RequestURI(), u.Host, contentType, size)
	must(t, err)
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
	answer := make([]byte, len(goOn))
	_, err = io.ReadFull(conn, answer)
	must(t, err)
	if string(answer) != goOn {
		t.Fatalf("the upload is answered %q", answer)
	}
	_, err = conn.Write(make([]byte, sent))
	must(t, err)
	return conn
}
