package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/strictjson"
	"molrun/app/task"
)

func TestJobRunsToItsResult(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script {
			return script{
				runs: time.Minute, cause: app.CauseDone, log: "hello\n",
				out: map[string]string{"a.pdb": "ATOM", "b/c.txt": "x", "metrics.json": `{"rg_nm":1.5}`, "log.txt": "own"},
			}
		})
		w.start()
		id := w.submit(ann, "one", `{}`)
		running := w.until("one", app.Running)
		if since := running.StartedAt.Sub(running.CreatedAt.Time); since > 20*time.Millisecond {
			t.Errorf("started after %v", since)
		}
		time.Sleep(30 * time.Second)
		if p := w.job("one").Progress; p == nil || p.Fraction < 0.4 {
			t.Errorf("progress half way: %+v", p)
		}
		r := w.finished("one")
		if r.Status != app.Completed || r.Attempts != 1 || r.Failure != nil {
			t.Fatalf("record: %+v", r)
		}
		if got := string(r.Metrics.Results); got != `{"rg_nm":1.5}` || r.Metrics.RunSeconds != 60 {
			t.Errorf("metrics: %s, %+v", got, r.Metrics)
		}
		if late := r.CompletedAt.Sub(r.StartedAt.Time); late != time.Minute {
			t.Errorf("ran %v, want a minute", late)
		}
		got := w.checkResult(id)
		rec, err := w.Jobs.Get(t.Context(), ann, "one", 0)
		must(t, err)
		want := map[string]string{
			"a.pdb": "ATOM", "b/c.txt": "x", "metrics.json": `{"rg_nm":1.5}`, "output/log.txt": "own",
			"log.txt": "hello\n", "job.json": string(rec),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		if want := int64(len("ATOM") + len("x") + len(`{"rg_nm":1.5}`) + len("own")); *r.ResultBytes != want {
			t.Errorf("result bytes %d, want %d", *r.ResultBytes, want)
		}
		if _, err := os.Stat(w.path(id, "1", task.WorkDir)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the work directory is still there: %v", err)
		}
	})
}

func TestInputsAreNamedAfterTheirSettings(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script { return script{runs: time.Hour, cause: app.CauseDone} })
		w.start()
		tests := []struct{ filename, want string }{
			{"hst5.fasta", "sequence.fasta"},
			{"Hst 5;rm -rf.FASTA", "sequence.fasta"},
			{"many.fa.gz", "sequence.fa.gz"},
		}
		for i, tt := range tests {
			u := w.upload(ann, tt.filename, "MSEQ")
			name := fmt.Sprint(i)
			id := w.submit(ann, name, fmt.Sprintf(`{"sequence":%q}`, u.ID))
			w.until(name, app.Running)
			if got := w.text(w.path(id, "1", "work", "in", tt.want)); got != "MSEQ" {
				t.Errorf("%s: input %q", tt.filename, got)
			}
			want := fmt.Sprintf(`{"cpus":1,"gpus":0,"sequence":%q}`, u.ID)
			if got := w.text(w.path(id, "1", "work", "settings.json")); got != want {
				t.Errorf("settings.json %s, want %s", got, want)
			}
			must(t, os.WriteFile(w.path(id, "1", "work", "in", tt.want), []byte("changed"), 0o600))
			if got := w.text(w.files.UploadPath(u.ID, u.Generation)); got != "MSEQ" {
				t.Errorf("the stored file changed with the copy: %q", got)
			}
			spec, err := task.Read(w.path(id, "1"))
			must(t, err)
			argv := []string{"sh", "-c", "exit 0", w.path(id, "1", "work", "settings.json"), w.path(id, "1", "work", "out")}
			if diff := cmp.Diff(argv, spec.Steps[0].Argv); diff != "" {
				t.Errorf("argv (-want +got):\n%s", diff)
			}
			if spec.MaxRuntimeSeconds != 3600 || spec.MemoryBytes != 1<<20 || spec.CPUs != 1 || spec.Job != string(id) {
				t.Errorf("task.json: %+v", spec)
			}
		}
	})
}

func TestMissingInputFailsTheJob(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		gone, short := w.upload(ann, "gone.fasta", "MSEQ"), w.upload(ann, "short.fasta", "MSEQ")
		w.submit(ann, "gone", fmt.Sprintf(`{"sequence":%q}`, gone.ID))
		w.submit(ann, "short", fmt.Sprintf(`{"sequence":%q}`, short.ID))
		must(t, os.Remove(w.files.UploadPath(gone.ID, gone.Generation)))
		must(t, os.Truncate(w.files.UploadPath(short.ID, short.Generation), 1))
		w.start()
		for _, name := range []string{"gone", "short"} {
			f := w.finished(name).Failure
			if f == nil || f.Code != app.FailedInput || !strings.Contains(f.Message, name+".fasta") {
				t.Errorf("%s: failure %+v", name, f)
			}
		}
		if n := len(w.executor.order); n != 0 {
			t.Errorf("%d tasks were started", n)
		}
	})
}

func TestResultOfAnotherJobIsAnInput(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script {
			return script{runs: time.Hour, cause: app.CauseDone, out: map[string]string{"x/seq.fasta": "MSEQ"}}
		})
		w.start()
		w.submit(ann, "first", `{}`)
		w.finished("first")
		id := w.submit(ann, "second", `{"sequence":"job:first/x/seq.fasta"}`)
		w.until("second", app.Running)
		if got := w.text(w.path(id, "1", "work", "in", "sequence.fasta")); got != "MSEQ" {
			t.Errorf("input %q", got)
		}
	})
}

func TestFailureTellsTheCause(t *testing.T) {
	one := 1
	zero := 0
	tests := []struct {
		name string
		s    script
		want app.Failure
	}{
		{
			"exit",
			script{cause: app.CauseExit, exitCode: 1, log: "oops\n"},
			app.Failure{Code: app.FailedExit, Message: "The program ended with exit status 1.", ExitCode: &one, LogTail: "oops\n"},
		},
		{
			"known",
			script{cause: app.CauseExit, exitCode: 1, log: "Cannot read x.pdb\n"},
			app.Failure{Code: app.FailedExit, Message: "The program could not read x.pdb.", ExitCode: &one, LogTail: "Cannot read x.pdb\n"},
		},
		{
			"timeout",
			script{cause: app.CauseTimeout},
			app.Failure{Code: app.FailedTimeout, Message: "The program ran longer than its limit of 1h0m0s. Give the job more time (maxRuntimeSeconds) or less to do."},
		},
		{
			"memory",
			script{cause: app.CauseMemory},
			app.Failure{Code: app.FailedMemory, Message: "The program used more than its 1.0 MiB of memory."},
		},
		{
			"limit",
			script{cause: app.CauseLimit, message: "The job had 31 processes at once.", log: "cannot read x.pdb\n"},
			app.Failure{Code: app.FailedSignal, Message: "The job had 31 processes at once.", LogTail: "cannot read x.pdb\n"},
		},
		{
			"start",
			script{refuses: fault.Errorf(fault.Unavailable, "The queue is closed.")},
			app.Failure{Code: app.FailedCannotStart, Message: "The queue is closed."},
		},
		{
			"files",
			script{cause: app.CauseDone, out: map[string]string{"1": "", "2": "", "3": "", "4": "", "5": "", "6": ""}},
			app.Failure{Code: app.FailedExit, Message: "The program left more than 5 files and folders; let it write fewer, or pack them.", ExitCode: &zero},
		},
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
			if diff := cmp.Diff(&tt.want, r.Failure); diff != "" {
				t.Errorf("%s: failure (-want +got):\n%s", tt.name, diff)
			}
			if _, err := os.Stat(w.path(id, "1", "work", "out")); err != nil {
				t.Errorf("%s: the work directory is gone: %v", tt.name, err)
			}
			if _, err := w.files.Manifest(id); !errors.Is(err, fault.NotFound) {
				t.Errorf("%s: a failed job has a manifest: %v", tt.name, err)
			}
		}
	})
}

func TestImpossibleJobFails(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for i := range 40 { // more than one look is deep
			w.submit(ann, fmt.Sprint("big", i), `{"gpus":2}`)
		}
		w.submit(ann, "small", `{}`)
		w.executor.capacity.GPUs = []string{"GPU-a"} // the other one was taken out since
		w.start()
		f := w.finished("big39").Failure
		if f == nil || f.Code != app.FailedCannotStart || !strings.Contains(f.Message, "2 GPUs") || !strings.Contains(f.Message, "has 1 GPU ") {
			t.Errorf("failure %+v", f)
		}
		if s := w.finished("small").Status; s != app.Completed {
			t.Errorf("the small job is %s", s)
		}
	})
}

func TestWaitingJobsSayWhy(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(name string, _ int) script {
			if name == "held" {
				return script{waits: time.Hour, why: "the node is being cleaned", cause: app.CauseDone}
			}
			return script{runs: time.Hour, cause: app.CauseDone}
		})
		w.start()
		w.submit(ann, "held", `{}`)
		w.submit(ann, "gpus", `{"gpus":2}`)
		w.submit(ann, "next", `{"gpus":1}`)
		time.Sleep(2 * time.Second)
		want := map[string]string{"held": "the node is being cleaned", "gpus": "", "next": "waiting for 1 GPU"}
		for name, reason := range want {
			if got := w.job(name).StatusReason; got != reason {
				t.Errorf("%s: reason %q, want %q", name, got, reason)
			}
		}
	})
}

func TestManyJobsOfOneUserDoNotHoldUpAnother(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		body, err := strictjson.Parse([]byte(`{"rows":[` + strings.Repeat(`{},`, 499) + `{}]}`))
		must(t, err)
		_, _, err = w.Jobs.SubmitBatch(t.Context(), ann, app.BatchSubmission{
			Name: "many", Type: "sim", Rows: body.Member("rows").Items, Body: body,
		})
		must(t, err)
		w.play(func(name string, _ int) script { // so that they end one by one
			n, _ := strconv.Atoi(strings.TrimPrefix(name, "many-"))
			return script{runs: time.Duration(n) * time.Minute, cause: app.CauseDone}
		})
		stop := w.start()
		w.until("many-4", app.Running)
		id := w.submit(bob, "only", `{}`)
		w.finished("only")
		stop()
		if got := w.executor.order[4]; got != id {
			t.Errorf("the fifth to start is %s, want bob's %s", got, id)
		}
	})
}

func TestLargeJobIsNotStarved(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		for i := range 4 {
			w.submit(bob, fmt.Sprint("first", i), `{}`)
			time.Sleep(15 * time.Second)
		}
		w.submit(ann, "whole", `{"cpus":4}`)
		begin := time.Now()
		for i := 0; w.job("whole").Status == app.Queued && i < 400; i++ { // a small job at any time
			w.submit(bob, fmt.Sprint("small", i), `{}`)
			time.Sleep(15 * time.Second)
		}
		if waited := time.Since(begin); waited < 10*time.Minute || waited > 12*time.Minute {
			t.Errorf("the large job waited %v, want ten minutes and until the others end", waited)
		}
	})
}

func TestStop(t *testing.T) {
	tests := []struct {
		name     string
		s        script
		state    app.Status // in which it is stopped
		want     app.Status
		code     app.FailureCode
		attempts int
	}{
		{"running", script{runs: time.Hour, cause: app.CauseDone, stopTakes: 7 * time.Second}, app.Running, app.Failed, app.FailedStopped, 1},
		{"starting", script{waits: time.Hour, cause: app.CauseDone}, app.Queued, app.Failed, app.FailedStopped, 1},
		{"done first", script{runs: time.Minute, cause: app.CauseDone, stopTakes: time.Hour}, app.Running, app.Completed, "", 1},
		{"failed first", script{runs: time.Minute, cause: app.CauseExit, stopTakes: time.Hour}, app.Running, app.Failed, app.FailedExit, 1},
		{"lost meanwhile", script{runs: time.Minute, stopTakes: time.Hour}, app.Running, app.Failed, app.FailedStopped, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.play(func(string, int) script { return tt.s })
				w.start()
				w.submit(ann, "a", `{}`)
				time.Sleep(10 * time.Second)
				if s := w.job("a").Status; s != tt.state {
					t.Fatalf("before: %s", s)
				}
				_, err := w.Jobs.Cancel(t.Context(), ann, "a")
				must(t, err)
				r := w.finished("a")
				if r.Status != tt.want || r.Attempts != tt.attempts {
					t.Errorf("record: %+v", r.Job)
				}
				if tt.code != "" && r.Failure.Code != tt.code {
					t.Errorf("failure: %+v", r.Failure)
				}
				if tt.s.stopTakes > stopEvery && w.executor.stops < 2 {
					t.Errorf("asked to stop %d times, want again and again", w.executor.stops)
				}
			})
		})
	}
}

func TestCancelBeforeTheTaskIsStarted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		u := w.upload(ann, "a.fasta", "MSEQ")
		full := &tap{Jobs: w.Service.Runs, source: func() error { return syscall.ENOSPC }}
		w.jobs = full
		w.start()
		w.submit(ann, "a", fmt.Sprintf(`{"sequence":%q}`, u.ID))
		time.Sleep(5 * time.Second)
		if got, want := w.job("a").StatusReason, "waiting for space on the server's disk"; got != want {
			t.Errorf("reason %q, want %q", got, want)
		}
		_, err := w.Jobs.Cancel(t.Context(), ann, "a")
		must(t, err)
		if f := w.finished("a").Failure; f.Code != app.FailedStopped {
			t.Errorf("failure %+v", f)
		}
	})
}

func TestJobWaitsForAFullDiskAndThenFails(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		u := w.upload(ann, "a.fasta", "MSEQ")
		var room time.Time
		w.jobs = &tap{Jobs: w.Service.Runs, source: func() error {
			if time.Now().Before(room) {
				return &os.PathError{Op: "write", Err: syscall.ENOSPC}
			}
			return nil
		}}
		w.start()
		for name, wait := range map[string]time.Duration{"short": 5 * time.Minute, "long": time.Hour} {
			room = time.Now().Add(wait)
			w.submit(ann, name, fmt.Sprintf(`{"sequence":%q}`, u.ID))
			r := w.finished(name)
			switch {
			case name == "short" && r.Status != app.Completed:
				t.Errorf("short: %+v", r.Failure)
			case name == "long" && (r.Failure == nil || r.Failure.Code != app.FailedCannotStart || !strings.Contains(r.Failure.Message, "no space")):
				t.Errorf("long: %+v", r.Failure)
			}
		}
	})
}

// A machine that is short of files or processes for a minute must cost no job.
func TestStartIsRetriedWhileTheMachineIsExhausted(t *testing.T) {
	for _, short := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ENOSPC} {
		t.Run(short.Error(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				enough := time.Now().Add(time.Minute)
				w.play(func(string, int) script {
					if time.Now().Before(enough) {
						return script{refuses: fmt.Errorf("start task: %w", &os.PathError{Op: "fork/exec", Err: short})}
					}
					return script{runs: time.Minute, cause: app.CauseDone}
				})
				w.start()
				w.submit(ann, "a", `{}`)
				if r := w.finished("a"); r.Status != app.Completed || r.Attempts != 1 {
					t.Errorf("%s after %d attempts: %+v", r.Status, r.Attempts, r.Failure)
				}
			})
		})
	}
}

// lateAnswers has the runner look around between the record of an end and what
// follows from it.
type lateAnswers struct{ Jobs }

func (j lateAnswers) Finish(ctx context.Context, id app.JobID, attempt int, e app.Ending) error {
	err := j.Jobs.Finish(ctx, id, attempt, e)
	time.Sleep(time.Minute)
	return err
}

func TestLostAttempts(t *testing.T) {
	tests := []struct {
		name string
		ends []app.Cause // of the attempts
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
				w.options.KeepFailed = 0 // what the next attempt reads stays all the same
				w.jobs = lateAnswers{w.jobs}
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
				// The algorithm resumes: what the first attempt left was found by the second.
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

func TestJobsAreLeftAloneWhileTheExecutorIsUnreachable(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.submit(ann, "a", `{}`)
		w.until("a", app.Running)
		w.executor.reach(false)
		time.Sleep(time.Hour)
		if s := w.job("a").Status; s != app.Running {
			t.Errorf("status %s while nobody knows", s)
		}
		w.executor.reach(true)
		if r := w.finished("a"); r.Status != app.Completed || r.Metrics.RunSeconds != 60 {
			t.Errorf("record %+v", r.Job)
		}
	})
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
		w.jobs = &tap{Jobs: w.Service.Runs, finished: trouble(fault.StorageFull), handle: trouble(fault.Unavailable)}
		w.start()
		id := w.submit(ann, "a", `{}`)
		if r := w.finished("a"); r.Status != app.Completed || time.Now().Before(until) {
			t.Errorf("record %+v", r.Job)
		}
		w.checkResult(id)
	})
}

// TestClaimWithoutAnswerKeepsItsSlot has a claim recorded whose answer is
// lost, and another job that waits for the same room.
func TestClaimWithoutAnswerKeepsItsSlot(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		answers := 0
		w.jobs = &tap{Jobs: w.Service.Runs, claimed: func() error {
			if answers++; answers == 1 {
				return errors.New("no answer")
			}
			return nil
		}}
		ids := []app.JobID{w.submit(ann, "a", `{"cpus":4}`), w.submit(ann, "b", `{"cpus":4}`)}
		w.start()
		for i, name := range []string{"a", "b"} {
			if r := w.finished(name); r.Status != app.Completed || r.Attempts != 1 || w.executor.started(ids[i]) != 1 {
				t.Errorf("record %+v", r.Job)
			}
		}
		if w.executor.order[0] != ids[0] {
			t.Error("the job without an answer did not go first")
		}
	})
}

func TestTaskOfADeletedJobIsStopped(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script { return script{runs: 24 * time.Hour, cause: app.CauseDone} })
		w.start()
		id := w.submit(ann, "a", `{"cpus":4}`)
		w.until("a", app.Running)
		must(t, w.store.Update(t.Context(), func(tx app.Tx) error { return tx.DeleteJob(id) }))
		w.submit(ann, "b", `{"cpus":4}`)
		time.Sleep(time.Minute)
		if s := w.job("b").Status; s != app.Running {
			t.Errorf("the next job is %s: the room of the vanished one is not free", s)
		}
		if w.executor.stops == 0 {
			t.Error("the task of a vanished job was not stopped")
		}
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
			t.Errorf("the log is gone too: %v", err)
		}
		notes, err := os.ReadDir(w.options.RetainedDir)
		if err != nil || len(notes) != 0 {
			t.Errorf("notes left: %v, %v", notes, err)
		}
	})
}

func TestFailedWorkDirectoryIsRemovedAtOnceIfNoneIsRetained(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.options.KeepFailed = 0
		w.play(func(_ string, attempt int) script {
			return script{cause: []app.Cause{"", app.CauseExit}[attempt-1], out: map[string]string{fmt.Sprint(attempt): ""}}
		})
		w.start()
		id := w.submit(ann, "a", `{}`)
		w.finished("a")
		synctest.Wait() // they go once the end is recorded
		if notes, err := os.ReadDir(w.options.RetainedDir); err != nil || len(notes) != 0 {
			t.Errorf("notes left: %v, %v", notes, err)
		}
		for _, attempt := range []string{"1", "2"} {
			if _, err := os.Stat(w.path(id, attempt, "work")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("work directory of attempt %s: %v", attempt, err)
			}
		}
	})
}

func TestClusterTakesJobsAFewAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.executor.bounded = false
		w.play(func(string, int) script { return script{waits: time.Minute, runs: time.Minute, cause: app.CauseDone} })
		body, err := strictjson.Parse([]byte(`{"rows":[` + strings.Repeat(`{"cpus":4},`, 79) + `{}]}`))
		must(t, err)
		_, _, err = w.Jobs.SubmitBatch(t.Context(), ann, app.BatchSubmission{Name: "many", Type: "sim", Rows: body.Member("rows").Items, Body: body})
		must(t, err)
		w.start()
		w.finished("many")
		if n := len(w.executor.order); n != 80 {
			t.Errorf("%d tasks, want 80", n)
		}
		if s := w.job("many").Status; s != app.Completed {
			t.Errorf("the batch is %s", s)
		}
	})
}

func TestRunEndsWhileEverythingWaits(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(name string, _ int) script { return script{runs: 24 * time.Hour, cause: app.CauseDone} })
		u := w.upload(ann, "a.fasta", "MSEQ")
		w.jobs = &tap{Jobs: w.Service.Runs, source: func() error { return syscall.ENOSPC }}
		stop := w.start()
		w.submit(ann, "runs", `{}`)
		w.submit(ann, "no-room", fmt.Sprintf(`{"sequence":%q}`, u.ID))
		w.until("runs", app.Running)
		synctest.Wait()
		begin := time.Now()
		stop()
		if took := time.Since(begin); took != 0 {
			t.Errorf("Run took %v to end", took)
		}
		if _, err := os.Stat(filepath.Join(w.path(w.job("runs").ID), "1", task.SpecFile)); err != nil {
			t.Errorf("the running job's directory: %v", err)
		}
	})
}
