package faults

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/web/client"
)

// mountDisk gives the folder of a new ext4 file system of its own.
func mountDisk(t *testing.T, size int64) string {
	t.Helper()
	image, folder := filepath.Join(t.TempDir(), "image"), t.TempDir()
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, size))
	for _, argv := range [][]string{{"mkfs.ext4", "-q", "-F", "-m", "0", image}, {"mount", "-o", "loop", image, folder}} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			lacks(t, "there is no loop mount here: %s: %v\n%s", argv[0], err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", folder).CombinedOutput(); err != nil {
			t.Errorf("umount: %v\n%s", err, out)
		}
	})
	return folder
}

// filler takes space until it is removed.
func filler(t *testing.T, path string, size int64) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	for size > 0 {
		switch err := syscall.Fallocate(int(f.Fd()), 0, 0, size); {
		case err == nil:
			return
		case errors.Is(err, syscall.ENOSPC):
			size -= 1 << 20 // some of it is for the file system itself
		case !errors.Is(err, syscall.EINTR):
			must(t, err)
		}
	}
}

func freeSpace(t *testing.T, folder string) int64 {
	t.Helper()
	var s syscall.Statfs_t
	must(t, syscall.Statfs(folder, &s))
	return int64(s.Bavail) * s.Bsize
}

// The disk fills: with uploads down to the reserve, then to the last byte, so
// that results and records find no room either. Reads go on, writes are
// refused as STORAGE_FULL, and once there is space all goes on by itself.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for name, reserve := range map[string]int64{"with a reserve": 64 << 20, "to the last byte": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fillDisk(t, reserve)
		})
	}
}

func fillDisk(t *testing.T, reserve int64) {
	folder := mountDisk(t, 256<<20)
	config := fmt.Sprintf("[runner]\ncpus = 4\nmemory = \"1GiB\"\n[disk]\nreserve = \"%d\"\n", reserve)
	s := newServer(t, filepath.Join(folder, "data"), config)
	s.start()
	process := s.process
	l, v := newLedger(), &verdict{mayFail: true, mayRepeat: true}
	w := &worker{load: load{client: s.client(), ledger: l, life: "full", jobs: 10_000, seed: *seed}, ctx: t.Context(), rand: newRandom(*seed)}
	for range 3 {
		must(t, w.submit())
		must(t, w.upload())
	}
	s.drain(l, v)
	running := s.gated(w, "running", 1<<20) // of which its disk will not take all

	filler(t, filepath.Join(folder, "filler"), freeSpace(t, folder)-reserve-256<<10)
	uploads := untilFull(t, w.upload)
	s.verify(l, v, true)

	filler(t, filepath.Join(folder, "filler2"), freeSpace(t, folder)-2<<20)
	w.note = 100_000
	submissions := untilFull(t, w.submit)
	leaveNothing(t, folder)
	must(t, os.WriteFile(running, nil, 0o600))
	s.verify(l, v, true)
	if text := s.answersWhileFull(l); text != "" {
		t.Error(text)
	}

	for _, name := range []string{"filler", "filler2", "filler3"} {
		must(t, os.RemoveAll(filepath.Join(folder, name)))
	}
	begin := time.Now()
	w.note = 0
	must(t, w.submit())
	must(t, w.upload())
	recovered := time.Since(begin)
	if s.ended() || s.process != process {
		t.Fatalf("the service did not live through it:\n%s", s.log.tail())
	}
	s.conclude(l, v)
	t.Logf("507 after %d uploads and after %d submissions; both worked %v after there was space, without a restart", uploads, submissions, recovered.Round(time.Millisecond))
}

// untilFull repeats a step until it is refused as STORAGE_FULL, and tells how
// often it went well.
func untilFull(t *testing.T, step func() error) int {
	t.Helper()
	for n := range 5000 {
		err := step()
		if err == nil {
			continue
		}
		refused, ok := errors.AsType[*client.Error](err)
		if !ok || refused.Status != http.StatusInsufficientStorage || refused.Code != "STORAGE_FULL" || refused.Message == "" {
			t.Fatalf("a full disk is answered with %v, want 507 STORAGE_FULL", err)
		}
		return n
	}
	t.Fatal("the disk is full and nothing is refused")
	return 0
}

// leaveNothing fills what whole extents could not, byte by byte.
func leaveNothing(t *testing.T, folder string) {
	t.Helper()
	f, err := os.Create(filepath.Join(folder, "filler3"))
	must(t, err)
	defer f.Close()
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// gated submits a job that waits for a file, given back, and then writes its
// bytes; it returns once the job runs.
func (s *server) gated(w *worker, name string, size int64) (gate string) {
	s.t.Helper()
	gate = s.path("diary", name+".gate")
	sub := diaryJob(name, 0, size)
	sub = withGate(sub, gate)
	w.ledger.note(func() { w.ledger.jobs[name] = &jobFact{submission: sub} })
	must(s.t, w.send(sub))
	s.awaitTask()
	s.eventually("the job begins", func() bool { return len(diary(s.t, s.path("diary"), name)) > 0 })
	return gate
}

// answersWhileFull reads all that can be read; "" says that it went well.
func (s *server) answersWhileFull(l *ledger) string {
	c := s.client()
	for name, fact := range l.jobs {
		if fact.final != "COMPLETED" {
			continue
		}
		link, err := c.Result(s.t.Context(), client.ResultRequest{Job: name, File: "result.txt"})
		if err != nil {
			return fmt.Sprintf("result of %s on a full disk: %v", name, err)
		}
		if text, err := get(s.t.Context(), link.DownloadURL); err != nil || !strings.Contains(text, name) {
			return fmt.Sprintf("download of %s on a full disk: %q, %v", name, text, err)
		}
	}
	return ""
}
