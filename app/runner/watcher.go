package runner

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
)

// watcher polls the tasks of one executor and hands the news to their attempts.
type watcher struct {
	executor app.Executor
	poll     Poll
	timeout  time.Duration // of one call
	log      zerolog.Logger
	woken    chan struct{} // there is a new task, or one about to change

	mu    sync.Mutex
	tasks map[app.JobID]*watched
}

// watched is a task under watch.
type watched struct {
	task  app.Task
	news  chan news // holds the latest
	since time.Time // when it last changed
	due   time.Time // when it is polled next
	last  *news
}

// news is what the executor says of a task, or that it does not answer.
type news struct {
	app.TaskStatus
	silent bool
	why    string // it is silent, to be appended; "": unknown
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

// watchTask watches a task and returns the channel of its news, which holds only the
// latest. The task is polled at once.
func (w *watcher) watchTask(t app.Task) <-chan news {
	now := time.Now()
	entry := &watched{task: t, news: make(chan news, 1), since: now, due: now}
	w.mu.Lock()
	w.tasks[t.Job] = entry
	w.mu.Unlock()
	w.wake()
	return entry.news
}

// remove ends the watch.
func (w *watcher) remove(id app.JobID) {
	w.mu.Lock()
	delete(w.tasks, id)
	w.mu.Unlock()
}

// expect says that the task is about to change.
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

// run polls until ctx ends.
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

// due returns the tasks to poll now, or how long to wait for the first. Tasks
// that are due soon are polled too: one call for all is cheaper.
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

// pollTasks polls the tasks. If the executor can't answer, nothing is known but that: it
// is asked again after the longest pause.
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
			entry.deliver(news{silent: true, why: said(err)}, now)
			entry.due = now.Add(w.poll.Max)
			continue
		}
		entry.deliver(news{TaskStatus: statuses[i]}, now)
		entry.due = now.Add(w.pause(entry, now))
	}
}

// deliver hands on what is new.
func (w *watched) deliver(n news, now time.Time) {
	if w.last != nil && reflect.DeepEqual(*w.last, n) {
		return
	}
	if w.last != nil && w.last.State != n.State {
		w.since = now
	}
	w.last = &n
	select {
	case <-w.news: // older than this
	default:
	}
	w.news <- n
}
