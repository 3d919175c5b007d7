package runner

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
)

const (
	// callPatience bounds every call of an executor.
	callPatience = 30 * time.Second
	// remotePatience is the same for a cluster, where a call takes several
	// commands and each has its time.
	remotePatience = 2 * time.Minute
)

// watcher asks one executor how its tasks stand and hands the news to the
// attempts.
type watcher struct {
	executor app.Executor
	poll     Poll
	patience time.Duration // of one call
	log      zerolog.Logger
	nudge    chan struct{} // there is a new task, or one about to change

	mu    sync.Mutex
	tasks map[app.JobID]*watched
}

// watched is a task under watch.
type watched struct {
	task  app.Task
	news  chan app.TaskStatus // holds the latest
	since time.Time           // when it last changed
	due   time.Time           // when it is asked about next
	last  *app.TaskStatus
}

func newWatcher(e app.Executor, poll Poll, patience time.Duration, log zerolog.Logger) *watcher {
	return &watcher{
		executor: e,
		poll:     poll,
		patience: patience,
		log:      log.With().Str("executor", e.Name()).Logger(),
		nudge:    make(chan struct{}, 1),
		tasks:    map[app.JobID]*watched{},
	}
}

// add watches a task and gives the channel of its news, which holds only the
// latest. The first look is at once.
func (w *watcher) add(t app.Task) <-chan app.TaskStatus {
	now := time.Now()
	entry := &watched{task: t, news: make(chan app.TaskStatus, 1), since: now, due: now}
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
	case w.nudge <- struct{}{}:
	default:
	}
}

// run watches until ctx ends.
func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		entries, wait := w.due(time.Now())
		if len(entries) == 0 {
			w.rest(ctx, wait)
			continue
		}
		w.ask(ctx, entries)
	}
}

func (w *watcher) rest(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-w.nudge:
	case <-timer.C:
	}
}

// due gives the tasks to ask about now, or how long to wait for the first.
// Those whose time comes soon are asked about too: together is cheaper.
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

// ask gets the statuses of the tasks. Where the executor can't tell, nothing
// is known and nothing happens: it is asked again after the longest pause.
func (w *watcher) ask(ctx context.Context, entries []*watched) {
	tasks := make([]app.Task, len(entries))
	for i, entry := range entries {
		tasks[i] = entry.task
	}
	callCtx, cancel := context.WithTimeout(ctx, w.patience)
	statuses, err := w.executor.Status(callCtx, tasks)
	cancel()
	if ctx.Err() != nil {
		return
	}
	if err != nil || len(statuses) != len(tasks) {
		w.log.Warn().Err(err).Int("tasks", len(tasks)).Msg("the executor does not tell how its tasks stand; will ask again")
		w.put(entries, nil)
		return
	}
	w.put(entries, statuses)
}

// put hands out what was learned and sets when to ask again.
func (w *watcher) put(entries []*watched, statuses []app.TaskStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for i, entry := range entries {
		if statuses == nil {
			entry.due = now.Add(w.poll.Max)
			continue
		}
		w.deliver(entry, statuses[i], now)
		entry.due = now.Add(w.pause(entry, now))
	}
}

// deliver hands on what is new.
func (w *watcher) deliver(entry *watched, s app.TaskStatus, now time.Time) {
	if entry.last != nil && reflect.DeepEqual(*entry.last, s) {
		return
	}
	if entry.last != nil && entry.last.State != s.State {
		entry.since = now
	}
	entry.last = &s
	select {
	case <-entry.news: // older than this
	default:
	}
	entry.news <- s
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
