package faults

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"molrun/app/client"
	"molrun/app/task"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// workerCalls has the system calls that the service and the worker make on the files by
// which they coordinate. Whichever process makes the call is killed before it.
var workerCalls = []struct {
	name   string
	calls  []string
	files  string
	errno  syscall.Errno // 0 kills the process
	common int           // minimum number of such calls in a run
}{
	{"portion", []string{"openat", "write", "rename", "renameat", "renameat2"}, `^workers/[^/]+/rows\.`, 0, 12},
	{"lock", []string{"openat", "link", "linkat"}, `^(workers/[^/]+|jobs/[^/]+/[0-9]+)/run\.lock`, 0, 90},
	{"closing", []string{"openat", "unlinkat", "unlink", "rmdir"}, `^workers/[^/]+/(closed|run\.lock)?$`, 0, 8},
	{"task", []string{"openat", "write", "rename", "renameat", "renameat2"}, `^jobs/[^/]+/[0-9]+/task\.json`, 0, 100},
	{"run", []string{"openat", "write", "rename", "renameat", "renameat2"}, `/run\.json`, 0, 100},
	{"outcome", []string{"openat", "fallocate", "write", "ftruncate", "rename", "renameat", "renameat2"}, `/\.?outcome\.json`, 0, 200},
	{"result", []string{"openat", "write", "rename", "renameat", "renameat2"}, `^jobs/[^/]+/(\.?job\.json|\.?manifest\.json|result$)`, 0, 150},
	{"clearing", []string{"unlinkat", "rmdir", "unlink"}, `^jobs/[^/]+/[0-9]+/work`, 0, 100},
	{"disk", []string{"syncfs"}, `^jobs$`, 0, 1},
	{"failing disk", []string{"syncfs"}, `^jobs$`, syscall.EIO, 1},
	{"failing portion", []string{"write", "rename", "renameat", "renameat2"}, `^workers/[^/]+/rows\.`, syscall.ENOSPC, 8},
}

// workerRows is the number of jobs in each batch.
const workerRows = 30

// A worker or the service is killed at each step of handling a batch's jobs, or a system
// call fails. Every job must complete in one or two attempts, which never overlap, and
// exactly one outcome must count.
func TestKillsAtEachWorkerStep(t *testing.T) {
	t.Parallel()
	needInjection(t)
	for _, f := range workerCalls {
		t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "", "[runner]\ncpus = 2\nmemory = \"1GiB\"\ngrace = \"1s\"\n")
			s.start()
			s.diaryBatch("first", 4) // makes the jobs known to be short
			s.finish("first")
			s.stop()
			random := rand.New(rand.NewPCG(*seed, uint64(len(f.name))))
			reached, shared := 0, 0
			for n := range *positions {
				when := n + 1
				if *positions == 1 {
					when = 1 + random.IntN(f.common)
				}
				name := fmt.Sprintf("b%d", n)
				in := injection{
					Calls: f.calls, Files: f.files, Dir: s.data, When: when, Error: f.errno,
					Armed: s.path("armed"), Trace: s.path("trace-" + name),
				}
				s.prefix = in.prefix(t)
				s.start()
				must.OK(t, os.WriteFile(in.Armed, nil, 0o600))
				s.diaryBatch(name, workerRows)
				c := s.client()
				must.Become(s.t, "the rows end or the service is killed", func() bool {
					j, err := c.Job(t.Context(), name)
					return s.ended() || err == nil && (j.Status == "COMPLETED" || j.Status == "FAILED")
				})
				s.prefix = nil
				if s.ended() {
					s.start()
				}
				s.finish(name)
				shared += s.compareDiaries(name)
				if in.made() {
					reached++
				}
				s.stop()
				must.OK(t, os.Remove(in.Armed))
				if t.Failed() {
					t.Fatalf("%s at call %d, seed %d", f.name, when, *seed)
				}
			}
			s.check()
			if shared == 0 {
				t.Error("no rows shared a process")
			}
			if reached == 0 && (*positions > 1 || f.common == 1) {
				t.Errorf("none of the calls %v was made on %s", f.calls, f.files)
			}
			t.Logf("%d of %d calls were reached", reached, *positions)
		})
	}
}

// diaryBatch submits a batch of jobs that write the diary. The service might die before
// it responds.
func (s *server) diaryBatch(name string, rows int) {
	b := client.BatchSubmission{Name: name, Type: "diary"}
	for n := range rows {
		b.Settings = append(b.Settings, json.RawMessage(fmt.Sprintf(`{"page":"%s-%d","seconds":0,"bytes":1}`, name, n+1)))
	}
	_, err := s.client().SubmitBatch(s.t.Context(), b)
	if err != nil && !s.ended() {
		s.t.Errorf("submit: %v", err)
	}
	if s.ended() {
		s.prefix = nil
		s.start()
		_, err = s.client().SubmitBatch(s.t.Context(), b)
		must.OK(s.t, err)
	}
}

func (s *server) finish(name string) {
	s.t.Helper()
	c := s.client()
	must.Become(s.t, "the batch "+name+" ends", func() bool {
		j, err := c.Job(s.t.Context(), name)
		return err == nil && (j.Status == "COMPLETED" || j.Status == "FAILED")
	})
}

// compareDiaries checks every job of a batch, and returns how many of them shared a
// process.
func (s *server) compareDiaries(batch string) (shared int) {
	s.t.Helper()
	processes, v := map[int]int{}, &verdict{mayRepeat: true}
	seen := 0
	for job, err := range s.client().Jobs(s.t.Context(), client.JobFilter{Batch: batch, PageSize: 100}) {
		must.OK(s.t, err)
		seen++
		if job.Status != "COMPLETED" || job.Attempts > 2 || job.ResultBytes == 0 {
			s.t.Errorf("row %s is %s after %d attempts, with %d bytes", job.Name, job.Status, job.Attempts, job.ResultBytes)
		}
		v.compareDiary(job, s.readDiary(job.Name), &jobFact{})
		done := 0
		for attempt := 1; attempt <= job.Attempts; attempt++ {
			dir := filepath.Join(s.data, "jobs", job.ID, strconv.Itoa(attempt))
			if o, err := task.ReadOutcome(dir); err == nil && o.Cause == protocol.CauseDone {
				done++
			}
			if run, err := task.ReadRun(dir); err == nil {
				if processes[run.PID]++; processes[run.PID] > 1 {
					shared++
				}
			}
		}
		if done != 1 {
			s.t.Errorf("row %s was done %d times in %d attempts", job.Name, done, job.Attempts)
		}
	}
	v.report(s.t)
	must.Equal(s.t, "the batch", seen, workerRows)
	return shared
}
