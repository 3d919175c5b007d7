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
	// lonelyFor is how long a task waits for a second one.
	lonelyFor = 30 * time.Millisecond
	// streamFor is how long tasks wait for more of their kind where there are
	// several, or was one no longer ago than that.
	streamFor = 500 * time.Millisecond
	// gatheredFor is how long a task waits at most.
	gatheredFor = 10 * time.Second
)

// errClosed says that the service stops. Nothing of the task is in Slurm.
var errClosed = errors.New("the service is stopping")

// gatherer puts tasks that come at about the same time and ask for the same
// into one submission. One goroutine has the groups; each submission has one
// of its own.
type gatherer struct {
	submit func(context.Context, request, []app.Task) ([]app.Handle, error)
	most   func(context.Context) int // tasks in one submission

	arrivals chan *arrival
	groups   map[request]*group
	seen     map[request]time.Time // when the last one of a kind came
	submits  sync.WaitGroup
	gates    chan struct{}

	mu     sync.Mutex
	sealed map[string]bool // tokens of tasks whose submission is under way
}

// arrival is a task on its way.
type arrival struct {
	request request
	task    app.Task
	state   atomic.Int32
	done    chan struct{} // closed when handle and err are set
	handle  app.Handle
	err     error
}

// The states of an arrival: whoever changes the first one decides.
const (
	waiting int32 = iota
	sealed        // part of a submission
	withdrawn
)

type group struct {
	arrivals    []*arrival
	stream      bool
	first, last time.Time
}

func newGatherer(submit func(context.Context, request, []app.Task) ([]app.Handle, error), most func(context.Context) int) *gatherer {
	return &gatherer{
		submit: submit, most: most,
		arrivals: make(chan *arrival),
		groups:   map[request]*group{},
		seen:     map[request]time.Time{},
		gates:    make(chan struct{}, submitsAtOnce),
		sealed:   map[string]bool{},
	}
}

// add submits a task together with others. Where ctx ends while the submission
// is under way it gives false: it is not known what comes of it.
func (g *gatherer) add(ctx, end context.Context, r request, t app.Task) (h app.Handle, known bool, err error) {
	a := &arrival{request: r, task: t, done: make(chan struct{})}
	select {
	case g.arrivals <- a:
	case <-ctx.Done():
		return "", true, ctx.Err()
	case <-end.Done():
		return "", true, errClosed
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

// run gathers until ctx ends, and returns when no submission is under way.
func (g *gatherer) run(ctx context.Context) {
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

// join puts an arrival into its group, which leaves when it is full.
func (g *gatherer) join(ctx context.Context, a *arrival) {
	now := time.Now()
	w := g.groups[a.request]
	if w == nil {
		w = &group{first: now, stream: now.Sub(g.seen[a.request]) < streamFor}
		g.groups[a.request] = w
	}
	w.arrivals, w.last = append(w.arrivals, a), now
	w.stream = w.stream || len(w.arrivals) > 1
	g.seen[a.request] = now
	if len(w.arrivals) > 1 && len(w.arrivals) >= g.most(ctx) {
		g.send(ctx, a.request)
	}
}

// due is when a group leaves though it is not full.
func (w *group) due() time.Time {
	quiet := lonelyFor
	if w.stream {
		quiet = streamFor
	}
	due := w.last.Add(quiet)
	if latest := w.first.Add(gatheredFor); latest.Before(due) {
		return latest
	}
	return due
}

// next is how long there is nothing to do.
func (g *gatherer) next(now time.Time) time.Duration {
	wait := time.Hour
	for _, w := range g.groups {
		wait = min(wait, w.due().Sub(now))
	}
	return max(0, wait)
}

func (g *gatherer) release(ctx context.Context, now time.Time) {
	for r, w := range g.groups {
		if !now.Before(w.due()) {
			g.send(ctx, r)
		}
	}
	maps.DeleteFunc(g.seen, func(_ request, at time.Time) bool { return now.Sub(at) > streamFor })
}

// send submits a group, without those who no longer want it.
func (g *gatherer) send(ctx context.Context, r request) {
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
	err := errClosed
	if ctx.Err() == nil {
		handles, err = g.submit(ctx, r, tasks)
	}
	for i, a := range going {
		if a.err = err; err == nil {
			a.handle = handles[i]
		}
		close(a.done)
	}
}

// seal takes the arrivals that still wait.
func (g *gatherer) seal(arrivals []*arrival) (going []*arrival, tasks []app.Task) {
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

func (g *gatherer) unseal(tasks []app.Task) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range tasks {
		delete(g.sealed, t.Token)
	}
}

// underway reports whether the task is being submitted.
func (g *gatherer) underway(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sealed[token]
}

// refuse turns away whoever waits when the service stops.
func (g *gatherer) refuse() {
	for _, w := range g.groups {
		for _, a := range w.arrivals {
			if a.state.CompareAndSwap(waiting, sealed) {
				a.err = errClosed
				close(a.done)
			}
		}
	}
}
