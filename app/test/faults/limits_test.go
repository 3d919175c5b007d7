package faults

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

// With 48 file descriptors and more clients than that, the service must keep running, and
// must serve all requests again once the clients have disconnected.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	prlimit := must.Installed(t, "prlimit")
	s := newServer(t, "", "[runner]\ncpus = 2\nmemory = \"1GiB\"\n")
	s.prefix = []string{prlimit, "--nofile=48"}
	s.start()
	l, v := newLedger(), &verdict{mayFail: true, mayRepeat: true}
	var idle []net.Conn
	for range 100 {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(s.base, "http://"), time.Second)
		if err != nil {
			break // the listen backlog is also full
		}
		idle = append(idle, conn)
	}
	for _, conn := range idle {
		conn.Close()
	}
	s.loadUntil(l, load{name: "d", clients: 4, jobs: 4, seed: *seed}, 40, 0, func() {})
	if s.ended() {
		t.Fatalf("the service ended with %v:\n%s", s.process.ProcessState, s.log.Tail())
	}
	s.conclude(l, v)
	t.Logf("nofile=48: after %d idle connections, all requests were served", len(idle))
}

// receiving returns the files of uploads that are in progress.
func (s *server) receiving() []string {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.data, "uploads", "tmp", "*"))
	must.OK(s.t, err)
	return files
}

// leaveDescriptors sets the service's open-file limit so that it has the given number of
// free descriptors.
func (s *server) leaveDescriptors(free int) {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(s.process.Process.Pid), "fd"))
	must.OK(s.t, err)
	used := map[string]bool{}
	for _, e := range entries {
		used[e.Name()] = true
	}
	limit := 0
	for ; free > 0 || used[strconv.Itoa(limit)]; limit++ {
		if !used[strconv.Itoa(limit)] {
			free--
		}
	}
	s.run("prlimit", fmt.Sprintf("--pid=%d", s.process.Process.Pid), fmt.Sprintf("--nofile=%d:", limit))
}

// Many clients with large request bodies must not make the service use more memory than
// configured.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	const bound = 256 << 20
	s := newServer(t, "", "[runner]\ncpus = 8\nmemory = \"1GiB\"\n[limits]\nbody = \"4MiB\"\nbatch_body = \"4MiB\"\nbuffered = \"32MiB\"\n")
	s.start()
	l, v := newLedger(), &verdict{mayFail: true, mayRepeat: true}
	watched := s.watchMemory()
	s.loadUntil(l, load{name: "m", clients: 32, jobs: 1, note: 512 << 10, seed: *seed}, 80, 0, func() {})
	peak := watched()
	if s.ended() || peak == 0 || peak > bound {
		t.Errorf("peak of anonymous memory %d bytes, want at most %d", peak, bound)
	}
	s.conclude(l, v)
	t.Logf("32 clients with 512 KiB a submission: peak of anonymous memory %d MiB", peak>>20)
}

// watchMemory samples the server's anonymous memory until stop is called. stop returns
// the peak.
func (s *server) watchMemory() (stop func() (peak int64)) {
	var peak int64
	done, pid := make(chan struct{}), s.process.Process.Pid
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
				peak = max(peak, anonymousMemory(pid))
			}
		}
	})
	return func() int64 {
		close(done)
		watch.Wait()
		return peak
	}
}

// anonymousMemory returns the resident anonymous memory of a process, or 0 once the
// process has exited. It excludes the mapped pages of the database, which the kernel can
// reclaim.
func anonymousMemory(pid int) (size int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	if _, err := fmt.Sscan(rest, &size); err != nil {
		return 0
	}
	return size << 10
}

// An upload that runs out of descriptors, at any point, must be rejected with a temporary
// error and leave no file. Once there are descriptors again, it must succeed.
func TestUploadsWithoutDescriptorsLeaveNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t, "", "[runner]\ncpus = 1\nmemory = \"64MiB\"\n")
	s.start()
	transport := &http.Transport{MaxConnsPerHost: 1} // connects before descriptors run short
	one := client.NewWith(s.base, s.key, transport)
	defer one.Close()
	put := func(u *client.Upload, meanwhile func()) *http.Response {
		body, send := io.Pipe()
		go func() { // ends when the request ends
			defer send.Close()
			_, _ = send.Write(make([]byte, 1<<20)) // if this fails, the response shows it
			meanwhile()
		}()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, u.UploadURL, body)
		must.OK(t, err)
		answer, err := transport.RoundTrip(r)
		must.OK(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		must.OK(t, errors.Join(err, answer.Body.Close()))
		return answer
	}
	refused := 0
	for n := range 12 {
		free, during := n/2, n%2 == 1
		u, err := one.CreateUpload(t.Context(), "inputs", fmt.Sprintf("f%d.txt", n))
		must.OK(t, err)
		if !during {
			s.leaveDescriptors(free)
		}
		answer := put(u, func() {
			if during {
				for end := time.Now().Add(patience); len(s.receiving()) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
				}
				s.leaveDescriptors(free)
			}
		})
		s.leaveDescriptors(1000)
		left, err := filepath.Glob(filepath.Join(s.data, "uploads", "*", u.FileID+".*"))
		must.OK(t, err)
		temporary := s.receiving()
		switch answer.StatusCode {
		case http.StatusOK:
			if len(left) != 1 || len(temporary) != 0 {
				t.Errorf("with %d free descriptors: 200, and the files %v %v; want one", free, left, temporary)
			}
			continue
		case http.StatusServiceUnavailable:
			refused++
			if len(left)+len(temporary) != 0 || answer.Header.Get("Retry-After") == "" {
				t.Errorf("with %d free descriptors: 503 (Retry-After %q) left the files %v %v", free, answer.Header.Get("Retry-After"), left, temporary)
			}
		default:
			t.Errorf("with %d free descriptors: %d, want 200 or 503; the files %v %v", free, answer.StatusCode, left, temporary)
		}
		if again := put(u, func() {}); again.StatusCode != http.StatusOK {
			t.Errorf("with descriptors again: %d, want 200", again.StatusCode)
		}
	}
	if refused == 0 || refused == 12 {
		t.Errorf("%d of 12 uploads were refused; want the first ones only", refused)
	}
	s.stop()
	s.check("--deep")
}
