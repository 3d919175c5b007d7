package slurm

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
	// loneWait is how long a single task waits for a second one.
	loneWait = 30 * time.Millisecond
	// streamWait is how long tasks wait for another one with the same request if there
	// are several already, or if one arrived within that time.
	streamWait = 500 * time.Millisecond
	// maxGatherWait is the longest a task waits.
	maxGatherWait = 10 * time.Second
)

// errStopping means that the service is stopping and the task was not submitted.
var errStopping = errors.New("the service is stopping")

// submitFunc submits tasks with the same request and returns, in order, the handles of
// those submitted. An error applies to each of the others.
type submitFunc func(context.Context, request, []app.Task) ([]app.Handle, error)

// gatherer combines tasks with the same request that arrive at about the same time into
// one submission. One goroutine owns the groups; each submission has its own.
type gatherer struct {
	submit submitFunc
	most   func(context.Context) int // maximum number of tasks in one submission

	arrivals chan *arrival
	groups   map[request]*taskGroup
	seen     map[request]time.Time // when the last task with a request arrived
	submits  sync.WaitGroup
	gates    chan struct{}

	mu     sync.Mutex
	sealed map[string]bool // tokens of tasks being submitted
}

// newGatherer returns a gatherer that runs at most atOnce submissions concurrently, each
// of at most as many tasks as most returns.
func newGatherer(submit submitFunc, most func(context.Context) int, atOnce int) *gatherer {
	return &gatherer{
		submit: submit, most: most,
		arrivals: make(chan *arrival),
		groups:   map[request]*taskGroup{},
		seen:     map[request]time.Time{},
		gates:    make(chan struct{}, atOnce),
		sealed:   map[string]bool{},
	}
}

// arrival is a task waiting to be submitted.
type arrival struct {
	request request
	task    app.Task
	state   atomic.Int32
	done    chan struct{} // closed once handle and err are set
	handle  app.Handle
	err     error
}

// The states of an arrival; the first change wins.
const (
	arrivalWaiting int32 = iota
	arrivalSealed        // part of a submission
	arrivalWithdrawn
)

type taskGroup struct {
	arrivals    []*arrival
	stream      bool
	first, last time.Time
}

// SubmitTogether submits a task together with others. known is false if ctx ends during
// the submission, so that its result is unknown. end must end together with Run.
func (g *gatherer) SubmitTogether(ctx, end context.Context, r request, t app.Task) (h app.Handle, known bool, err error) {
	a := &arrival{request: r, task: t, done: make(chan struct{})}
	select {
	case g.arrivals <- a:
	case <-ctx.Done():
		return "", true, ctx.Err()
	case <-end.Done():
		return "", true, errStopping
	}
	select {
	case <-a.done:
		return a.handle, true, a.err
	case <-ctx.Done():
	}
	if a.state.CompareAndSwap(arrivalWaiting, arrivalWithdrawn) {
		return "", true, ctx.Err()
	}
	return "", false, nil
}

// Run collects tasks until ctx ends, and returns after the last submission.
func (g *gatherer) Run(ctx context.Context) {
	defer g.submits.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(g.untilDue(time.Now()))
		select {
		case a := <-g.arrivals:
			g.addArrival(ctx, a)
		case <-timer.C:
		case <-ctx.Done():
			g.rejectWaiting()
			return
		}
		g.release(ctx, time.Now())
	}
}

// addArrival adds an arrival to its group, which is submitted when it is full.
func (g *gatherer) addArrival(ctx context.Context, a *arrival) {
	now := time.Now()
	w := g.groups[a.request]
	if w == nil {
		w = &taskGroup{first: now, stream: now.Sub(g.seen[a.request]) < streamWait}
		g.groups[a.request] = w
	}
	w.arrivals, w.last = append(w.arrivals, a), now
	w.stream = w.stream || len(w.arrivals) > 1
	g.seen[a.request] = now
	if len(w.arrivals) > 1 && len(w.arrivals) >= g.most(ctx) {
		g.submitGroup(ctx, a.request)
	}
}

// due returns when a group is submitted even if it is not full.
func (w *taskGroup) due() time.Time {
	quiet := loneWait
	if w.stream {
		quiet = streamWait
	}
	due := w.last.Add(quiet)
	if latest := w.first.Add(maxGatherWait); latest.Before(due) {
		return latest
	}
	return due
}

// untilDue returns the time until the next group is due.
func (g *gatherer) untilDue(now time.Time) time.Duration {
	wait := time.Hour
	for _, w := range g.groups {
		wait = min(wait, w.due().Sub(now))
	}
	return max(0, wait)
}

func (g *gatherer) release(ctx context.Context, now time.Time) {
	for r, w := range g.groups {
		if !now.Before(w.due()) {
			g.submitGroup(ctx, r)
		}
	}
	maps.DeleteFunc(g.seen, func(_ request, at time.Time) bool { return now.Sub(at) > streamWait })
}

// submitGroup submits a group in chunks.
func (g *gatherer) submitGroup(ctx context.Context, r request) {
	arrivals := g.groups[r].arrivals
	delete(g.groups, r)
	for piece := range slices.Chunk(arrivals, g.most(ctx)) {
		g.submits.Go(func() { g.sendPiece(ctx, r, piece) })
	}
}

func (g *gatherer) sendPiece(ctx context.Context, r request, arrivals []*arrival) {
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
	err := errStopping
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

// seal takes the arrivals that are still waiting; the others have been withdrawn.
func (g *gatherer) seal(arrivals []*arrival) (going []*arrival, tasks []app.Task) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range arrivals {
		if a.state.CompareAndSwap(arrivalWaiting, arrivalSealed) {
			going, tasks = append(going, a), append(tasks, a.task)
			g.sealed[a.task.Token] = true
		}
	}
	return going, tasks
}

func (g *gatherer) unseal(tasks []app.Task) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range tasks {
		delete(g.sealed, t.Token)
	}
}

// Underway reports whether the task is being submitted.
func (g *gatherer) Underway(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sealed[token]
}

// rejectWaiting fails the waiting tasks when the service stops.
func (g *gatherer) rejectWaiting() {
	for _, w := range g.groups {
		for _, a := range w.arrivals {
			if a.state.CompareAndSwap(arrivalWaiting, arrivalSealed) {
				a.err = errStopping
				close(a.done)
			}
		}
	}
}
