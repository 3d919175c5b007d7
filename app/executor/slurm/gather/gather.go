// Package gather puts tasks that come at about the same time and ask for the
// same into one submission.
package gather

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"molrun/app"
)

const (
	// loneWait is how long a task waits for a second one.
	loneWait = 30 * time.Millisecond
	// streamWait is how long tasks wait for another of their kind, if there are
	// several, or one came that recently.
	streamWait = 500 * time.Millisecond
	// maxWait is how long a task waits at most.
	maxWait = 10 * time.Second
)

// ErrClosed says that the service is stopping. The task was not submitted.
var ErrClosed = errors.New("the service is stopping")

// Submit submits tasks with the same request and returns the handles of as many as
// were submitted, in order. An error is that of each of the others.
type Submit[R comparable] func(context.Context, R, []app.Task) ([]app.Handle, error)

// Gatherer puts tasks that come at about the same time with the same request
// into one submission. One goroutine has the groups; each submission has its
// own.
type Gatherer[R comparable] struct {
	submit Submit[R]
	most   func(context.Context) int // tasks in one submission

	arrivals chan *arrival[R]
	groups   map[R]*group[R]
	seen     map[R]time.Time // when the last task with a request came
	submits  sync.WaitGroup
	gates    chan struct{}

	mu     sync.Mutex
	sealed map[string]bool // tokens of tasks that are being submitted
}

// New returns a Gatherer that makes so many submissions at once, each of as many
// tasks as most allows.
func New[R comparable](submit Submit[R], most func(context.Context) int, atOnce int) *Gatherer[R] {
	return &Gatherer[R]{
		submit: submit, most: most,
		arrivals: make(chan *arrival[R]),
		groups:   map[R]*group[R]{},
		seen:     map[R]time.Time{},
		gates:    make(chan struct{}, atOnce),
		sealed:   map[string]bool{},
	}
}

// arrival is a task on its way.
type arrival[R comparable] struct {
	request R
	task    app.Task
	state   atomic.Int32
	done    chan struct{} // closed once handle and err are set
	handle  app.Handle
	err     error
}

// The states of an arrival: the first change wins.
const (
	waiting int32 = iota
	sealed        // part of a submission
	withdrawn
)

type group[R comparable] struct {
	arrivals    []*arrival[R]
	stream      bool
	first, last time.Time
}

// Add submits a task together with others. known is false if ctx ends during the
// submission, whose result is then unknown. end ends with Run.
func (g *Gatherer[R]) Add(ctx, end context.Context, r R, t app.Task) (h app.Handle, known bool, err error) {
	a := &arrival[R]{request: r, task: t, done: make(chan struct{})}
	select {
	case g.arrivals <- a:
	case <-ctx.Done():
		return "", true, ctx.Err()
	case <-end.Done():
		return "", true, ErrClosed
	}
	select {
	case <-a.done:
		return a.handle, true, a.err
	case <-ctx.Done():
	}
	if a.state.CompareAndSwap(waiting, withdrawn) {
		return "", true, ctx.Err()
	}
	return "", false, nil
}

// Run gathers until ctx ends, and returns after the last submission.
func (g *Gatherer[R]) Run(ctx context.Context) {
	defer g.submits.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(g.next(time.Now()))
		select {
		case a := <-g.arrivals:
			g.join(ctx, a)
		case <-timer.C:
		case <-ctx.Done():
			g.refuse()
			return
		}
		g.release(ctx, time.Now())
	}
}

// join adds an arrival to its group, which is sent when it is full.
func (g *Gatherer[R]) join(ctx context.Context, a *arrival[R]) {
	now := time.Now()
	w := g.groups[a.request]
	if w == nil {
		w = &group[R]{first: now, stream: now.Sub(g.seen[a.request]) < streamWait}
		g.groups[a.request] = w
	}
	w.arrivals, w.last = append(w.arrivals, a), now
	w.stream = w.stream || len(w.arrivals) > 1
	g.seen[a.request] = now
	if len(w.arrivals) > 1 && len(w.arrivals) >= g.most(ctx) {
		g.send(ctx, a.request)
	}
}

// due is when a group is sent though it is not full.
func (w *group[R]) due() time.Time {
	quiet := loneWait
	if w.stream {
		quiet = streamWait
	}
	due := w.last.Add(quiet)
	if latest := w.first.Add(maxWait); latest.Before(due) {
		return latest
	}
	return due
}

// next is how long until the next group is due.
func (g *Gatherer[R]) next(now time.Time) time.Duration {
	wait := time.Hour
	for _, w := range g.groups {
		wait = min(wait, w.due().Sub(now))
	}
	return max(0, wait)
}

func (g *Gatherer[R]) release(ctx context.Context, now time.Time) {
	for r, w := range g.groups {
		if !now.Before(w.due()) {
			g.send(ctx, r)
		}
	}
	maps.DeleteFunc(g.seen, func(_ R, at time.Time) bool { return now.Sub(at) > streamWait })
}

// send submits a group in pieces.
func (g *Gatherer[R]) send(ctx context.Context, r R) {
	arrivals := g.groups[r].arrivals
	delete(g.groups, r)
	for piece := range slices.Chunk(arrivals, g.most(ctx)) {
		g.submits.Go(func() { g.sendPiece(ctx, r, piece) })
	}
}

func (g *Gatherer[R]) sendPiece(ctx context.Context, r R, arrivals []*arrival[R]) {
	select {
	case g.gates <- struct{}{}:
		defer func() { <-g.gates }()
	case <-ctx.Done():
	}
	going, tasks := g.seal(arrivals)
	if len(going) == 0 {
		return
	}
	defer g.unseal(tasks)
	var handles []app.Handle
	err := ErrClosed
	if ctx.Err() == nil {
		handles, err = g.submit(ctx, r, tasks)
	}
	for i, a := range going {
		if i < len(handles) {
			a.handle = handles[i]
		} else {
			a.err = err
		}
		close(a.done)
	}
}

// seal takes the arrivals that still wait; the others have been withdrawn.
func (g *Gatherer[R]) seal(arrivals []*arrival[R]) (going []*arrival[R], tasks []app.Task) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range arrivals {
		if a.state.CompareAndSwap(waiting, sealed) {
			going, tasks = append(going, a), append(tasks, a.task)
			g.sealed[a.task.Token] = true
		}
	}
	return going, tasks
}

func (g *Gatherer[R]) unseal(tasks []app.Task) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range tasks {
		delete(g.sealed, t.Token)
	}
}

// Underway reports whether the task is being submitted.
func (g *Gatherer[R]) Underway(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sealed[token]
}

// refuse turns away the waiting tasks when the service stops.
func (g *Gatherer[R]) refuse() {
	for _, w := range g.groups {
		for _, a := range w.arrivals {
			if a.state.CompareAndSwap(waiting, sealed) {
				a.err = ErrClosed
				close(a.done)
			}
		}
	}
}
