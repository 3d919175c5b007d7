package slurm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/task"
)

// Status calls squeue once for all tasks, then sacct for those that squeue does not list,
// then reads the files of each. If squeue fails, no task's status is known. For jobs in a
// worker, it queries the worker's process.
func (e *Executor) Status(ctx context.Context, tasks []app.Task) ([]app.TaskStatus, error) {
	all := make([]app.TaskStatus, len(tasks))
	if len(tasks) == 0 {
		return all, nil
	}
	asked, place := make([]app.Task, 0, len(tasks)), make(map[string]int, len(tasks)) // index by directory
	for _, t := range tasks {
		if runsInWorker(t) {
			t = processOf(t)
		}
		if _, ok := place[t.Dir]; !ok {
			place[t.Dir], asked = len(asked), append(asked, t)
		}
	}
	found, err := e.statuses(ctx, asked)
	if err != nil {
		return nil, err
	}
	for i, t := range tasks {
		if !runsInWorker(t) {
			all[i] = found[place[t.Dir]]
			continue
		}
		if all[i], err = e.statusInWorker(t, found[place[t.Worker]]); err != nil {
			all[i] = unreadable(err)
		}
	}
	return all, nil
}

func unreadable(err error) app.TaskStatus {
	return app.TaskStatus{State: app.TaskStarting, Reason: "could not read the job's files: " + err.Error()}
}

func (e *Executor) statuses(ctx context.Context, tasks []app.Task) ([]app.TaskStatus, error) {
	all := make([]app.TaskStatus, len(tasks))
	select {
	case <-e.looking:
		defer func() { e.looking <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	hurried, err := e.identify(tasks)
	if err == nil {
		err = e.mounted(tasks)
	}
	if err != nil {
		return nil, err
	}
	if err := e.snapshot.refresh(ctx, e.submissions, hurried); err != nil {
		return nil, err
	}
	e.latest.forget()
	e.accountFor(ctx, tasks)
	for i, t := range tasks {
		k := e.snapshot.tracked[t.Token]
		if all[i], err = e.status(t, k); err != nil {
			all[i] = unreadable(err)
		}
		all[i].Cluster = k.cluster
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return all, nil
}

// identify finds the rows of the tasks and reports whether one of them is about to
// change.
func (e *Executor) identify(tasks []app.Task) (hurried bool, err error) {
	now := time.Now()
	for _, t := range tasks {
		k := e.snapshot.tracked.track(t, now)
		if !k.found {
			if err := e.identifyOne(t, k); err != nil {
				return false, err
			}
		}
		hurried = hurried || e.soon(t, k)
	}
	return hurried || e.submissions.hurryPending(), nil
}

// mounted checks that the directory of submitted tasks exists. Without it, all tasks
// would seem to have left nothing.
func (e *Executor) mounted(tasks []app.Task) error {
	submitted := slices.ContainsFunc(tasks, func(t app.Task) bool { return e.snapshot.tracked[t.Token].found })
	if _, err := os.Stat(e.AttemptsDir()); submitted && err != nil {
		return fault.Errorf(fault.Unavailable, "The folder shared with the cluster is not available: %v", err)
	}
	return nil
}

func (e *Executor) identifyOne(t app.Task, k *tracked) (err error) {
	if h, ok := readHandle(t.Handle); ok {
		k.row, k.found = h.TaskID, true
		return nil
	}
	if k.row, k.found, err = e.lists.findToken(t.Token); err != nil {
		return fault.Errorf(fault.Unavailable, "The folder shared with the cluster is not readable: %v", err)
	}
	return nil
}

// soon reports whether the task was just submitted, or its files show that it has just
// ended.
func (e *Executor) soon(t app.Task, k *tracked) bool {
	if !k.found {
		return false
	}
	r, _ := e.latest.of(t.Token)
	switch r.Kind() {
	case kindRunning:
		return task.Exists(t.Dir, task.OutcomeFile) || e.workerGone(t)
	case kindClosing:
		return true
	}
	return time.Since(e.submissions.lastSubmitted(k.row.Name)) < 2*e.options.Poll
}

// accountFor queries sacct for tasks that squeue does not list, and for who canceled
// tasks that we did not stop.
func (e *Executor) accountFor(ctx context.Context, tasks []app.Task) {
	names := map[string]bool{}
	since := time.Now()
	for _, t := range tasks {
		k := e.snapshot.tracked[t.Token]
		if k.found && !e.justSubmitted(k.row.Name) && e.wantsAccount(t, k) {
			names[k.row.Name] = true
			if at, ok := e.lists.written(k.row.Name); ok && at.Before(since) {
				since = at
			}
		}
	}
	e.snapshot.account(ctx, since, names)
}

func (e *Executor) wantsAccount(t app.Task, k *tracked) bool {
	records := e.snapshot.records[k.row]
	if len(records) == 0 {
		return true
	}
	r := records[0]
	return r.Kind() == kindCancelled && r.By == "" && !task.StopRequested(t.Dir)
}

// justSubmitted reports whether the name was submitted after squeue was last called.
func (e *Executor) justSubmitted(name string) bool {
	return e.submissions.lastSubmitted(name).After(e.snapshot.at)
}

func (e *Executor) status(t app.Task, k *tracked) (app.TaskStatus, error) {
	if !k.found {
		return e.unsubmitted(t)
	}
	if why := e.submissions.whyRefused(k.row.Name); why != "" {
		return app.TaskStatus{State: app.TaskEnded, Outcome: newOutcome(app.CauseCannotStart, why, jobRecord{}, k)}, nil
	}
	r, known, err := e.choose(t, k)
	if err != nil {
		return app.TaskStatus{}, err
	}
	if !known {
		return e.absent(t, k)
	}
	k.missing = 0
	k.cluster = app.ClusterJob{Job: r.Target(), Node: r.Node, Partition: r.Partition}
	e.latest.put(t.Token, r, e.snapshot.at)
	switch state := r.Kind(); {
	case state == kindQueued:
		return e.waiting(t, k, r)
	case state == kindUnknown && k.startedAt.IsZero():
		return app.TaskStatus{State: app.TaskStarting, Reason: fmt.Sprintf("job %s is %s in Slurm", r.Target(), r.State)}, nil
	case state.Over():
		return e.over(t, k, r)
	}
	return e.alive(t, k, r)
}

// unsubmitted returns the status of a task for which sbatch was never called.
func (e *Executor) unsubmitted(t app.Task) (app.TaskStatus, error) {
	if e.gatherer.Underway(t.Token) {
		return app.TaskStatus{State: app.TaskStarting, Reason: "it is being submitted to Slurm"}, nil
	}
	o, err := readOutcome(t.Dir)
	if o != nil || err != nil {
		return ended(o), err
	}
	return app.TaskStatus{State: app.TaskLost, Reason: "it was not submitted to Slurm"}, nil
}

// waiting returns the status of a task queued in Slurm. A task whose wait reason does not
// resolve on its own is abandoned after a while.
func (e *Executor) waiting(t app.Task, k *tracked, r jobRecord) (app.TaskStatus, error) {
	s := app.TaskStatus{State: app.TaskStarting, Reason: waitReason(r)}
	if permanentReasons[r.Reason] == "" {
		k.hopeless = time.Time{}
		return s, nil
	}
	if k.hopeless.IsZero() {
		k.hopeless = time.Now()
	}
	if time.Since(k.hopeless) < e.options.HoldGrace {
		return s, nil
	}
	return s, e.abandon(t, r)
}

// alive returns the status of a task that is running according to Slurm. It counts as
// started once its own process reports so.
func (e *Executor) alive(t app.Task, k *tracked, r jobRecord) (app.TaskStatus, error) {
	if k.startedAt.IsZero() {
		run, err := task.ReadRun(t.Dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return app.TaskStatus{State: app.TaskStarting, Reason: starts(r)}, nil
		case errors.Is(err, task.ErrUnreadable):
			k.startedAt = r.Started
		case err != nil:
			return app.TaskStatus{}, err
		default:
			k.startedAt = run.StartedAt
			e.locks.learn(t.Dir, run)
		}
	}
	s := app.TaskStatus{State: app.TaskRunning, StartedAt: k.startedAt}
	if p, err := task.ReadProgress(t.Dir); err == nil {
		s.Progress = p // can be nil: programs are not required to report any
	}
	return s, nil
}

// starts says where a task is starting; Slurm may not know the node yet.
func starts(r jobRecord) string {
	if r.Node == "" {
		return "it starts"
	}
	return "starting on node " + r.Node
}

// readOutcome returns nil if there is no readable outcome.
func readOutcome(dir string) (*app.Outcome, error) {
	o, err := task.ReadOutcome(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, task.ErrUnreadable) {
		return nil, nil
	}
	return o, err
}

func ended(o *app.Outcome) app.TaskStatus {
	if o == nil {
		return app.TaskStatus{}
	}
	return app.TaskStatus{State: app.TaskEnded, StartedAt: o.StartedAt, Outcome: o}
}
