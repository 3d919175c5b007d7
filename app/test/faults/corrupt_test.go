package faults

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// damages are ways in which disks or users damage files.
var damages = map[string]func([]byte) []byte{
	"empty":   func([]byte) []byte { return nil },
	"half":    func(b []byte) []byte { return b[:len(b)/2] },
	"zeros":   func(b []byte) []byte { return make([]byte, len(b)) },
	"garbage": func(b []byte) []byte { return bytes.Repeat([]byte("\xde\xad\xbe\xef"), len(b)/4+1)[:len(b)] },
	"page lost": func(b []byte) []byte {
		return slices.Concat(b[:len(b)/2], make([]byte, min(4096, len(b)-len(b)/2)), b[min(len(b), len(b)/2+4096):])
	},
}

// intactServer returns a stopped server with a completed job and an upload.
func intactServer(t *testing.T) (*server, *ledger) {
	t.Helper()
	s := newServer(t, "", manyCPUs)
	s.start()
	l := newLedger()
	w := &loadClient{load: load{client: s.client(), ledger: l, name: "c", jobs: 2, seed: 1}, ctx: t.Context(), rand: newRandom(1)}
	for _, step := range []func() error{w.submit, w.submit, w.upload, w.upload} {
		must.OK(t, step())
	}
	v := &verdict{}
	s.drain(l, v)
	v.report(t)
	s.stop()
	must.OK(t, os.RemoveAll(filepath.Join(s.data, "control.sock"))) // a socket cannot be copied
	return s, l
}

// A damaged file must never be treated as missing or served as intact. Either the service
// refuses to start and reports the error, or molrun check reports the file, or the
// service recreates it without loss.
func TestDamagedFilesAreDetected(t *testing.T) {
	t.Parallel()
	s, l := intactServer(t)
	for _, target := range damageable(t, s.data) {
		whole, err := os.ReadFile(filepath.Join(s.data, target))
		must.OK(t, err)
		for _, kind := range slices.Sorted(maps.Keys(damages)) {
			damaged := damages[kind](whole)
			if bytes.Equal(damaged, whole) {
				continue
			}
			t.Run(strings.ReplaceAll(target+"/"+kind, " ", "_"), func(t *testing.T) {
				copied := s.copied(t)
				must.OK(t, os.WriteFile(filepath.Join(copied.data, target), damaged, 0o600))
				copied.checkDetected(l, target)
			})
		}
	}
}

// damageable returns the path of one file of each kind.
func damageable(t *testing.T, data string) []string {
	t.Helper()
	seen := map[string]bool{}
	var files []string
	must.OK(t, filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(data, path)
		parts := strings.Split(name, string(filepath.Separator))
		kind := parts[0] + "/" + parts[len(parts)-1]
		if parts[0] == "uploads" {
			kind = "uploads"
		}
		if info, err := e.Info(); err != nil || info.Size() == 0 || seen[kind] {
			return err
		}
		seen[kind] = true
		files = append(files, name)
		return err
	}))
	return files
}

// copied returns a server with a copy of the data.
func (s *server) copied(t *testing.T) *server {
	t.Helper()
	c := newServer(t, "", manyCPUs)
	must.OK(t, os.CopyFS(c.data, os.DirFS(s.data)))
	must.OK(t, filepath.WalkDir(c.data, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o700)
		} else if err == nil {
			err = os.Chmod(path, 0o600)
		}
		return err
	}))
	c.key = s.key
	return c
}

// checkDetected checks that the damage is either reported or harmless.
func (s *server) checkDetected(l *ledger, target string) {
	s.t.Helper()
	said, err := s.checked("--deep")
	if err := s.begin(); err != nil {
		if s.process.ProcessState.ExitCode() < 1 || !strings.Contains(err.Error(), "molrun: ") || strings.Contains(err.Error(), "goroutine ") {
			s.t.Errorf("the start is refused without an error message: %v", err)
		}
		return
	}
	lost := s.missing(l)
	if err == nil && len(lost) > 0 {
		s.t.Errorf("%s is damaged, molrun check reports nothing, and these are lost: %v", target, lost)
	}
	if err != nil && len(said) < 40 {
		s.t.Errorf("molrun check prints only %q", said)
	}
	if !s.ended() {
		s.stop()
	}
}

// missing returns what a client can no longer read unchanged. An error response counts as
// missing, which is acceptable only if molrun check reports it.
func (s *server) missing(l *ledger) (lost []string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := s.client()
	for name, fact := range l.jobs {
		job, err := c.Job(ctx, name)
		if err != nil || job.ID != fact.id || job.Status != "COMPLETED" {
			lost = append(lost, "job "+name)
			continue
		}
		if text, err := result(ctx, c, name, "result.txt"); err != nil || text != diaryResult(name) {
			lost = append(lost, "result of "+name)
		}
	}
	for id, fact := range l.files {
		// If the secret was replaced, old links are invalid, but their files still exist.
		if text, err := get(ctx, s.base+fact.link); except(err, "LINK_INVALID") != nil || err == nil && text != fact.text {
			lost = append(lost, "file "+id)
		}
	}
	return lost
}

// A task's control files are damaged while the service is down. The job must fail with a
// reason or run again, and no two attempts may overlap.
func TestDamagedTaskFilesLoseNoJob(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"run.json", "outcome.json", "task.json", "progress.json"} {
		for _, kind := range []string{"empty", "half", "garbage"} {
			t.Run(target+"/"+kind, func(t *testing.T) {
				t.Parallel()
				s := newServer(t, "", manyCPUs)
				s.start()
				l, v := newLedger(), &verdict{mayFail: true, mayRepeat: true}
				sub := diaryJob("damaged", 0.5, 10)
				l.jobs["damaged"] = &jobFact{submission: sub}
				w := &loadClient{load: load{client: s.client(), ledger: l}, ctx: t.Context()}
				must.OK(t, w.send(sub))
				s.awaitTask()
				s.kill()
				if target == "outcome.json" {
					must.Become(s.t, "the task ends", func() bool { return len(s.tasks()) == 0 })
				}
				s.damage(target, damages[kind])
				s.start()
				s.conclude(l, v)
			})
		}
	}
}

// damage changes a file of the only attempt, or creates the file.
func (s *server) damage(name string, how func([]byte) []byte) {
	s.t.Helper()
	tasks, err := filepath.Glob(filepath.Join(s.data, "jobs", "*", "1", "task.json"))
	must.OK(s.t, err)
	if len(tasks) != 1 {
		s.t.Fatalf("attempts: %v", tasks)
	}
	path := filepath.Join(filepath.Dir(tasks[0]), name)
	whole, err := os.ReadFile(path)
	if err != nil {
		whole = []byte(`{"protocol": 1}`)
	}
	must.OK(s.t, os.WriteFile(path, how(whole), 0o600))
}
