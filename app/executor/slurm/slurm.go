package slurm

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/fault"
)

// The parts of the shared folder.
const (
	attemptsDir    = "attempts"
	submissionsDir = "submissions"
	binDir         = "bin"
)

// Executor runs tasks as jobs of Slurm.
type Executor struct {
	options  Options
	slurm    *commands
	gatherer *gatherer
	canceler *canceler
	lists    lists
	program  program
	cluster  cluster
	nodes    nodes
	locks    locks
	looking  chan struct{} // holds a token while nobody looks at Slurm's jobs
	view     view          // of whoever has the token

	mu      sync.Mutex
	latest  map[string]record    // of each task by its token, as Slurm last said
	fresh   map[string]time.Time // when a name was submitted by this process
	refusal map[string]string    // why a name may not be submitted yet
	refused map[string]string    // why a name that was to be submitted again can't be
	again   map[string]bool      // names that are being submitted again
	hurried bool                 // something is about to change

	end    context.Context // ends when the executor is closed
	cancel context.CancelFunc
	parts  sync.WaitGroup
}

var _ app.Remote = (*Executor)(nil)

// New gives an Executor. It touches nothing yet, so a cluster that is down keeps
// no service from starting. It has to be closed.
func New(o Options) (*Executor, error) {
	o = o.withDefaults()
	if err := o.valid(); err != nil {
		return nil, err
	}
	e := &Executor{
		options: o,
		slurm:   newCommands(o),
		lists:   lists{dir: filepath.Join(o.SharedDir, submissionsDir), prefix: o.Prefix},
		program: program{from: o.Program, dir: filepath.Join(o.SharedDir, binDir)},
		looking: make(chan struct{}, 1),
		latest:  map[string]record{},
		fresh:   map[string]time.Time{},
		refusal: map[string]string{},
		refused: map[string]string{},
		again:   map[string]bool{},
	}
	e.cluster = cluster{slurm: e.slurm}
	e.looking <- struct{}{}
	e.view = view{pace: o.Poll, tracked: map[string]*tracked{}}
	e.end, e.cancel = context.WithCancel(context.Background())
	e.gatherer = newGatherer(e.submit, e.cluster.arraySize)
	e.canceler = newCanceler(e.cancelJobs)
	e.parts.Go(func() { e.gatherer.run(e.end) })
	e.parts.Go(func() { e.canceler.run(e.end) })
	e.parts.Go(func() { e.sweepNowAndThen(e.end) })
	e.parts.Go(func() { e.keepNodes(e.end) })
	return e, nil
}

// Close ends what the Executor does by itself, commands of Slurm included.
// Tasks run on; the next Executor finds them, also those whose submission was
// cut short.
func (e *Executor) Close() error {
	e.cancel()
	e.parts.Wait()
	return nil
}

// Name is slurm.
func (e *Executor) Name() string { return "slurm" }

// Capacity is not known: Slurm queues by itself.
func (e *Executor) Capacity() (app.Capacity, bool) { return app.Capacity{}, false }

// MaxTasks is how many tasks may be in Slurm at once.
func (e *Executor) MaxTasks() int { return e.options.MaxTasks }

// AttemptsDir is where the attempts' directories lie, seen by all nodes.
func (e *Executor) AttemptsDir() string { return filepath.Join(e.options.SharedDir, attemptsDir) }

// Program gives the path of this program on the nodes. The first call copies
// it there.
func (e *Executor) Program(ctx context.Context) (string, error) { return e.program.install(ctx) }

func (e *Executor) log(message string, fields ...any) { e.options.Log(message, fields...) }

// hurry says that Slurm's jobs are about to change.
func (e *Executor) hurry() {
	e.mu.Lock()
	e.hurried = true
	e.mu.Unlock()
}

// makeDirs makes the parts of the shared folder, once for each Executor. Should
// they vanish later, a file system is not mounted, and to make them again would
// hide it.
func makeDirs(shared string) error {
	for _, name := range []string{attemptsDir, submissionsDir, binDir} {
		if err := os.Mkdir(filepath.Join(shared, name), 0o700); err != nil && !os.IsExist(err) {
			return fault.Errorf(fault.Unavailable, "The folder that is shared with the cluster can't be used: %v", err)
		}
	}
	return nil
}
