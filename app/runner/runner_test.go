package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/task"
	"molrun/app/test/must"
)

func TestJobRunsToItsResult(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script {
			return script{
				runs: time.Minute, cause: app.CauseDone, log: "hello\n", warnings: []string{"Rg is not converged"},
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
		must.Equal(t, "warnings", r.Warnings, []string{"Rg is not converged"})
		must.Equal(t, "ran", r.CompletedAt.Sub(r.StartedAt.Time), time.Minute)
		got := w.checkResult(id)
		rec, err := w.Jobs.Get(t.Context(), ann, "one", 0)
		must.OK(t, err)
		want := map[string]string{
			"a.pdb": "ATOM", "b/c.txt": "x", "metrics.json": `{"rg_nm":1.5}`, "output/log.txt": "own",
			"log.txt": "hello\n", "job.json": string(rec),
		}
		must.Equal(t, "result", got, want)
		must.Equal(t, "result bytes", int64(len("ATOM")+len("x")+len(`{"rg_nm":1.5}`)+len("own")), *r.ResultBytes)
		if _, err := os.Stat(w.path(id, "1", task.WorkDir)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the work directory is still there: %v", err)
		}
	})
}

func TestStop(t *testing.T) {
	tests := []struct {
		name     string
		s        script
		state    app.Status // status in which it is stopped
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
				w.options.KeepFailed = 0 // nothing is retained for another attempt
				w.play(func(string, int) script { return tt.s })
				w.start()
				id := w.submit(ann, "a", `{}`)
				time.Sleep(10 * time.Second)
				if s := w.job("a").Status; s != tt.state {
					t.Fatalf("before: %s", s)
				}
				_, err := w.Jobs.Cancel(t.Context(), ann, "a")
				must.OK(t, err)
				r := w.finished("a")
				if r.Status != tt.want || r.Attempts != tt.attempts {
					t.Errorf("record: %+v", r.Job)
				}
				if tt.code != "" && r.Failure.Code != tt.code {
					t.Errorf("failure: %+v", r.Failure)
				}
				if tt.s.stopTakes > stopEvery && w.executor.stops < 2 {
					t.Errorf("asked to stop %d times, want several times", w.executor.stops)
				}
				synctest.Wait()
				if isDir(w.path(id, "1", task.WorkDir)) {
					t.Error("the work directory is still there")
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
		must.Equal(t, "status", w.job("a").Status, app.Running)
		w.executor.reach(true)
		if r := w.finished("a"); r.Status != app.Completed || r.Metrics.RunSeconds != 60 {
			t.Errorf("record %+v", r.Job)
		}
	})
}

func TestTaskOfADeletedJobIsStopped(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(string, int) script { return script{runs: 24 * time.Hour, cause: app.CauseDone} })
		w.start()
		id := w.submit(ann, "a", `{"cpus":4}`)
		w.until("a", app.Running)
		must.OK(t, w.store.Update(t.Context(), func(tx app.Tx) error { return tx.DeleteJob(id) }))
		w.submit(ann, "b", `{"cpus":4}`)
		time.Sleep(time.Minute)
		must.Equal(t, "the next job", w.job("b").Status, app.Running)
		if w.executor.stops == 0 {
			t.Error("the task of a deleted job was not stopped")
		}
	})
}

func TestRunEndsWhileEverythingWaits(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(name string, _ int) script { return script{runs: 24 * time.Hour, cause: app.CauseDone} })
		u := w.upload(ann, "a.fasta", "MSEQ")
		w.jobs = &faultyJobs{Jobs: w.Service.Runs, source: func() error { return syscall.ENOSPC }}
		stop := w.start()
		w.submit(ann, "runs", `{}`)
		w.submit(ann, "no-space", fmt.Sprintf(`{"sequence":%q}`, u.ID))
		w.until("runs", app.Running)
		synctest.Wait()
		begin := time.Now()
		stop()
		must.Equal(t, "Run took", time.Since(begin), 0)
		if _, err := os.Stat(filepath.Join(w.path(w.job("runs").ID), "1", task.SpecFile)); err != nil {
			t.Errorf("the running job's directory: %v", err)
		}
	})
}
