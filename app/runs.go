package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"time"

	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/base/unit"
	"molrun/app/job/eta"
	"molrun/app/job/quota"
)

// Runs is the runner's side of the service: the queue, claims, and the outcome of
// attempts.
type Runs struct{ *core }

// Active returns the claimed jobs, oldest first.
func (s *Runs) Active(ctx context.Context) ([]*Job, error) {
	jobs, err := collect(ctx, s.store, Tx.Active)
	if err != nil {
		return nil, err
	}
	return jobs, s.trackEnds(ctx, jobs...)
}

// trackEnds records when running jobs are expected to end.
func (s *Runs) trackEnds(ctx context.Context, jobs ...*Job) error {
	known := map[string]*eta.History{}
	err := s.store.View(ctx, func(tx Tx) error {
		for _, j := range jobs {
			if j.Status != Running || known[j.Private.Class] != nil {
				continue
			}
			runs, err := tx.Runs(j.Private.Class)
			if err != nil {
				return err
			}
			known[j.Private.Class] = eta.NewHistory(j.Private.Class, runs)
		}
		return nil
	})
	for _, j := range jobs {
		if h := known[j.Private.Class]; j.Status == Running && err == nil {
			s.live.jobStarted(j, h.Estimate(j.Private.Size))
		}
	}
	return err
}

// collect returns all items of a walk in one transaction.
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

// Claims lists the claimed jobs, oldest first. It does not read their records.
func (s *Runs) Claims(ctx context.Context) ([]Claimed, error) {
	return collect(ctx, s.store, Tx.Claims)
}

// Queue visits the jobs queued for an executor, as Tx.Queue does.
func (s *Runs) Queue(ctx context.Context, executor string, visit func(Waiting) Visit) error {
	return s.store.View(ctx, func(tx Tx) error { return tx.Queue(executor, visit) })
}

// Lines returns the queue of an executor by priority and user, in the order of Queue,
// with the oldest jobs of each line: about most jobs in total, but at least a hundred per
// line if it has as many.
func (s *Runs) Lines(ctx context.Context, executor string, most int) (lines []QueueLine, err error) {
	err = s.store.View(ctx, func(tx Tx) error {
		if lines, err = tx.QueueLines(executor); err != nil || len(lines) == 0 {
			return err
		}
		most, at := max(100, most/len(lines)), 0
		return tx.Queue(executor, func(w Waiting) Visit {
			for at < len(lines) && !lines[at].holds(w) {
				at++
			}
			if at == len(lines) {
				return EndVisit
			}
			l := &lines[at]
			if l.Jobs == nil {
				l.Jobs = make([]Waiting, 0, min(most, l.Count))
			}
			if l.Jobs = append(l.Jobs, w); len(l.Jobs) >= most {
				return NextUser
			}
			return NextJob
		})
	})
	return lines, err
}

// ClaimLimit limits which rows of a batch a worker claims.
type ClaimLimit struct {
	Worker        string  // name of the worker; "" if there is none
	Rows          int     // maximum number of rows
	Seconds       float64 // maximum total run time, predicted from the history of their class
	MaxRowSeconds float64 // maximum run time of the first row; a longer row gets no worker
}

// Claim takes a job from the queue and starts its next attempt. If the job is a short row
// of a batch that has not been tried yet, Claim takes further rows for the same worker.
// The error is NotFound if the job is no longer queued, or if its batch is being stopped,
// in which case the job fails.
func (s *Runs) Claim(ctx context.Context, id JobID, leased placement.Devices, p ClaimLimit) (j *Job, rows []*Job, err error) {
	token := rand.Text()
	gone := fault.Errorf(fault.NotFound, "job %s is no longer queued", id)
	stopped := false
	err = s.store.Update(ctx, func(tx Tx) (err error) {
		rows, stopped = nil, false
		if j, err = tx.Job(id); err != nil {
			return err
		}
		if j.Status != Queued || j.Private.Claimed || j.IsBatch() || len(j.Private.Waits) > 0 {
			return gone
		}
		batch, err := stoppingBatch(tx, j)
		if err != nil {
			return err
		}
		if stopped = batch != nil; stopped {
			return s.stop(tx, j, *batch.Private.Pending, nil)
		}
		j.Attempts++
		j.Private.Claimed = true
		j.Private.Token = token
		j.Private.Devices = leased
		if err := tx.PutJob(j); err != nil || p.Worker == "" || j.Private.Batch == "" || j.Attempts > 1 {
			return err
		}
		rows, err = claimRows(tx, j, p)
		return err
	})
	if err == nil && stopped {
		s.changes.Notify(id, j.Private.Batch)
		s.wakeRunner() // to propagate pending statuses
		err = gone
	}
	if err != nil {
		return nil, nil, err
	}
	return j, rows, nil
}

// stoppingBatch returns j if it is a batch, or otherwise the batch of j. It returns nil
// if the rows of that batch are not being stopped.
func stoppingBatch(tx Tx, j *Job) (batch *Job, err error) {
	switch {
	case j.IsBatch():
		batch = j
	case j.Private.Batch != "":
		batch, err = tx.Job(j.Private.Batch)
	default:
		return nil, nil
	}
	if err != nil || !batch.isStopping() {
		return nil, err
	}
	return batch, nil
}

// maxSkippedJobs is how many other jobs of the same user a row can skip to join a worker.
const maxSkippedJobs = 16

// ClaimRows takes further rows of a claimed job's batch from the queue, in queue order,
// if they run with the same algorithm and resources. It records the worker of each of them
// and of the first job.
func (s *Runs) ClaimRows(ctx context.Context, first *Job, p ClaimLimit) (rows []*Job, err error) {
	err = s.store.Update(ctx, func(tx Tx) error {
		rows = nil
		if batch, err := stoppingBatch(tx, first); batch != nil || err != nil {
			return err
		}
		rows, err = claimRows(tx, first, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// claimRows claims rows of a batch that is not being stopped.
func claimRows(tx Tx, first *Job, p ClaimLimit) ([]*Job, error) {
	rows, err := similarRows(tx, first, p)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	switch j, err := tx.Job(first.ID); {
	case errors.Is(err, fault.NotFound): // it has ended and was deleted
	case err != nil:
		return nil, err
	case j.Private.Token == first.Private.Token && j.Private.Claimed && j.Private.Worker == "":
		j.Private.Worker = p.Worker
		if err := tx.PutJob(j); err != nil {
			return nil, err
		}
	}
	for _, j := range rows {
		j.Attempts++
		j.Private.Claimed, j.Private.Token, j.Private.Worker = true, rand.Text(), p.Worker
		j.Private.Devices = first.Private.Devices
		if err := tx.PutJob(j); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// similarRows returns the rows to claim, in queue order, which keeps the rows of a batch
// together.
func similarRows(tx Tx, first *Job, p ClaimLimit) (rows []*Job, err error) {
	runs, err := tx.Runs(first.Private.Class)
	if err != nil {
		return nil, err
	}
	history, left, skipped := eta.NewHistory(first.Private.Class, runs), p.Seconds, 0
	if e := history.Estimate(first.Private.Size); p.MaxRowSeconds > 0 && (!e.Known() || e.Seconds() > p.MaxRowSeconds) {
		return nil, nil
	}
	visitErr := tx.Queue(first.Executor, func(w Waiting) Visit {
		switch {
		case w.Priority < first.Priority:
			return EndVisit
		case w.Priority > first.Priority || w.Organization != first.Organization || w.Email != first.Email:
			return NextUser
		}
		var j *Job
		if j, err = tx.Job(w.ID); err != nil {
			return EndVisit
		}
		if !canShareProcess(j, first) {
			if skipped++; skipped > maxSkippedJobs {
				return EndVisit
			}
			return NextJob
		}
		e := history.Estimate(j.Private.Size)
		if !e.Known() {
			return EndVisit
		}
		if left -= e.Seconds(); left < 0 {
			return EndVisit
		}
		if rows = append(rows, j); len(rows) >= p.Rows {
			return EndVisit
		}
		return NextJob
	})
	if err == nil {
		err = visitErr
	}
	return rows, err
}

// canShareProcess reports whether queued job j can run in the same process as other: both
// are rows of the same batch, and j has not been tried yet. A row that has been tried
// before might have crashed the process that it ran in.
func canShareProcess(j, other *Job) bool {
	p, q := &j.Private, &other.Private
	return p.Batch != "" && p.Batch == q.Batch && j.Attempts == 0 && !p.Stop && len(p.Waits) == 0 &&
		p.Definition == q.Definition && p.Folder == q.Folder && p.Needs == q.Needs && p.Class == q.Class
}

// Return puts a claimed job back into the queue as if it had not been claimed. Its
// attempt must not have started and must never start.
func (s *Runs) Return(ctx context.Context, id JobID, attempt int) error {
	err := s.attempt(ctx, id, attempt, func(j *Job) {
		if j.Status == Queued {
			j.Attempts--
		}
		if j.Private.Stop || j.Status != Queued {
			j.finish(Ending{Lost: "it had not started"}, s.now())
			return
		}
		j.release()
	})
	s.wakeRunner()
	return err
}

// SetHandle records the executor's handle of the attempt.
func (s *Runs) SetHandle(ctx context.Context, id JobID, attempt int, h Handle) error {
	return s.attempt(ctx, id, attempt, func(j *Job) { j.Private.Handle = h })
}

// Started records that the attempt's process is running.
func (s *Runs) Started(ctx context.Context, id JobID, attempt int, at time.Time, on ClusterJob) error {
	var started Job
	err := s.attempt(ctx, id, attempt, func(j *Job) {
		j.onCluster(on)
		j.markStarted(at)
		started = *j
	})
	if err != nil || started.ID == "" {
		return err
	}
	return s.trackEnds(ctx, &started)
}

// Reject fails a queued job that can never start here.
func (s *Runs) Reject(ctx context.Context, id JobID, message string) error {
	var changed []JobID
	err := s.store.Update(ctx, func(tx Tx) error {
		changed = nil
		j, err := tx.Job(id)
		if errors.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil || j.Status != Queued || j.Private.Claimed {
			return err
		}
		j.fail(Failure{Code: FailedCannotStart, Message: message}, unit.At(s.now()))
		batch, err := putChanged(tx, j, Queued)
		if err != nil {
			return err
		}
		changedIDs, err := s.propagateSome(tx)
		changed = append(changedIDs, id, batch)
		return err
	})
	if err == nil {
		s.changes.Notify(changed...)
		s.wakeRunner() // to propagate pending statuses
	}
	return err
}

// PlacementOf returns the placement of a job on its executor under the current rules,
// which can have changed since it was submitted.
func (s *Runs) PlacementOf(ctx context.Context, j *Job) (placement.Placement, error) {
	if j.Executor == placement.Local {
		return placement.Placement{}, nil
	}
	a, err := s.algorithmOf(ctx, j)
	if err != nil {
		return placement.Placement{}, err
	}
	p := s.router.Placement(a, j.Executor, routing.User{Organization: j.Organization, Email: j.Email}, j.Private.Needs)
	if option := s.router.Forbidden(a); option != "" {
		return p, fault.Errorf(fault.Invalid, "The job's algorithm uses the cluster option %s, which is no longer allowed. Ask an administrator to allow it, or submit the job again.", option)
	}
	return p, nil
}

// Blocked returns why no job can start now; the zero Reason means that jobs can start.
func (s *Runs) Blocked() eta.Reason {
	if d := s.Drained(); d != nil {
		return eta.Reason{Text: d.reason(), By: eta.Drain}
	}
	if why := s.DiskShortage(); why != "" {
		return eta.Reason{Text: why, By: eta.Disk}
	}
	return eta.Reason{}
}

// DiskShortage returns why disk usage prevents jobs from starting, or "". Jobs must leave
// the disk space that records need: without it nothing could be recorded, deleted, or
// even read after a restart.
func (s *Runs) DiskShortage() string {
	disk, err := s.blobs.Disk()
	if err != nil {
		return "" // the problem will surface elsewhere
	}
	if shortage := disk.Shortage(0); shortage != "" {
		return "waiting for free disk space: " + shortage
	}
	return ""
}

// minStorage is the number of bytes that an admitted job can always write, even if the
// quota is exhausted.
const minStorage = 1 << 20

// Writing is a running or starting job and the number of bytes it has written.
type Writing struct {
	Organization, Email string
	Bytes               int64
}

// StorageShares returns how many bytes each of these jobs can write in total before its
// user or organization exceeds its storage quota. 0 means no limit. The jobs share the
// remaining quota. If they have exceeded it, only the job that has written the most gets
// a share smaller than what it has written.
func (s *Runs) StorageShares(ctx context.Context, jobs []Writing) (shares []int64, err error) {
	holders := map[quota.Holder][]int{}
	for i, w := range jobs {
		for _, h := range quota.Holders(w.Organization, w.Email) {
			if s.options.Quota.For(h).Bytes > 0 {
				holders[h] = append(holders[h], i)
			}
		}
	}
	err = s.store.View(ctx, func(tx Tx) error {
		shares = make([]int64, len(jobs))
		for h, own := range holders {
			used, err := tx.Stored(h.Organization, h.User)
			if err != nil {
				return err
			}
			shareStorage(jobs, own, s.options.Quota.For(h).Bytes-used.Bytes, shares)
		}
		return nil
	})
	return shares, err
}

// shareStorage lowers the shares of one holder's jobs to the remaining quota.
func shareStorage(jobs []Writing, own []int, left int64, shares []int64) {
	largest := own[0]
	for _, i := range own {
		if left -= jobs[i].Bytes; jobs[i].Bytes > jobs[largest].Bytes {
			largest = i
		}
	}
	for _, i := range own {
		share := jobs[i].Bytes + left
		if i != largest {
			share = max(share, jobs[i].Bytes)
		}
		if share = max(share, minStorage); shares[i] == 0 || share < shares[i] {
			shares[i] = share
		}
	}
}

// Wake returns the channel that receives when there might be a job to start or stop.
func (s *Runs) Wake() <-chan struct{} { return s.wake }

// AlgorithmOf returns the algorithm file that a job was validated against, which may be
// older than the catalogue's.
func (s *Runs) AlgorithmOf(ctx context.Context, j *Job) (*algorithm.File, error) {
	return s.algorithmOf(ctx, j)
}

// InputPath returns the path of the file that a reference points to.
func (s *Runs) InputPath(ref Reference) (string, error) { return s.referencePath(ref) }

// SetProgress records the latest progress of a running job.
func (s *Runs) SetProgress(j *Job, p Progress) {
	if s.live.setProgress(j.ID, p, s.now()) && s.onProgress != nil {
		s.onProgress(j, p)
	}
}

// OnProgress calls notify with all new progress. It must be called before any progress is
// reported.
func (s *Runs) OnProgress(notify func(*Job, Progress)) { s.onProgress = notify }

// SetWaitReasons records why jobs wait. It replaces all earlier reasons.
func (s *Runs) SetWaitReasons(reasons map[JobID]eta.Reason) { s.live.setReasons(reasons) }

// QueueForecast returns the latest forecast of an executor, or nil if there is none yet.
func (s *Runs) QueueForecast(executor string) QueueForecast { return s.live.forecast(executor) }

// History returns the past runs of a class.
func (s *Runs) History(ctx context.Context, class string) (h *eta.History, err error) {
	err = s.store.View(ctx, func(tx Tx) error {
		runs, err := tx.Runs(class)
		h = eta.NewHistory(class, runs)
		return err
	})
	return h, err
}

// RemainingTime returns the remaining run time of a claimed job and the basis of that estimate, ""
// if unknown. runs is false if the job has not started.
func (s *Runs) RemainingTime(id JobID) (seconds float64, basis string, runs bool) {
	return s.live.running.Left(string(id), s.now())
}

// SetQueueForecast records the forecast of an executor.
func (s *Runs) SetQueueForecast(executor string, o QueueForecast) { s.live.setForecast(executor, o) }

// reason returns why a job waits during the drain.
func (d *Drain) reason() string {
	text := fmt.Sprintf("waiting: %s paused the queue at %s", d.By, d.Since.UTC().Format(time.DateTime+" UTC"))
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return text
}

// Drained returns the current drain, or nil if jobs can start.
func (s *Runs) Drained() *Drain { return s.drain.Load() }

// Drain pauses the start of jobs until Resume, even across restarts. Draining again
// replaces the reason.
func (s *Runs) Drain(ctx context.Context, by Caller, reason string) (*Drain, error) {
	if reason != "" {
		if msg := naming.CheckName(reason); msg != "" {
			return nil, fault.List(fault.Field{Loc: []any{"body", "reason"}, Type: "value", Msg: msg})
		}
	}
	d := &Drain{Since: unit.At(s.now()), By: by.Email, Reason: reason}
	return d, s.putDrain(ctx, by, d)
}

// Resume starts jobs again.
func (s *Runs) Resume(ctx context.Context, by Caller) error { return s.putDrain(ctx, by, nil) }

func (s *Runs) putDrain(ctx context.Context, by Caller, d *Drain) error {
	s.draining.Lock() // keeps memory in the order of the commits
	defer s.draining.Unlock()
	err := s.store.Update(ctx, func(tx Tx) error {
		if err := checkOperator(tx, by); err != nil {
			return err
		}
		if old := s.drain.Load(); d != nil && old != nil {
			d.Since = old.Since
		}
		return tx.PutDrained(d)
	})
	if err != nil {
		return err
	}
	s.drain.Store(d)
	s.wakeRunner()
	return nil
}

// checkOperator returns nil if the caller can act for the whole service: the operator, or an
// admin if there is only one organization.
func checkOperator(tx Tx, by Caller) error {
	if by.Operator {
		return nil
	}
	keys, err := tx.Keys()
	if err != nil {
		return err
	}
	alone := by.Administers()
	for _, k := range keys {
		alone = alone && k.Organization == by.Organization
	}
	if !alone {
		return fault.Errorf(fault.Forbidden, "only admins can pause or resume the queue, and only if no other organization has keys; ask the operator of the service to run molrun drain")
	}
	return nil
}

func (c *core) loadDrain(ctx context.Context) error {
	return c.store.View(ctx, func(tx Tx) error {
		d, err := tx.Drained()
		c.drain.Store(d)
		return err
	})
}
