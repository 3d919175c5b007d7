package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"molrun/app/fault"
	"molrun/app/placement"
	"molrun/app/routing"
	"molrun/app/unit"
)

// ActiveJobs gives the claimed jobs, oldest first.
func (s *Service) ActiveJobs(ctx context.Context) ([]*Job, error) {
	return collect(ctx, s.store, Tx.Active)
}

// collect gives all that a walk of one transaction finds.
func collect[T any](ctx context.Context, store Store, walk func(Tx) iter.Seq2[T, error]) (all []T, err error) {
	err = store.View(ctx, func(tx Tx) error {
		all = nil
		for v, err := range walk(tx) {
			if err != nil {
				return err
			}
			all = append(all, v)
		}
		return nil
	})
	return all, err
}

// Claimed says that a job is claimed, for which attempt, and whether its end
// is asked for.
type Claimed struct {
	Job     JobID
	Attempt int
	Stop    bool
}

// Claims tells which jobs are claimed, oldest first. It costs next to nothing
// a job.
func (s *Service) Claims(ctx context.Context) ([]Claimed, error) {
	return collect(ctx, s.store, Tx.Claims)
}

// Queue visits the jobs that wait for an executor, as Tx.Queue does.
func (s *Service) Queue(ctx context.Context, executor string, visit func(Waiting) Visit) error {
	return s.store.View(ctx, func(tx Tx) error { return tx.Queue(executor, visit) })
}

// Claim takes a waiting job from the queue and begins its next attempt. The
// error is NotFound where the job waits no longer.
func (s *Service) Claim(ctx context.Context, id JobID, gpus []string) (j *Job, err error) {
	token := rand.Text()
	err = s.store.Update(ctx, func(tx Tx) (err error) {
		if j, err = tx.Job(id); err != nil {
			return err
		}
		if j.Status != Queued || j.Private.Claimed || j.IsBatch() {
			return fault.Errorf(fault.NotFound, "job %s no longer waits", id)
		}
		j.Attempts++
		j.Private.Claimed = true
		j.Private.Token = token
		j.Private.GPUs = gpus
		return tx.PutJob(j)
	})
	return j, err
}

// attempt runs fn on a claimed job's current attempt; where that is over, or
// the job is gone, nothing happens.
func (s *Service) attempt(ctx context.Context, id JobID, attempt int, fn func(*Job)) error {
	var batch JobID
	changed := false
	err := s.store.Update(ctx, func(tx Tx) error {
		changed = false
		j, err := tx.Job(id)
		if errors.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil || !j.Private.Claimed || j.Attempts != attempt {
			return err
		}
		from := j.Status
		fn(j)
		changed = true
		batch, err = putChanged(tx, j, from)
		return err
	})
	if err == nil && changed {
		s.changes.tell(id, batch)
	}
	return err
}

// SetHandle stores where the attempt runs.
func (s *Service) SetHandle(ctx context.Context, id JobID, attempt int, h Handle) error {
	return s.attempt(ctx, id, attempt, func(j *Job) { j.Private.Handle = h })
}

// Started records that the attempt's process runs.
func (s *Service) Started(ctx context.Context, id JobID, attempt int, at time.Time) error {
	return s.attempt(ctx, id, attempt, func(j *Job) { j.start(at) })
}

func (j *Job) start(at time.Time) {
	if j.Status == Queued {
		j.Status, j.StartedAt = Running, unit.At(at)
		if !j.Private.Stop {
			j.StatusReason = ""
		}
	}
}

// Ending is how an attempt ended, as the runner collected it.
type Ending struct {
	Outcome     *Outcome        // nil where it was lost
	Lost        string          // why, as part of a sentence
	Failure     *Failure        // of a failed attempt
	Results     json.RawMessage // the program's own metrics
	ResultBytes int64           // of a completed job
}

// lost reports whether the attempt ended through no fault of its program.
func (e *Ending) lost() bool {
	return e.Failure == nil && (e.Outcome == nil || e.Outcome.Cause == CauseInterrupted)
}

// Finished settles an attempt: the job is COMPLETED, FAILED, or QUEUED again
// where the attempt was lost and others remain. To repeat it is harmless.
func (s *Service) Finished(ctx context.Context, id JobID, attempt int, e Ending) error {
	s.ObserveProgress(id, nil)
	err := s.attempt(ctx, id, attempt, func(j *Job) { j.settle(e, s.now()) })
	s.wakeRunner()
	return err
}

// FinalRecord gives the record that Finished will store, for the job's result.
func (s *Service) FinalRecord(j *Job, e Ending) (Record, error) {
	final := *j
	final.settle(e, s.now())
	return final.Encode()
}

func (j *Job) settle(e Ending, now time.Time) {
	if e.Outcome != nil && !e.Outcome.StartedAt.IsZero() {
		j.start(e.Outcome.StartedAt)
		j.measure(e)
		now = e.Outcome.EndedAt
	}
	switch {
	case j.Private.Stop && (e.lost() || e.Outcome != nil && e.Outcome.Cause == CauseStopped):
		j.fail(j.stopped(e.Failure), unit.At(now))
	case e.lost() && j.Private.Lost < j.Private.Retries:
		j.Private.Lost++
		j.Status, j.StartedAt, j.Metrics, j.Isolation = Queued, unit.Time{}, nil, ""
		j.StatusReason = fmt.Sprintf("attempt %d was lost (%s); waiting for the next", j.Attempts, e.why())
		j.release()
	case e.lost():
		j.fail(Failure{Code: FailedLost, Message: fmt.Sprintf("The job was lost: %s. Retry it to run it again.", e.why())}, unit.At(now))
	case e.Failure != nil:
		j.fail(*e.Failure, unit.At(now))
	default:
		j.Status, j.StatusReason = Completed, ""
		j.CompletedAt = unit.At(now)
		j.ResultBytes = &e.ResultBytes
		j.release()
	}
}

func (e *Ending) why() string {
	switch {
	case e.Lost != "":
		return e.Lost
	case e.Outcome != nil && e.Outcome.Message != "":
		return e.Outcome.Message
	}
	return "its machine or process went away"
}

// stopped is the failure of a job whose end was asked for; seen, if any, is
// what was found when it was gone.
func (j *Job) stopped(seen *Failure) Failure {
	f := Failure{Code: FailedStopped, Message: fmt.Sprintf("The job was stopped by %s.", j.Private.StopBy)}
	if seen != nil {
		f.LogTail = seen.LogTail
	}
	return f
}

func (j *Job) measure(e Ending) {
	o := e.Outcome
	j.Isolation = o.Isolation
	j.Metrics = &Metrics{
		QueueSeconds: seconds(o.StartedAt.Sub(j.Private.QueuedAt.Time)),
		RunSeconds:   seconds(o.EndedAt.Sub(o.StartedAt)),
		CPUSeconds:   math.Round(o.CPUSeconds*1000) / 1000,
		MaxRSSBytes:  o.MaxRSSBytes,
		Results:      e.Results,
	}
}

// seconds rounds to milliseconds; a clock that went back gives 0.
func seconds(d time.Duration) float64 {
	return float64(max(0, d).Milliseconds()) / 1000
}

// Impossible fails a waiting job that can never start here.
func (s *Service) Impossible(ctx context.Context, id JobID, message string) error {
	var batch JobID
	err := s.store.Update(ctx, func(tx Tx) error {
		j, err := tx.Job(id)
		if errors.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil || j.Status != Queued || j.Private.Claimed {
			return err
		}
		j.fail(Failure{Code: FailedCannotStart, Message: message}, unit.At(s.now()))
		batch, err = putChanged(tx, j, Queued)
		return err
	})
	if err == nil {
		s.changes.tell(id, batch)
	}
	return err
}

// PlacementOf says where on its executor a job goes, by the rules of today: they
// may have changed since it was submitted.
func (s *Service) PlacementOf(ctx context.Context, j *Job) (placement.Placement, error) {
	if j.Executor == placement.Local {
		return placement.Placement{}, nil
	}
	a, err := s.AlgorithmOf(ctx, j)
	if err != nil {
		return placement.Placement{}, err
	}
	p := s.router.Placement(a, j.Executor, routing.User{Organization: j.Organization, Email: j.Email}, j.Private.Needs)
	if option := s.router.Forbidden(a); option != "" {
		return p, fault.Errorf(fault.Invalid, "The job's algorithm asks for the cluster's option %s, which is no longer allowed. Ask an administrator to allow it, or submit the job anew.", option)
	}
	return p, nil
}
