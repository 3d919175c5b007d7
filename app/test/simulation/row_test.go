package simulation

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"molrun/app"
)

// mostRows is the maximum number of jobs in a batch of short jobs.
const mostRows = 12

// submitRows submits a batch of identical short jobs.
func (s *simulation) submitRows() {
	s.up()
	open := s.ledger.sorted(func(e *entry) bool { return !e.Status.Finished() })
	if s.process == nil || len(open) > maxOpen {
		return
	}
	by := users[s.rng.IntN(len(users))]
	sub := &submission{name: "rows" + string(rune('a'+s.rng.IntN(8))), typ: "quick", batch: true}
	w := jobSettings{cpus: 1 + s.rng.IntN(2)}
	for range 2 + s.rng.IntN(mostRows-1) {
		sub.rows = append(sub.rows, w)
	}
	sub.priority = []int{-1, 0, 0, 0}[s.rng.IntN(4)]
	s.send(&request{label: label{verb: "batch"}, by: by, name: sub.name, submission: sub})
}

// workersDir returns the directory in which the runner keeps the directories of its
// workers.
func (s *site) workersDir() string { return filepath.Join(s.dir, "workers") }

// workerDir returns the directory of a job's worker.
func (s *site) workerDir(e *entry) string { return filepath.Join(s.workersDir(), e.Private.Worker) }

// attemptDir returns the directory of a job's current attempt.
func (s *simulation) attemptDir(e *entry) string {
	return filepath.Join(s.process.files.JobDir(e.ID), strconv.Itoa(e.Attempts))
}

// isRowOf reports whether a commit assigns the job to a worker that already has a first
// job.
func (s *simulation) isRowOf(c *change, now *stored) bool {
	return c.label.verb == "rows" || c.label.verb == "claim" && s.names.of(now.ID) != c.label.of
}

// judgeRow checks that a worker claims a job that is like its first job and has had no
// attempts.
func (s *simulation) judgeRow(c *change, old *entry, now *stored) error {
	var first *app.Job
	for _, e := range s.ledger.jobs {
		if s.names.of(e.ID) == c.label.of {
			first = s.after(c, e.ID)
		}
	}
	if first != nil && first.ID == now.ID {
		return judgeWorkerAssigned(old, now)
	}
	switch {
	case !old.waits() || now.Status != app.Queued || !now.Private.Claimed:
		return fmt.Errorf("a row that is not waiting is claimed")
	case old.Attempts != 0 || now.Attempts != 1:
		return fmt.Errorf("attempt %d of a row that had %d shares a process", now.Attempts, old.Attempts)
	case now.Private.Token == "" || s.ledger.tokens[now.Private.Token] || now.Private.Worker == "":
		return fmt.Errorf("a row has no token of its own, or no worker: %+v", now.Private)
	case first != nil && (now.Private.Batch != first.Private.Batch || now.Type != first.Type || !sharesNeeds(now, first) || now.Priority != first.Priority):
		return fmt.Errorf("it shares a process with %s, which is another kind of job", first.Name)
	case first != nil && first.Private.Claimed && first.Private.Worker != "" && first.Private.Worker != now.Private.Worker:
		return fmt.Errorf("its worker is not that of %s", first.Name)
	case c.label.verb == "rows":
		s.machine.flights.pulled++
		return s.judgeClaimFairness(now)
	}
	return nil
}

// sharesNeeds reports whether a job needs the same CPUs and GPUs as the worker's first
// job. The first job's memory might have been raised since then; judgeStarted compares
// the memory of the job with that of its task.
func sharesNeeds(row *stored, first *app.Job) bool {
	return row.Private.Needs.CPUs == first.Private.Needs.CPUs && row.Private.Needs.GPUs == first.Private.Needs.GPUs
}

// judgeWorkerAssigned checks that assigning a worker to a first job after its claim
// changes nothing else.
func judgeWorkerAssigned(old *entry, now *stored) error {
	same := *now
	same.Private.Worker = old.Private.Worker
	return allow(old.Private.Claimed && old.Private.Worker == "" && now.Private.Worker != "" && now.shown == old.shown && fmt.Sprint(same.Private) == fmt.Sprint(old.Private),
		"more than its worker changes")
}

// judgeClaimFairness checks that a worker claims more jobs only while no other user's job
// has been waiting for its slot.
func (s *simulation) judgeClaimFairness(row *stored) error {
	if !s.stable() {
		return nil
	}
	for _, e := range s.ledger.sorted((*entry).waits) {
		ahead := e.Priority > row.Priority || e.Priority == row.Priority && userOf(&e.Job) != userOf(&row.Job)
		if ahead && time.Since(e.waitsSince) > startsWithin {
			return fmt.Errorf("a worker takes more rows, although %s has waited for %v", e.Name, time.Since(e.waitsSince))
		}
	}
	return nil
}

// judgeReturn checks that a job returns to the queue only if it has not begun and never
// will.
func judgeReturn(s *simulation, old *entry, now *stored) error {
	if now.Status != app.Queued {
		return judgeFinished(s, old, now)
	}
	switch {
	case !old.Private.Claimed || old.Private.Worker == "" || old.Private.Stop || old.Status != app.Queued:
		return fmt.Errorf("a job is returned to the queue that is not in a worker, is running, or was stopped")
	case now.Private.Claimed || now.Private.Token != "" || now.Private.Worker != "" || now.Private.Lost != old.Private.Lost || now.Attempts != old.Attempts-1:
		return fmt.Errorf("a job is returned to the queue as %s of %+v", brief(&entry{stored: now}), now.Private)
	case s.machine.find(old.Private.Token) != nil:
		return fmt.Errorf("a job is returned to the queue after it began")
	case s.machine.mayBegin(s.attemptDir(old)):
		return fmt.Errorf("a job is returned to the queue that can still begin")
	}
	s.machine.flights.givenBack++
	return nil
}

// endingsInWorker returns the possible outcomes of a job that was in a worker and never
// began.
func (s *simulation) endingsInWorker(old *entry) (all []end) {
	if _, refused := s.machine.startsOf(old.Private.Token); refused {
		all = append(all, end{app.Failed, app.FailedCannotStart})
	}
	if old.Private.Stop || s.machine.lossesOf(s.workerDir(old)) >= mostLosses {
		all = append(all, lost(old))
	}
	return all
}

// mostLosses is the number of workers that must be lost in a row, without beginning a
// job, before the job counts as lost.
const mostLosses = 3

// needsSlot reports whether a claimed job without a task needs a slot for one.
func (s *simulation) needsSlot(e *entry) bool {
	if e.Private.Worker == "" {
		return true
	}
	_, refused := s.machine.startsOf(e.Private.Token)
	return !e.Private.Stop && !refused && s.machine.lossesOf(s.workerDir(e)) < mostLosses
}

// holders returns the claimed jobs for which uses returns true, but only one of the jobs
// that share a process.
func (s *simulation) holders(uses func(*entry) bool) (all []*entry) {
	seen := map[string]bool{}
	for _, e := range s.ledger.sorted(func(e *entry) bool { return e.Private.Claimed && uses(e) }) {
		p := e.Private.Worker
		if p == "" || !seen[p] {
			all = append(all, e)
		}
		seen[p] = true
	}
	return all
}

// judgeWorkersExited checks that nothing is left of workers once all jobs are finished.
// Remains of a crash are removed by the next cleanup.
func (s *simulation) judgeWorkersExited() {
	left := func() (names []string) {
		entries, err := os.ReadDir(s.workersDir())
		if err != nil && !os.IsNotExist(err) {
			s.faultf("the directory of the workers: %v", err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	s.pass(workerExitsWithin)
	if len(s.faults) == 0 && len(left()) > 0 {
		s.pass(time.Hour + workerExitsWithin)
	}
	if n := len(left()); n > 0 {
		s.faultf("%d worker directories remain", n)
	}
	for _, p := range s.machine.workers {
		if !p.gone {
			s.faultf("%s is idle, but still running", p.name)
		}
	}
}

// workerExitsWithin is the time within which an idle worker must exit.
const workerExitsWithin = 15 * time.Second
