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

// Ending is how an attempt ended, as collected by the runner.
type Ending struct {
	Outcome     *Outcome        // nil where it was lost
	Lost        string          // why, as part of a sentence
	Failure     *Failure        // of a failed attempt
	Results     json.RawMessage // the program's own metrics
	Warnings    []string        // what makes them doubtful
	ResultBytes int64           // of a completed job
	LeftOut     *LeftOut        // of its result
	Cluster     ClusterJob      // that ran the attempt
	MoreMemory  int64           // bytes with which a job that ran out of memory is started again; 0: it is not
}

// lost reports whether the attempt ended through no fault of its program.
func (e *Ending) lost() bool {
	return e.Failure == nil && (e.Outcome == nil || e.Outcome.Cause == CauseInterrupted)
}

func (j *Job) finish(e Ending, now time.Time) {
	j.onCluster(e.Cluster)
	if e.Outcome != nil && !e.Outcome.StartedAt.IsZero() {
		j.markStarted(e.Outcome.StartedAt)
		j.measure(e)
		now = e.Outcome.EndedAt.Add(j.lag(e.Outcome.StartedAt))
	}
	now = now.Add(max(0, j.StartedAt.Sub(now))) // its clock may be ahead
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
		j.startAgain(fmt.Sprintf("attempt %d was lost (%s); waiting for the next attempt", j.Attempts, e.why()))
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

// startAgain queues a job again whose attempt has ended.
func (j *Job) startAgain(reason string) {
	j.Status, j.StartedAt = Queued, unit.Time{}
	j.forgetAttempt()
	j.StatusReason = reason
	j.release()
}

// onCluster records which job of the cluster runs the attempt, once that is known.
func (j *Job) onCluster(c ClusterJob) {
	if c.Job != "" {
		j.Slurm = &c
	}
}

func (j *Job) markStarted(at time.Time) {
	if j.Status == Queued {
		j.Status, j.StartedAt = Running, unit.At(at.Add(j.lag(at)))
		if !j.Private.Stop {
			j.StatusReason = ""
		}
	}
}

// lag is by how much the clock of a start is behind: none is before its job was queued.
func (j *Job) lag(start time.Time) time.Duration { return max(0, j.Private.QueuedAt.Sub(start)) }

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
		return strings.TrimSuffix(e.Outcome.Message, ".") // it becomes part of a sentence
	}
	return "its machine or process disappeared"
}

// stopped is the failure of a job that was cancelled. seen is the failure found
// when its processes were gone, if any.
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

// seconds rounds to milliseconds. A clock that went back gives 0.
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

// failDependency fails a job because a job on which it depends has failed.
func (j *Job) failDependency(w Dependency, at unit.Time) {
	j.fail(Failure{
		Code:    FailedDependency,
		Message: fmt.Sprintf("Job %q, which this job depends on, failed. Retry %q; this job then waits for it again.", w.Name, w.Name),
	}, at)
	j.Private.Cause = w.Job
}

// setWaits makes a queued job wait.
func (j *Job) setWaits(waits []Dependency) {
	j.Private.Waits, j.StatusReason = waits, ""
	switch n := len(waits); {
	case n == 1:
		j.StatusReason = fmt.Sprintf(waitsForJob+"%q", waits[0].Name)
	case n > 1:
		j.StatusReason = fmt.Sprintf(waitsForJob+"%q and %d more", waits[0].Name, n-1)
	}
}

// release clears what belongs to the current attempt only.
func (j *Job) release() {
	p := &j.Private
	p.Claimed, p.Stop, p.StopBy, p.Token, p.Handle, p.Pilot, p.Devices = false, false, "", "", "", "", placement.Devices{}
}

// Finish records how an attempt ended: the job is COMPLETED, FAILED, or QUEUED
// again if the attempt was lost and retries remain. It is idempotent.
func (s *Runs) Finish(ctx context.Context, id JobID, attempt int, e Ending) error {
	s.live.attemptEnded(id)
	err := s.attempt(ctx, id, attempt, func(j *Job) { j.finish(e, s.now()) })
	s.wakeRunner()
	return err
}

// FinalRecord returns the record that Finish will store, for the job's result.
func (s *Runs) FinalRecord(j *Job, e Ending) (Record, error) {
	final := *j
	final.finish(e, s.now())
	return final.Encode()
}

// learn adds the job's run time to the history. A later attempt may have continued an
// earlier one, so it is not comparable.
func (j *Job) learn(tx Tx) error {
	if j.Status != Completed || j.Attempts != 1 || j.Private.Class == "" || j.Metrics == nil {
		return nil
	}
	return tx.AddRun(j.Private.Class, eta.Run{Size: j.Private.Size, Seconds: j.Metrics.RunSeconds})
}

// attempt runs fn on a claimed job's current attempt. If that is over, or the
// job is gone, nothing happens.
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
		if err := j.learn(tx); err != nil {
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
