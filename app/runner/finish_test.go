package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/task"
	"molrun/app/test/must"
)

func TestFailureShowsTheCause(t *testing.T) {
	one, zero := 1, 0
	tests := []struct {
		name string
		s    script
		want app.Failure
	}{
		{"exit", script{cause: app.CauseExit, exitCode: 1, log: "oops\n"}, app.Failure{
			Code: app.FailedExit, Message: "The program ended with exit status 1. Last output: oops", ExitCode: &one, LogTail: "oops\n",
		}},
		{"known", script{cause: app.CauseExit, exitCode: 1, log: "Cannot read x.pdb\n"}, app.Failure{
			Code: app.FailedExit, Message: "The program could not read x.pdb.", ExitCode: &one, LogTail: "Cannot read x.pdb\n",
		}},
		{"timeout", script{cause: app.CauseTimeout}, app.Failure{
			Code: app.FailedTimeout, Message: "The program exceeded its time limit of 1h0m0s. Give the job more time (maxRuntimeSeconds) or reduce it.",
		}},
		{"memory", script{cause: app.CauseMemory}, app.Failure{
			Code: app.FailedMemory, Message: "The program used more than its 1.0 MiB of memory. Give the job more memory, or a smaller input.",
		}},
		{"memory, as the executor says it", script{cause: app.CauseMemory, message: "It was too little.", log: "Cannot read x.pdb\n"}, app.Failure{
			Code: app.FailedMemory, Message: "It was too little. Give the job more memory, or a smaller input.", LogTail: "Cannot read x.pdb\n",
		}},
		{"memory, by its words", script{cause: app.CauseExit, exitCode: 1, log: "MemoryError\n"}, app.Failure{
			Code: app.FailedMemory, Message: "The program ran out of memory. Give the job more memory, or a smaller input. Last output: MemoryError", ExitCode: &one, LogTail: "MemoryError\n",
		}},
		{"memory of a GPU", script{cause: app.CauseNoResult, log: "torch.OutOfMemoryError: CUDA out of memory.\n"}, app.Failure{
			Code:    app.FailedMemory,
			Message: "The program ran out of GPU memory. Use a smaller input or a GPU with more memory; more main memory does not help. Last output: torch.OutOfMemoryError: CUDA out of memory.",
			LogTail: "torch.OutOfMemoryError: CUDA out of memory.\n",
		}},
		{"memory, in words of the algorithm file", script{cause: app.CauseExit, exitCode: 1, log: "No more columns\n"}, app.Failure{
			Code: app.FailedMemory, Message: "The alignment is too large.", ExitCode: &one, LogTail: "No more columns\n",
		}},
		{"memory, with a sentence of the algorithm file", script{cause: app.CauseExit, exitCode: 1, log: "Cannot read x.pdb: std::bad_alloc\n"}, app.Failure{
			Code: app.FailedMemory, Message: "The program could not read x.pdb:.", ExitCode: &one, LogTail: "Cannot read x.pdb: std::bad_alloc\n",
		}},
		{"memory that a program did without", script{cause: app.CauseTimeout, log: "MemoryError\n"}, app.Failure{
			Code: app.FailedTimeout, Message: "The program exceeded its time limit of 1h0m0s. Give the job more time (maxRuntimeSeconds) or reduce it.", LogTail: "MemoryError\n",
		}},
		{"disk", script{cause: app.CauseDisk, message: "The job wrote 2 GiB."}, app.Failure{Code: app.FailedDisk, Message: "The job wrote 2 GiB."}},
		{"limit", script{cause: app.CauseLimit, message: "The job had 31 processes at once.", log: "cannot read x.pdb\n"}, app.Failure{
			Code: app.FailedSignal, Message: "The job had 31 processes at once.", LogTail: "cannot read x.pdb\n",
		}},
		{"cancelled on the cluster", script{cause: app.CauseStopped, message: "The job was cancelled in Slurm by user 1000."}, app.Failure{
			Code: app.FailedStopped, Message: "The job was cancelled in Slurm by user 1000.",
		}},
		{"start", script{refuses: fault.Errorf(fault.Unavailable, "The queue is closed.")}, app.Failure{
			Code: app.FailedCannotStart, Message: "The queue is closed.",
		}},
		{"files", script{cause: app.CauseDone, out: map[string]string{"1": "", "2": "", "3": "", "4": "", "5": "", "6": ""}}, app.Failure{
			Code: app.FailedExit, Message: "The program wrote more than 5 files and folders; write fewer, or pack them into an archive.", ExitCode: &zero,
		}},
	}
	bubble(t, func(t *testing.T, w *world) {
		scripts := map[string]script{}
		w.play(func(name string, _ int) script { return scripts[name] })
		w.options.MaxFiles = 5
		w.start()
		for _, tt := range tests {
			scripts[tt.name] = tt.s
			id := w.submit(ann, tt.name, `{}`)
			r := w.finished(tt.name)
			must.Equal(t, tt.name+": failure", r.Failure, &tt.want)
			if _, err := os.Stat(w.path(id, "1", "work", "out")); err != nil {
				t.Errorf("%s: the work directory is gone: %v", tt.name, err)
			}
			if _, err := w.files.Manifest(id); !errors.Is(err, fault.NotFound) {
				t.Errorf("%s: a failed job has a manifest: %v", tt.name, err)
			}
		}
	})
}

// slowFinish delays the response to Finish, so that the runner polls while the end is
// already recorded.
type slowFinish struct{ Jobs }

func (j slowFinish) Finish(ctx context.Context, id app.JobID, attempt int, e app.Ending) error {
	err := j.Jobs.Finish(ctx, id, attempt, e)
	time.Sleep(time.Minute)
	return err
}

func TestLostAttempts(t *testing.T) {
	tests := []struct {
		name string
		ends []app.Cause // causes of the attempts' ends, in order
		want app.Status
		code app.FailureCode
	}{
		{"lost once", []app.Cause{"", app.CauseDone}, app.Completed, ""},
		{"interrupted once", []app.Cause{app.CauseInterrupted, app.CauseDone}, app.Completed, ""},
		{"lost twice", []app.Cause{"", ""}, app.Failed, app.FailedLost},
		{"failed is final", []app.Cause{app.CauseExit}, app.Failed, app.FailedExit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.options.KeepFailed = 0 // the next attempt's input is retained anyway
				w.jobs = slowFinish{w.jobs}
				w.play(func(_ string, attempt int) script {
					return script{runs: time.Minute, cause: tt.ends[attempt-1], out: map[string]string{fmt.Sprint("by-", attempt): "x"}}
				})
				w.start()
				id := w.submit(ann, "a", `{}`)
				r := w.finished("a")
				if r.Status != tt.want || r.Attempts != len(tt.ends) || w.executor.started(id) != len(tt.ends) {
					t.Fatalf("record %+v, %d tasks", r.Job, w.executor.started(id))
				}
				if tt.code != "" && r.Failure.Code != tt.code {
					t.Errorf("failure %+v", r.Failure)
				}
				if tt.want != app.Completed {
					return
				}
				// The algorithm is resumable: the second attempt finds the output of the
				// first.
				if got := w.checkResult(id); got["by-1"] != "x" || got["by-2"] != "x" {
					t.Errorf("result: %v", got)
				}
				if _, err := os.Stat(w.path(id, "1", task.WorkDir)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the first attempt's work directory is still there: %v", err)
				}
			})
		})
	}
}

func TestEndIsRecordedOnceTheStoreWorksAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		until := time.Now().Add(time.Hour)
		trouble := func(code fault.Code) func() error {
			return func() error {
				if time.Now().Before(until) {
					return fault.Errorf(code, "try later")
				}
				return nil
			}
		}
		w.jobs = &faultyJobs{Jobs: w.Service.Runs, finished: trouble(fault.StorageFull), handle: trouble(fault.Unavailable)}
		w.start()
		id := w.submit(ann, "a", `{}`)
		if r := w.finished("a"); r.Status != app.Completed || time.Now().Before(until) {
			t.Errorf("record %+v", r.Job)
		}
		w.checkResult(id)
	})
}

func TestFailedWorkDirectoryIsRetained(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script { return script{cause: app.CauseExit} })
		stop := w.start()
		id := w.submit(ann, "a", `{}`)
		w.finished("a")
		time.Sleep(71 * time.Hour)
		if _, err := os.Stat(w.path(id, "1", "work", "out", "attempt.txt")); err != nil {
			t.Fatalf("after 71 hours: %v", err)
		}
		stop()
		w.start()
		time.Sleep(2 * time.Hour)
		if _, err := os.Stat(w.path(id, "1", "work")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after 73 hours: %v", err)
		}
		if _, err := os.Stat(w.path(id, "1", "log")); err != nil {
			t.Errorf("the log was removed too: %v", err)
		}
		notes, err := os.ReadDir(w.options.RetainedDir)
		if err != nil || len(notes) != 0 {
			t.Errorf("notes left: %v, %v", notes, err)
		}
	})
}
