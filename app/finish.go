package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
	"molrun/app/job/eta"
)

// Ending is the result of an attempt, as collected by the runner.
type Ending struct {
	Outcome     *Outcome        // nil if the attempt was lost
	Lost        string          // why it was lost, as part of a sentence
	Failure     *Failure        // of a failed attempt
	Results     json.RawMessage // metrics reported by the program
	Warnings    []string        // reasons to doubt the metrics
	ResultBytes int64           // of a completed job
	LeftOut     *LeftOut        // files missing from the result
	Cluster     ClusterJob      // cluster job that ran the attempt
	MoreMemory  int64           // memory for a rerun after running out of memory; 0 means no rerun
}

// lost reports whether the attempt ended without an error of its program.
func (e *Ending) lost() bool {
	return e.Failure == nil && (e.Outcome == nil || e.Outcome.Cause == CauseInterrupted)
}

func (j *Job) finish(e Ending, now time.Time) {
	j.onCluster(e.Cluster)
	if e.Outcome != nil && !e.Outcome.StartedAt.IsZero() {
		j.markStarted(e.Outcome.StartedAt)
		j.measure(e)
		now = e.Outcome.EndedAt.Add(j.clockLag(e.Outcome.StartedAt))
	}
	now = now.Add(max(0, j.StartedAt.Sub(now))) // the machine's clock might be ahead
	if j.Status == Running {
		known := cmp.Or(j.Metrics, &Metrics{})
		j.Private.Spent.Add(known.RunSeconds, known.CPUSeconds, unit.At(now))
	}
	switch {
	case j.Private.Stop && (e.lost() || e.Outcome != nil && e.Outcome.Cause == CauseStopped):
		j.fail(j.stopped(e.Failure), unit.At(now))
	case e.MoreMemory > 0 && !j.Private.Stop:
		j.retryWithMore(e)
	case e.lost() && j.Private.Lost < j.Private.Retries:
		j.Private.Lost++
		j.requeueAttempt(fmt.Sprintf("attempt %d was lost (%s); waiting for the next attempt", j.Attempts, e.why()))
	case e.lost():
		j.fail(Failure{Code: FailedLost, Message: fmt.Sprintf("The job was lost: %s. Retry it to run it again.", e.why())}, unit.At(now))
	case e.Failure != nil:
		j.fail(*e.Failure, unit.At(now))
	default:
		j.Status, j.StatusReason = Completed, ""
		j.CompletedAt = unit.At(now)
		j.ResultBytes, j.LeftOut = &e.ResultBytes, e.LeftOut
		j.release()
	}
}

// requeueAttempt requeues a job whose attempt has ended.
func (j *Job) requeueAttempt(reason string) {
	j.Status, j.StartedAt = Queued, unit.Time{}
	j.forgetAttempt()
	j.StatusReason = reason
	j.release()
}

// onCluster records the cluster job that runs the attempt, once it is known.
func (j *Job) onCluster(c ClusterJob) {
	if c.Job != "" {
		j.Slurm = &c
	}
}

func (j *Job) markStarted(at time.Time) {
	if j.Status == Queued {
		j.Status, j.StartedAt = Running, unit.At(at.Add(j.clockLag(at)))
		if !j.Private.Stop {
			j.StatusReason = ""
		}
	}
}

// clockLag returns how far the clock that reported start is behind, given that a job
// can't start before it is queued.
func (j *Job) clockLag(start time.Time) time.Duration { return max(0, j.Private.QueuedAt.Sub(start)) }

func (j *Job) measure(e Ending) {
	o := e.Outcome
	j.Isolation, j.ProgramVersion, j.Image, j.Warnings = o.Isolation, o.ProgramVersion, o.Image, e.Warnings
	j.Metrics = &Metrics{
		QueueSeconds: seconds(o.StartedAt.Sub(j.Private.QueuedAt.Time)),
		RunSeconds:   seconds(o.EndedAt.Sub(o.StartedAt)),
		CPUSeconds:   math.Round(o.CPUSeconds*1000) / 1000,
		MaxRSSBytes:  o.MaxRSSBytes,
		Results:      e.Results,
	}
}

func (e *Ending) why() string {
	switch {
	case e.Lost != "":
		return e.Lost
	case e.Outcome != nil && e.Outcome.Message != "":
		return strings.TrimSuffix(e.Outcome.Message, ".") // the message becomes part of a sentence
	}
	return "its machine or process disappeared"
}

// stopped returns the failure of a canceled job. seen is the failure found after its
// processes exited, if any.
func (j *Job) stopped(seen *Failure) Failure {
	before := ""
	if j.StartedAt.IsZero() {
		before = " before it started"
	}
	f := Failure{Code: FailedStopped, Message: fmt.Sprintf("The job was stopped by %s%s.", j.Private.StopBy, before)}
	if seen != nil {
		f.LogTail = seen.LogTail
	}
	return f
}

// seconds rounds to milliseconds. It returns 0 for a negative duration, as when a clock
// was set back.
func seconds(d time.Duration) float64 {
	return float64(max(0, d).Milliseconds()) / 1000
}

// fail finishes a job as FAILED.
func (j *Job) fail(f Failure, at unit.Time) {
	j.Status, j.StatusReason = Failed, ""
	j.Failure = &f
	j.CompletedAt = at
	j.release()
}

// failDependency fails a job because one of its dependencies has failed.
func (j *Job) failDependency(w Dependency, at unit.Time) {
	j.fail(Failure{
		Code:    FailedDependency,
		Message: fmt.Sprintf("Job %q, which this job depends on, failed. Retry %q; this job then waits for it again.", w.Name, w.Name),
	}, at)
	j.Private.Cause = w.Job
}

// setWaits sets the dependencies that a queued job waits for.
func (j *Job) setWaits(waits []Dependency) {
	j.Private.Waits, j.StatusReason = waits, ""
	switch n := len(waits); {
	case n == 1:
		j.StatusReason = fmt.Sprintf(waitsForJob+"%q", waits[0].Name)
	case n > 1:
		j.StatusReason = fmt.Sprintf(waitsForJob+"%q and %d more", waits[0].Name, n-1)
	}
}

// release clears the state of the current attempt.
func (j *Job) release() {
	p := &j.Private
	p.Claimed, p.Stop, p.StopBy, p.Token, p.Handle, p.Worker, p.Devices = false, false, "", "", "", "", placement.Devices{}
}

// Finish records how an attempt ended: the job becomes COMPLETED, FAILED, or QUEUED again
// if the attempt was lost and retries remain. It is idempotent.
func (s *Runs) Finish(ctx context.Context, id JobID, attempt int, e Ending) error {
	s.live.attemptEnded(id)
	err := s.attempt(ctx, id, attempt, func(j *Job) { j.finish(e, s.now()) })
	s.wakeRunner()
	return err
}

// FinalRecord returns the record that Finish will store, for inclusion in the job's
// result.
func (s *Runs) FinalRecord(j *Job, e Ending) (Record, error) {
	final := *j
	final.finish(e, s.now())
	return final.Encode()
}

// recordRunTime adds the job's run time to the history. A later attempt is not comparable, since
// it may have resumed an earlier one.
func (j *Job) recordRunTime(tx Tx) error {
	if j.Status != Completed || j.Attempts != 1 || j.Private.Class == "" || j.Metrics == nil {
		return nil
	}
	return tx.AddRun(j.Private.Class, eta.Run{Size: j.Private.Size, Seconds: j.Metrics.RunSeconds})
}

// attempt runs fn on a claimed job's current attempt. It does nothing if the attempt has
// ended or the job has been deleted.
func (s *Runs) attempt(ctx context.Context, id JobID, attempt int, fn func(*Job)) error {
	var changed []JobID
	err := s.store.Update(ctx, func(tx Tx) error {
		changed = nil
		j, err := tx.Job(id)
		if errors.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil || !j.Private.Claimed || j.Attempts != attempt {
			return err
		}
		from := j.Status
		fn(j)
		batch, err := putChanged(tx, j, from)
		if err != nil {
			return err
		}
		if err := j.recordRunTime(tx); err != nil {
			return err
		}
		changedIDs, err := s.propagateSome(tx)
		changed = append(changedIDs, id, batch)
		return err
	})
	if err == nil {
		s.changes.Notify(changed...)
	}
	return err
}
