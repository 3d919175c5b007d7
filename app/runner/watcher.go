package runner

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
)

// watcher polls the tasks of one executor and delivers status updates to their attempts.
type watcher struct {
	executor app.Executor
	poll     Poll
	timeout  time.Duration // for one call
	log      zerolog.Logger
	woken    chan struct{} // signals a new task, or one about to change

	mu    sync.Mutex
	tasks map[app.JobID]*watched
}

// watched is a task being watched.
type watched struct {
	task  app.Task
	news  chan statusUpdate // holds only the latest
	since time.Time         // time of the last change
	due   time.Time         // time of the next poll
	last  *statusUpdate
}

// statusUpdate is a task's status as reported by the executor, or the fact that the
// executor does not respond.
type statusUpdate struct {
	app.TaskStatus
	unresponsive bool
	why          string // why the executor does not respond, as a suffix for a message; "" if unknown
}

func newWatcher(e app.Executor, poll Poll, timeout time.Duration, log zerolog.Logger) *watcher {
	return &watcher{
		executor: e,
		poll:     poll,
		timeout:  timeout,
		log:      log.With().Str("executor", e.Name()).Logger(),
		woken:    make(chan struct{}, 1),
		tasks:    map[app.JobID]*watched{},
	}
}

// watchTask starts watching a task and returns the channel of its status updates, which
// holds only the latest. The task is polled at once.
func (w *watcher) watchTask(t app.Task) <-chan statusUpdate {
	now := time.Now()
	entry := &watched{task: t, news: make(chan statusUpdate, 1), since: now, due: now}
	w.mu.Lock()
	w.tasks[t.Job] = entry
	w.mu.Unlock()
	w.wake()
	return entry.news
}

// remove stops watching a task.
func (w *watcher) remove(id app.JobID) {
	w.mu.Lock()
	delete(w.tasks, id)
	w.mu.Unlock()
}

// expect has the task polled soon, because it is about to change.
func (w *watcher) expect(id app.JobID) {
	w.mu.Lock()
	if entry := w.tasks[id]; entry != nil {
		entry.since = time.Now()
		entry.due = entry.since
	}
	w.mu.Unlock()
	w.wake()
}

func (w *watcher) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// run polls tasks until ctx ends.
func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		entries, wait := w.due(time.Now())
		if len(entries) > 0 {
			w.pollTasks(ctx, entries)
			continue
		}
		select {
		case <-ctx.Done():
		case <-w.woken:
		case <-time.After(wait):
		}
	}
}

// due returns the tasks to poll now, or how long to wait for the first. Tasks that are
// due soon are included: one call for all is cheaper.
func (w *watcher) due(now time.Time) ([]*watched, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := time.Hour
	var soon []*watched
	for _, entry := range w.tasks {
		left := entry.due.Sub(now)
		wait = min(wait, left)
		if left <= w.pause(entry, now)/2 {
			soon = append(soon, entry)
		}
	}
	if wait > 0 {
		return nil, wait
	}
	return soon, 0
}

func (w *watcher) pause(entry *watched, now time.Time) time.Duration {
	return min(max(now.Sub(entry.since)/10, w.poll.Min), w.poll.Max)
}

// pollTasks polls the tasks. If the executor does not respond, their status is unknown,
// and they are polled again after the longest pause.
func (w *watcher) pollTasks(ctx context.Context, entries []*watched) {
	tasks := make([]app.Task, len(entries))
	for i, entry := range entries {
		tasks[i] = entry.task
	}
	callCtx, cancel := context.WithTimeout(ctx, w.timeout)
	statuses, err := w.executor.Status(callCtx, tasks)
	cancel()
	if ctx.Err() != nil {
		return
	}
	known := err == nil && len(statuses) == len(tasks)
	if !known {
		w.log.Warn().Err(err).Int("tasks", len(tasks)).Msg("could not get task status from the executor; retrying")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for i, entry := range entries {
		if !known {
			entry.deliver(statusUpdate{unresponsive: true, why: unavailableSuffix(err)}, now)
			entry.due = now.Add(w.poll.Max)
			continue
		}
		entry.deliver(statusUpdate{TaskStatus: statuses[i]}, now)
		entry.due = now.Add(w.pause(entry, now))
	}
}

// deliver sends n unless it equals the last update.
func (w *watched) deliver(n statusUpdate, now time.Time) {
	if w.last != nil && reflect.DeepEqual(*w.last, n) {
		return
	}
	if w.last != nil && w.last.State != n.State {
		w.since = now
	}
	w.last = &n
	select {
	case <-w.news: // drop an older update
	default:
	}
	w.news <- n
}
