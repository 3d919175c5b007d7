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
	"molrun/app/fault"
	"molrun/app/task"
)

// Status asks squeue once for all tasks, then sacct for those that squeue does
// not know, then looks at the files of each. Where squeue fails nothing is known
// of any task.
func (e *Executor) Status(ctx context.Context, tasks []app.Task) ([]app.TaskStatus, error) {
	all := make([]app.TaskStatus, len(tasks))
	if len(tasks) == 0 {
		return all, nil
	}
	if err := e.look(ctx); err != nil {
		return nil, err
	}
	defer e.lookAway()
	hurried, err := e.identify(tasks)
	if err == nil {
		err = e.mounted(tasks)
	}
	if err != nil {
		return nil, err
	}
	if err := e.refresh(ctx, hurried); err != nil {
		return nil, err
	}
	e.accountFor(ctx, tasks)
	for i, t := range tasks {
		if all[i], err = e.status(t, e.view.tracked[t.Token]); err != nil {
			all[i] = app.TaskStatus{State: app.TaskStarting, Reason: "the server can't look at the job's files: " + err.Error()}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return all, nil
}

// identify finds the rows of the tasks, and reports whether one of them is
// about to change.
func (e *Executor) identify(tasks []app.Task) (hurried bool, err error) {
	now := time.Now()
	for _, t := range tasks {
		k := e.view.track(t, now)
		if !k.found {
			if err := e.identifyOne(t, k); err != nil {
				return false, err
			}
		}
		hurried = hurried || e.soon(t, k)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return hurried || e.hurried, nil
}

// mounted looks whether the folder is there that submitted tasks had. Without it
// they would all seem to have left nothing.
func (e *Executor) mounted(tasks []app.Task) error {
	submitted := slices.ContainsFunc(tasks, func(t app.Task) bool { return e.view.tracked[t.Token].found })
	if _, err := os.Stat(e.AttemptsDir()); submitted && err != nil {
		return fault.Errorf(fault.Unavailable, "The folder that is shared with the cluster can't be reached: %v", err)
	}
	return nil
}

func (e *Executor) identifyOne(t app.Task, k *tracked) (err error) {
	if h, ok := readHandle(t.Handle); ok {
		k.row, k.found = h.row, true
		return nil
	}
	if k.row, k.found, err = e.lists.find(t.Token); err != nil {
		return fmt.Errorf("look for task %s/%d: %w", t.Job, t.Attempt, err)
	}
	return nil
}

// soon reports whether the task was just submitted, or has just ended as its
// files tell.
func (e *Executor) soon(t app.Task, k *tracked) bool {
	if !k.found {
		return false
	}
	e.mu.Lock()
	r := e.latest[t.Token]
	submitted := e.fresh[k.row.Name]
	e.mu.Unlock()
	switch states[r.state] {
	case running:
		return task.Exists(t.Dir, task.OutcomeFile)
	case closing:
		return true
	}
	return time.Since(submitted) < 2*e.options.Poll
}

// accountFor asks sacct for tasks that squeue does not know, and for who
// cancelled tasks whose end we did not ask for.
func (e *Executor) accountFor(ctx context.Context, tasks []app.Task) {
	names := map[string]bool{}
	since := time.Now()
	for _, t := range tasks {
		k := e.view.tracked[t.Token]
		if k.found && !e.justSubmitted(k.row.Name) && e.wantsAccount(t, k) {
			names[k.row.Name] = true
			if at, ok := e.lists.written(k.row.Name); ok && at.Before(since) {
				since = at
			}
		}
	}
	e.account(ctx, since, names)
}

func (e *Executor) wantsAccount(t app.Task, k *tracked) bool {
	records := e.view.records[k.row]
	if len(records) == 0 {
		return true
	}
	r := records[0]
	return states[r.state] == cancelled && r.by == "" && !task.StopAsked(t.Dir)
}

// justSubmitted reports whether the name was submitted after squeue was asked.
func (e *Executor) justSubmitted(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fresh[name].After(e.view.at)
}

func (e *Executor) status(t app.Task, k *tracked) (app.TaskStatus, error) {
	if !k.found {
		return e.unsubmitted(t)
	}
	if why := e.refusedAgain(k.row.Name); why != "" {
		return app.TaskStatus{State: app.TaskEnded, Outcome: made(app.CauseCannotStart, why, record{}, k)}, nil
	}
	r, known, err := e.choose(t, k)
	if err != nil {
		return app.TaskStatus{}, err
	}
	if !known {
		return e.absent(t, k)
	}
	k.missing = 0
	e.remember(t.Token, r)
	switch state := states[r.state]; {
	case state == queued:
		return e.waiting(t, k, r)
	case state == unknown && k.startedAt.IsZero():
		return app.TaskStatus{State: app.TaskStarting, Reason: fmt.Sprintf("job %s is %s in Slurm", r.target(), r.state)}, nil
	case state.over():
		return e.over(t, k, r)
	}
	return e.alive(t, k, r)
}

// remember keeps what Slurm said of a task for whoever wants to end it.
func (e *Executor) remember(token string, r record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if states[r.state].over() {
		delete(e.latest, token)
		return
	}
	e.latest[token] = r
}

// unsubmitted tells of a task for which sbatch was never called.
func (e *Executor) unsubmitted(t app.Task) (app.TaskStatus, error) {
	if e.gatherer.underway(t.Token) {
		return app.TaskStatus{State: app.TaskStarting, Reason: "it is being submitted to Slurm"}, nil
	}
	o, err := readOutcome(t.Dir)
	if o != nil || err != nil {
		return ended(o), err
	}
	return app.TaskStatus{State: app.TaskLost, Reason: "it was not submitted to Slurm"}, nil
}

// waiting tells of a task that waits in Slurm. One that waits for what will not
// come is given up after a while.
func (e *Executor) waiting(t app.Task, k *tracked, r record) (app.TaskStatus, error) {
	s := app.TaskStatus{State: app.TaskStarting, Reason: waits(r)}
	if hopeless[r.reason] == "" {
		k.hopeless = time.Time{}
		return s, nil
	}
	if k.hopeless.IsZero() {
		k.hopeless = time.Now()
	}
	if time.Since(k.hopeless) < e.options.HoldGrace {
		return s, nil
	}
	return s, e.giveUp(t, r)
}

// alive tells of a task that Slurm says is running. It counts as started when
// its own process says so.
func (e *Executor) alive(t app.Task, k *tracked, r record) (app.TaskStatus, error) {
	if k.startedAt.IsZero() {
		run, err := task.ReadRun(t.Dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return app.TaskStatus{State: app.TaskStarting, Reason: starts(r)}, nil
		case errors.Is(err, task.ErrUnreadable):
			k.startedAt = r.started
		case err != nil:
			return app.TaskStatus{}, err
		default:
			k.startedAt = run.StartedAt
			e.locks.look(t.Dir, run)
		}
	}
	s := app.TaskStatus{State: app.TaskRunning, StartedAt: k.startedAt}
	if p, err := task.ReadProgress(t.Dir); err == nil {
		s.Progress = p // which may be absent: programs need not tell any
	}
	return s, nil
}

// starts says where a task starts; Slurm may have forgotten it.
func starts(r record) string {
	if r.node == "" {
		return "it starts"
	}
	return "it starts on node " + r.node
}

// readOutcome gives nil where there is none that makes sense.
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
