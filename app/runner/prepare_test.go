package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/task"
	"molrun/app/test/must"
)

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
			must.Equal(t, tt.filename+": input", w.text(w.path(id, "1", "work", "in", tt.want)), "MSEQ")
			want := fmt.Sprintf(`{"cpus":1,"gpus":0,"sequence":%q}`, u.ID)
			must.Equal(t, "settings.json", w.text(w.path(id, "1", "work", "settings.json")), want)
			must.OK(t, os.WriteFile(w.path(id, "1", "work", "in", tt.want), []byte("changed"), 0o600))
			must.Equal(t, "the stored file changed with the copy", w.text(w.files.UploadPath(u.ID, u.Generation)), "MSEQ")
			spec, err := task.ReadSpec(w.path(id, "1"))
			must.OK(t, err)
			argv := []string{"sh", "-c", "exit 0", w.path(id, "1", "work", "settings.json"), w.path(id, "1", "work", "out")}
			must.Equal(t, "argv", spec.Steps[0].Argv, argv)
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
		must.OK(t, os.Remove(w.files.UploadPath(gone.ID, gone.Generation)))
		must.OK(t, os.Truncate(w.files.UploadPath(short.ID, short.Generation), 1))
		w.start()
		for _, name := range []string{"gone", "short"} {
			f := w.finished(name).Failure
			if f == nil || f.Code != app.FailedInput || !strings.Contains(f.Message, name+".fasta") {
				t.Errorf("%s: failure %+v", name, f)
			}
		}
		must.Equal(t, "tasks were started", len(w.executor.order), 0)
	})
}

func TestJobWaitsForAFullDiskAndThenFailsOrIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		u := w.upload(ann, "a.fasta", "MSEQ")
		var free time.Time
		w.jobs = &faultyJobs{Jobs: w.Service.Runs, source: func() error {
			if time.Now().Before(free) {
				return &os.PathError{Op: "write", Err: syscall.ENOSPC}
			}
			return nil
		}}
		w.start()
		wait := func(name string, full time.Duration) {
			free = time.Now().Add(full)
			w.submit(ann, name, fmt.Sprintf(`{"sequence":%q}`, u.ID))
		}
		wait("short", 5*time.Minute)
		if r := w.finished("short"); r.Status != app.Completed {
			t.Errorf("short: %+v", r.Failure)
		}
		wait("long", time.Hour)
		if f := w.finished("long").Failure; f == nil || f.Code != app.FailedCannotStart || !strings.Contains(f.Message, "disk is full") {
			t.Errorf("long: %+v", f)
		}
		wait("cancelled", time.Hour)
		time.Sleep(5 * time.Second)
		if got, want := w.job("cancelled").StatusReason, "waiting for space on the server's disk"; got != want {
			t.Errorf("reason %q, want %q", got, want)
		}
		_, err := w.Jobs.Cancel(t.Context(), ann, "cancelled")
		must.OK(t, err)
		if f := w.finished("cancelled").Failure; f.Code != app.FailedStopped {
			t.Errorf("cancelled: %+v", f)
		}
	})
}

// A job does not fail if the machine runs out of files or processes for a minute.
func TestStartIsRetriedWhileTheMachineIsExhausted(t *testing.T) {
	for _, short := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ENOSPC, fault.Unavailable} {
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

// TestClaimWithoutResponseKeepsItsSlot loses the response to a recorded claim while
// another job waits for the same slot.
func TestClaimWithoutResponseKeepsItsSlot(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		answers := 0
		w.jobs = &faultyJobs{Jobs: w.Service.Runs, claimed: func() error {
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
			t.Error("the job without a response did not start first")
		}
	})
}

// faultyJobs is the service for a runner, with calls that fail.
type faultyJobs struct {
	Jobs
	source, handle, finished, claimed func() error
}

// refusal returns the error of a failing call, nil for the others.
func refusal(fails func() error) error {
	if fails == nil {
		return nil
	}
	return fails()
}

func (w *faultyJobs) InputPath(src app.Reference) (string, error) {
	if err := refusal(w.source); err != nil {
		return "", err
	}
	return w.Jobs.InputPath(src)
}

func (w *faultyJobs) SetHandle(ctx context.Context, id app.JobID, attempt int, h app.Handle) error {
	if err := refusal(w.handle); err != nil {
		return err
	}
	return w.Jobs.SetHandle(ctx, id, attempt, h)
}

func (w *faultyJobs) Finish(ctx context.Context, id app.JobID, attempt int, e app.Ending) error {
	if err := refusal(w.finished); err != nil {
		return err
	}
	return w.Jobs.Finish(ctx, id, attempt, e)
}

// Claim loses the response, not the claim.
func (w *faultyJobs) Claim(ctx context.Context, id app.JobID, leased placement.Devices, p app.ClaimLimit) (*app.Job, []*app.Job, error) {
	j, rows, err := w.Jobs.Claim(ctx, id, leased, p)
	return j, rows, errors.Join(err, refusal(w.claimed))
}
