package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/task"
	"molrun/app/test/must"
)

// While jobs are queued, a different program is installed in place of the running one, in
// every common way. Jobs must start from the running program rather than the file at its
// path, so that none fails and none needs a second attempt.
func TestReplacedProgramFailsNoWaitingJob(t *testing.T) {
	t.Parallel()
	for _, sandboxed := range []bool{false, true} {
		t.Run(fmt.Sprintf("sandboxed=%v", sandboxed), func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "", "[runner]\ncpus = 4\nmemory = \"4GiB\"\n")
			if sandboxed {
				s.linkBubblewrap()
			}
			s.program = s.path("molrun")
			s.run("cp", *program, s.program)
			s.start()
			s.replaceWhileJobsWait()
		})
	}
}

// The program is replaced and the service restarted while jobs of a batch share a process
// of the old program. That process must finish its jobs; later jobs get a process of the
// new program.
func TestUpgradeDuringSharedProcess(t *testing.T) {
	t.Parallel()
	s := newServer(t, "", "[runner]\ncpus = 1\nmemory = \"1GiB\"\n")
	s.addAlgorithm(shortDiary)
	s.program = s.path("molrun")
	s.run("cp", *program, s.program)
	s.start()
	s.gatedBatch("older", s.path("gate"))
	pid := s.workerOf("older")
	s.run("install", "-m", "755", *program, s.program)
	s.stop()
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err != nil {
		t.Errorf("the process of the rows ended with the service: %q, %v", exe, err)
	}
	s.start()
	must.OK(t, os.WriteFile(s.path("gate"), nil, 0o600))
	s.finish("older")
	shared := s.compareDiaries("older")
	s.diaryBatch("newer", workerRows)
	s.finish("newer")
	if s.compareDiaries("newer") == 0 || shared == 0 {
		t.Error("no rows shared a process")
	}
	for job, err := range s.client().Jobs(t.Context(), client.JobFilter{WholeOrganization: true, PageSize: 100}) {
		must.OK(t, err)
		if job.Attempts > 1 {
			t.Errorf("%s has %d attempts", job.Name, job.Attempts)
		}
	}
	if pid == s.workerOf("newer") {
		t.Error("the older program runs the newer rows")
	}
	s.stop()
	s.check()
}

// gatedBatch submits a batch of jobs that wait for a file, and waits until one of them is
// running.
func (s *server) gatedBatch(name, gate string) {
	s.t.Helper()
	b := client.BatchSubmission{Name: name, Type: "diary"}
	for n := range workerRows {
		b.Settings = append(b.Settings, withGate(diaryJob(fmt.Sprintf("%s-%d", name, n+1), 0, 1), gate).Settings)
	}
	_, err := s.client().SubmitBatch(s.t.Context(), b)
	must.OK(s.t, err)
	must.Become(s.t, "a row runs", func() bool {
		pages, err := filepath.Glob(s.path("diary", name+"-*"))
		return err == nil && len(pages) > 0
	})
}

// workerOf returns the PID of the process that runs a batch's jobs.
func (s *server) workerOf(batch string) (pid int) {
	s.t.Helper()
	for job, err := range s.client().Jobs(s.t.Context(), client.JobFilter{Batch: batch, PageSize: 100}) {
		must.OK(s.t, err)
		if run, err := task.ReadRun(filepath.Join(s.data, "jobs", job.ID, "1")); err == nil {
			return run.PID
		}
	}
	s.t.Fatalf("no row of %s has begun", batch)
	return 0
}

// linkBubblewrap adds bwrap to the service's PATH.
func (s *server) linkBubblewrap() {
	s.t.Helper()
	path, err := exec.LookPath("bwrap")
	if err == nil {
		err = exec.Command(path, "--unshare-all", "--ro-bind", "/", "/", "true").Run()
	}
	if err != nil {
		must.Skip(s.t, "no sandbox can be made here: %v", err)
	}
	must.OK(s.t, os.Symlink(path, s.path("bin", "bwrap")))
}

// replaceWhileJobsWait repeatedly replaces the program while a batch runs, and checks
// that all its jobs are completed by their first attempts.
func (s *server) replaceWhileJobsWait() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience+time.Duration(*waiting)*time.Second)
	defer cancel()
	_, err := s.client().SubmitBatch(ctx, smallestRows("rows", *waiting))
	must.OK(s.t, err)
	for n := range *replaced {
		c := s.client()
		must.Become(s.t, "enough rows are finished", func() bool {
			batch, err := c.Job(ctx, "rows")
			must.OK(s.t, err)
			return batch.Counts["COMPLETED"]+batch.Counts["FAILED"] >= n**waiting/(*replaced+1)
		})
		replacements[n%len(replacements)].replace(s)
	}
	batch, err := s.client().Wait(ctx, "rows")
	must.OK(s.t, err)
	for row, err := range s.client().Jobs(ctx, client.JobFilter{Batch: "rows", PageSize: 100}) {
		must.OK(s.t, err)
		if row.Status != "COMPLETED" || row.Attempts != 1 {
			s.t.Errorf("%s is %s after %d attempts: %+v", row.Name, row.Status, row.Attempts, row.Failure)
		}
	}
	s.t.Logf("the program was replaced %d times while %d jobs waited: %v", *replaced, *waiting, batch.Counts)
	s.stop()
	s.check()
}

// replacements are the ways to replace the program.
var replacements = []struct {
	name    string
	replace func(*server)
}{
	{"install", func(s *server) { s.run("install", "-m", "755", *program, s.program) }},
	{"another program under its name", func(s *server) {
		s.run("install", "-m", "755", "/bin/false", s.program)
		time.Sleep(absence)
		s.run("install", "-m", "755", *program, s.program)
	}},
	{"mv", func(s *server) {
		s.run("cp", *program, s.program+".new")
		s.run("mv", s.program+".new", s.program)
	}},
	{"cp -f", func(s *server) { s.run("cp", "-f", *program, s.program) }},
	{"deleted for a while", func(s *server) {
		s.run("rm", s.program)
		time.Sleep(absence)
		s.run("cp", *program, s.program)
	}},
	{"moved away for a while", func(s *server) {
		s.run("mv", s.program, s.program+".old")
		time.Sleep(absence)
		s.run("mv", s.program+".old", s.program)
	}},
	{"upgraded", func(s *server) {
		s.run("install", "-m", "755", *program, s.program)
		s.stop()
		s.start()
	}},
}

// absence is how long the program's file is missing.
const absence = 2 * time.Second

// run runs a command on this machine.
func (s *server) run(argv ...string) {
	s.t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}
