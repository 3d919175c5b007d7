package faults

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

// mountDisk mounts a new ext4 file system of the given size and returns its directory.
func mountDisk(t *testing.T, size int64) string {
	t.Helper()
	image, folder := filepath.Join(t.TempDir(), "image"), t.TempDir()
	must.OK(t, os.WriteFile(image, nil, 0o600))
	must.OK(t, os.Truncate(image, size))
	for _, argv := range [][]string{{"mkfs.ext4", "-q", "-F", "-m", "0", image}, {"mount", "-o", "loop", image, folder}} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			must.Skip(t, "loop mounts do not work here: %s: %v\n%s", argv[0], err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", folder).CombinedOutput(); err != nil {
			t.Errorf("umount: %v\n%s", err, out)
		}
	})
	return folder
}

// filler creates a file that takes up space until it is removed.
func filler(t *testing.T, path string, size int64) {
	t.Helper()
	f, err := os.Create(path)
	must.OK(t, err)
	defer f.Close()
	for size > 0 {
		switch err := syscall.Fallocate(int(f.Fd()), 0, 0, size); {
		case err == nil:
			return
		case errors.Is(err, syscall.ENOSPC):
			size -= 1 << 20 // the file system needs some space for itself
		case !errors.Is(err, syscall.EINTR):
			must.OK(t, err)
		}
	}
}

func freeSpace(t *testing.T, folder string) int64 {
	t.Helper()
	var s syscall.Statfs_t
	must.OK(t, syscall.Statfs(folder, &s))
	return int64(s.Bavail) * s.Bsize
}

// Uploads fill the disk down to the free-space threshold. The test then fills it
// completely, so that there is no space for results and records either. Reads must keep
// working, writes must be rejected as STORAGE_FULL, and the service must recover without
// a restart once there is space. A file sent in parts resumes where it stopped.
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
	w := &loadClient{load: load{client: s.client(), ledger: l, name: "full", jobs: 10_000, seed: *seed}, ctx: t.Context(), rand: newRandom(*seed)}
	for range 3 {
		must.OK(t, w.submit())
		must.OK(t, w.upload())
	}
	s.drain(l, v)
	running := s.gated(w, "running", 1<<20) // more than will be free
	sender := s.sender(l)
	parts, err := sender.beginParts("parts.txt", longText(80<<20), false)
	must.OK(t, err)
	goOn := func() error {
		return sender.sendPart(parts, func(at int64) int64 { return min(at+8<<20, parts.parts.length) }, false)
	}
	must.OK(t, goOn())

	filler(t, filepath.Join(folder, "filler"), freeSpace(t, folder)-reserve-256<<10)
	uploads := untilFull(t, w.upload)
	s.verify(l, v, true)

	filler(t, filepath.Join(folder, "filler2"), freeSpace(t, folder)-2<<20)
	w.note = 100_000
	submissions := untilFull(t, w.submit)
	fillRest(t, folder)
	untilFull(t, goOn)
	must.OK(t, os.WriteFile(running, nil, 0o600))
	s.verify(l, v, true)
	s.readWhileFull(l)

	for _, name := range []string{"filler", "filler2", "filler3"} {
		must.OK(t, os.RemoveAll(filepath.Join(folder, name)))
	}
	begin := time.Now()
	w.note = 0
	must.OK(t, w.submit())
	must.OK(t, w.upload())
	recovered := time.Since(begin)
	if s.ended() || s.process != process {
		t.Fatalf("the service did not survive:\n%s", s.log.Tail())
	}
	s.conclude(l, v)
	t.Logf("507 after %d uploads and after %d submissions; both worked again %v after space was freed, without a restart", uploads, submissions, recovered.Round(time.Millisecond))
}

// untilFull repeats a step until it is rejected as STORAGE_FULL, and returns the number
// of times that it succeeded.
func untilFull(t *testing.T, step func() error) int {
	t.Helper()
	for n := range 5000 {
		err := step()
		if err == nil {
			continue
		}
		refused, ok := errors.AsType[*client.Error](err)
		if !ok || refused.Status != http.StatusInsufficientStorage || refused.Code != "STORAGE_FULL" || refused.Message == "" {
			t.Fatalf("error %v on a full disk, want 507 STORAGE_FULL", err)
		}
		return n
	}
	t.Fatal("the disk is full, but nothing is refused")
	return 0
}

// fillRest fills the space that is left over by fallocate.
func fillRest(t *testing.T, folder string) {
	t.Helper()
	f, err := os.Create(filepath.Join(folder, "filler3"))
	must.OK(t, err)
	defer f.Close()
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// gated submits a job that waits for a gate file and then writes the given number of
// bytes. It returns once the job is running.
func (s *server) gated(w *loadClient, name string, size int64) (gate string) {
	s.t.Helper()
	gate = s.path("diary", name+".gate")
	sub := diaryJob(name, 0, size)
	sub = withGate(sub, gate)
	w.ledger.note(func() { w.ledger.jobs[name] = &jobFact{submission: sub} })
	must.OK(s.t, w.send(sub))
	s.awaitTask()
	must.Become(s.t, "the job begins", func() bool { return s.begun(name) })
	return gate
}

// readWhileFull downloads all results.
func (s *server) readWhileFull(l *ledger) {
	s.t.Helper()
	c := s.client()
	for name, fact := range l.jobs {
		if fact.final != "COMPLETED" {
			continue
		}
		if text, err := result(s.t.Context(), c, name, "result.txt"); err != nil || text != diaryResult(name) {
			s.t.Errorf("the result of %s on a full disk: %q, %v", name, text, err)
		}
	}
}
