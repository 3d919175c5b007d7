package slurm

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/task"
)

// Executor runs tasks as Slurm jobs.
type Executor struct {
	options     Options
	client      *client
	submitter   *submitter
	gatherer    *gatherer
	canceler    *canceler
	lists       *lists
	program     *program
	submissions *submissions
	nodes       *nodes
	locks       locks
	folder      health
	latest      latest

	looking  chan struct{} // holds a token while no Status runs
	snapshot snapshot      // owned by the holder of the token

	end    context.Context // ends when the executor is closed
	cancel context.CancelFunc
	parts  sync.WaitGroup
}

var _ app.Remote = (*Executor)(nil)

// New returns an Executor, which must be closed. It does not contact the cluster, so a
// service starts even if the cluster is down.
func New(o Options) (*Executor, error) {
	o = o.withDefaults()
	if err := o.valid(); err != nil {
		return nil, err
	}
	c := newClient(o)
	e := &Executor{
		options:     o,
		client:      c,
		canceler:    newCanceler(),
		lists:       &lists{dir: filepath.Join(o.SharedDir, submissionsDir), prefix: o.Prefix},
		program:     &program{from: o.Program, dir: filepath.Join(o.SharedDir, binDir)},
		submissions: newSubmissions(),
		nodes:       &nodes{client: c, margin: o.margin()},
		latest:      latest{ttl: 2 * maxSlowdown * o.Poll, records: map[string]seenRecord{}},
		looking:     make(chan struct{}, 1),
		snapshot:    snapshot{client: c, options: o, pace: o.Poll},
	}
	e.snapshot.lists = e.lists
	e.looking <- struct{}{}
	e.submitter = &submitter{
		options: o, client: c, lists: e.lists, program: e.program, submissions: e.submissions, nodes: e.nodes,
	}
	e.gatherer = newGatherer(e.submitter.submit, c.ArraySize, submitsAtOnce)
	e.end, e.cancel = context.WithCancel(context.Background())
	e.parts.Go(func() { e.gatherer.Run(e.end) })
	e.parts.Go(func() { e.canceler.cancelUntilDone(e.end, e.cancelJobs) })
	e.parts.Go(func() { e.nodes.keepCurrent(e.end) })
	e.parts.Go(func() { e.cleanUpRegularly(e.end) })
	e.parts.Go(func() { e.watchFolder(e.end) })
	return e, nil
}

// Start submits the task, together with others that arrive now with the same request. It
// is idempotent: a repeated call finds the first submission.
func (e *Executor) Start(ctx context.Context, t app.Task) (app.Handle, error) {
	h, err := e.submit(ctx, t)
	if err != nil {
		return "", fmt.Errorf("start task %s/%d: %w", t.Job, t.Attempt, err)
	}
	return h, nil
}

func (e *Executor) submit(ctx context.Context, t app.Task) (app.Handle, error) {
	r, submitted, err := e.lists.findToken(t.Token)
	switch {
	case err != nil:
		return "", fault.Errorf(fault.Unavailable, "The folder shared with the cluster is not readable: %v", err)
	case submitted:
		return numbered(r, e.lists.number(r.Name)).encode(), nil
	case task.Exists(t.Dir, task.RunFile) || task.Exists(t.Dir, task.OutcomeFile):
		return "", nil // it has run
	}
	asked, err := e.submitter.requestOf(ctx, t)
	if err != nil {
		return "", err
	}
	h, known, err := e.gatherer.SubmitTogether(ctx, e.end, asked, t)
	if known {
		return h, err
	}
	// The submission continues, and may have written its list already.
	if r, submitted, _ := e.lists.findToken(t.Token); submitted {
		return numbered(r, "").encode(), nil
	}
	return "", nil
}

// Close ends the background work of the Executor, including Slurm commands. Tasks
// continue; the next Executor finds them, including those whose submission was
// interrupted.
func (e *Executor) Close() error {
	e.cancel()
	e.parts.Wait()
	return nil
}

// Name returns "slurm".
func (e *Executor) Name() string { return "slurm" }

// Capacity returns false: Slurm has its own queue.
func (e *Executor) Capacity() (app.Capacity, bool) { return app.Capacity{}, false }

// MaxTasks returns the maximum number of tasks in Slurm at once.
func (e *Executor) MaxTasks() int { return e.options.MaxTasks }

// AttemptsDir returns the parent of the attempt directories, which is visible to all
// nodes.
func (e *Executor) AttemptsDir() string { return filepath.Join(e.options.SharedDir, attemptsDir) }

// Program returns the path of this program on the nodes. The first call copies it there.
func (e *Executor) Program(ctx context.Context) (string, error) { return e.program.install(ctx) }

// Largest returns the maximum of each quantity that the nodes of a placement's partition
// offer to a job, and the longest run time there. It returns false if that is unknown, as
// just after the start and while the controller is down. It does not block.
func (e *Executor) Largest(p placement.Placement) (placement.Node, bool) {
	return e.nodes.largest(p.Partition)
}

// Missing returns what a placement names but the cluster does not have, such as "no
// partition gpu"; "" if nothing is known to be missing. It does not block.
func (e *Executor) Missing(p placement.Placement) string { return e.nodes.missing(p.Partition) }

// Answers returns why the controller did not respond to the last query, which was at most
// a minute ago, nil if it did, and the time of the last change; zero before the first
// result.
func (e *Executor) Answers() (since time.Time, err error) { return e.client.Answers() }
