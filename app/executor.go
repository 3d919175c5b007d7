package app

import (
	"context"
	"time"

	"molrun/app/placement"
	"molrun/app/protocol"
)

// Executor is a place where tasks run: this machine, or a cluster. All its
// methods may be called at once from several goroutines and wait no longer
// than their context allows.
type Executor interface {
	// Name is what jobs and the configuration call it: local, slurm.
	Name() string

	// Capacity gives what may be in use at once, or false where the executor
	// queues by itself and takes any number of tasks.
	Capacity() (Capacity, bool)

	// Start sets a task going whose directory is laid out. An error says that
	// the task does not run and never will; where that is not known, Start
	// gives no error and Status finds out.
	Start(ctx context.Context, t Task) (Handle, error)

	// Status tells how each task stands, in the order asked. An error is no
	// information about any of them. A task that is Lost has no process left.
	Status(ctx context.Context, tasks []Task) ([]TaskStatus, error)

	// Stop asks for a task's end; Status tells when it is gone. To repeat it
	// is harmless.
	Stop(ctx context.Context, t Task) error
}

// Remote is an Executor whose tasks run on other machines, which don't see the
// data directory. Their directories lie in a folder that both sides see, and
// come back when they have ended.
type Remote interface {
	Executor

	// AttemptsDir is where they lie: <job>/<attempt> in this folder.
	AttemptsDir() string

	// Program gives the path of this program as tasks find it. The error is
	// Unavailable where the folder can't be reached now.
	Program(ctx context.Context) (string, error)

	// MaxTasks is how many tasks it takes at once. Other jobs stay in the queue.
	MaxTasks() int
}

// Capacity is what an executor may use at once.
type Capacity struct {
	CPUs        int
	MemoryBytes int64
	GPUs        []string // as CUDA_VISIBLE_DEVICES names them
}

// Handle is what an executor needs to find a task again; it is opaque to all
// others and may be empty where the service died between start and record.
type Handle string

// Task is one attempt at a job, as executors see it. Dir holds task.json and
// the rest of the attempt's files (package task).
type Task struct {
	Job     JobID
	Attempt int
	Token   string // names the attempt, never used twice
	Dir     string // absolute
	Needs   placement.Resources
	GPUs    []string // leased devices
	Limit   time.Duration
	Handle  Handle

	Placement placement.Placement // for executors that are clusters
}

// TaskState says how far a task is.
type TaskState int

// The states of a task.
const (
	TaskStarting TaskState = iota // accepted; no process yet
	TaskRunning
	TaskEnded // Outcome says how
	TaskLost  // gone without an outcome
)

// TaskStatus is how a task stands.
type TaskStatus struct {
	State     TaskState
	Reason    string // of TaskStarting: why it waits; of TaskLost: what is known
	StartedAt time.Time
	Progress  *Progress
	Outcome   *Outcome
}

// What passes between an executor and its tasks is package protocol's, so that
// the process of a task need not know this package.
type (
	Outcome  = protocol.Outcome
	Cause    = protocol.Cause
	Progress = protocol.Progress
	Step     = protocol.Step
	Sandbox  = protocol.Sandbox
)

// The causes; package protocol says what each means.
const (
	CauseDone        = protocol.CauseDone
	CauseExit        = protocol.CauseExit
	CauseSignal      = protocol.CauseSignal
	CauseTimeout     = protocol.CauseTimeout
	CauseMemory      = protocol.CauseMemory
	CauseLimit       = protocol.CauseLimit
	CauseStopped     = protocol.CauseStopped
	CauseInterrupted = protocol.CauseInterrupted
	CauseCannotStart = protocol.CauseCannotStart
)
