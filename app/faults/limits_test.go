package faults

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// With 48 descriptors and more clients than that, the service keeps running and
// serves all requests again once the clients are gone.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		skipUnlessRequired(t, "prlimit is not installed")
	}
	s := newServer(t, "", "[runner]\ncpus = 2\nmemory = \"1GiB\"\n")
	s.prefix = []string{prlimit, "--nofile=48"}
	s.start()
	l, v := newLedger(), &verdict{mayFail: true, mayRepeat: true}
	var idle []net.Conn
	for range 100 {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(s.base, "http://"), time.Second)
		if err != nil {
			break // the listen backlog is full, too
		}
		idle = append(idle, conn)
	}
	open := s.openFiles()
	for _, conn := range idle {
		conn.Close()
	}
	s.loadUntil(l, load{name: "d", clients: 4, jobs: 4, seed: *seed}, 40, 0, func() {})
	if s.ended() {
		t.Fatalf("the service ended with %v:\n%s", s.process.ProcessState, s.log.tail())
	}
	s.conclude(l, v)
	t.Logf("nofile=48: %d idle connections used %d descriptors; then all requests were served", len(idle), open)
}

// openFiles counts the descriptors of the service.
func (s *server) openFiles() int {
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(s.process.Process.Pid), "fd"))
	must(s.t, err)
	return len(entries)
}

// Many clients with large bodies use no more memory than configured.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	const bound = 256 << 20
	s := newServer(t, "", "[runner]\ncpus = 8\nmemory = \"1GiB\"\n[limits]\nbody = \"4MiB\"\nbatch_body = \"4MiB\"\nbuffered = \"32MiB\"\n")
	s.start()
	l, v := newLedger(), &verdict{mayFail: true, mayRepeat: true}
	done := make(chan struct{})
	var peak int64
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
				peak = max(peak, anonymousMemory(s.process.Process.Pid))
			}
		}
	})
	s.loadUntil(l, load{name: "m", clients: 32, jobs: 1, note: 512 << 10, seed: *seed}, 80, 0, func() {})
	close(done)
	watch.Wait()
	if s.ended() || peak == 0 || peak > bound {
		t.Errorf("peak of anonymous memory %d bytes, want at most %d", peak, bound)
	}
	s.conclude(l, v)
	t.Logf("32 clients with 512 KiB a submission: peak of anonymous memory %d MiB", peak>>20)
}

// anonymousMemory returns the resident anonymous memory of a process, 0 once it
// is gone. It excludes the database's mapped pages, which the system can evict.
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
