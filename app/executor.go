package app

import (
	"context"
	"time"

	"molrun/app/algorithm/placement"
	"molrun/app/task/protocol"
)

// Executor runs tasks: on this machine, or on a cluster. Its methods may be
// called concurrently and return when their context ends.
type Executor interface {
	// Name is what jobs and the configuration call it: local, slurm.
	Name() string

	// Capacity returns what may be in use at once, or false if the executor has
	// a queue of its own and takes any number of tasks.
	Capacity() (Capacity, bool)

	// Start starts a task whose directory is complete. An error means that the
	// task does not run and never will; if that is uncertain, Start returns no
	// error, and Status finds out.
	Start(ctx context.Context, t Task) (Handle, error)

	// Status reports on each task, in the order asked. An error says nothing
	// about any of them. A task that is Lost has no process left.
	Status(ctx context.Context, tasks []Task) ([]TaskStatus, error)

	// Stop asks a task to end; Status reports when it is gone. Stop is
	// idempotent.
	Stop(ctx context.Context, t Task) error
}

// Remote is an Executor whose tasks run on machines that don't see the data
// directory. Task directories lie in a folder that both sides share, and are
// copied home when the task has ended.
type Remote interface {
	Executor

	// AttemptsDir is the shared folder of task directories: <job>/<attempt>.
	AttemptsDir() string

	// Program returns the path of this program as tasks see it. The error is
	// Unavailable if the shared folder can't be reached now.
	Program(ctx context.Context) (string, error)

	// MaxTasks is how many tasks it takes at once. Further jobs stay queued.
	MaxTasks() int
}

// Pilots is an Executor that can run short tasks one after the other in one process, a
// pilot, which costs less than a process each. Package task says how it works.
type Pilots interface {
	Executor

	// StartPilot starts the pilot of a directory for tasks like t, and assigns it its first
	// chunk of rows: directories of tasks. A pilot that already runs there gets nothing.
	// After an error none of the rows starts.
	StartPilot(ctx context.Context, dir string, t Task, rows []string) error

	// ShutdownPilot ends the pilot of a directory, none of whose rows is still needed, and
	// reports whether it has exited, so that the directory can be removed. It is repeated
	// until then.
	ShutdownPilot(ctx context.Context, dir string) (gone bool, err error)
}

// GPUWatcher is an Executor that watches its GPUs, so that its Capacity changes.
type GPUWatcher interface {
	Executor

	// GPUsChanged receives after the GPUs of the Capacity have changed. It has one receiver.
	GPUsChanged() <-chan struct{}

	// HoldGPUs says which GPUs jobs have, by name. Programs on other GPUs are no jobs.
	// Before the first call it is unknown.
	HoldGPUs(names []string)

	// CheckGPUs looks at the GPUs now, and returns once the Capacity says what was seen. It
	// is bounded, and returns an error if nothing could be seen.
	CheckGPUs(ctx context.Context) error
}

// Capacity is what an executor may use at once.
type Capacity struct {
	CPUs        int
	MemoryBytes int64
	GPUs        []string          // that jobs can be given, as CUDA_VISIBLE_DEVICES names them
	Cards       map[string]string // the UUIDs of the cards of those GPUs that are instances (MIG)
	FaultyGPUs  []FaultyGPU       // that jobs are not given
	GPUsUnknown bool              // it is not known yet which GPUs there are
	Cores       [][]int           // the CPUs of each core, to which jobs are pinned; none: they are not
}

// FaultyGPU is a GPU that jobs can't use.
type FaultyGPU struct {
	Name  string
	Fault GPUFault
	Text  string // what is wrong, such as "is lost"
}

// GPUFault is the kind of what is wrong with a GPU.
type GPUFault string

// The faults.
const (
	GPULost        GPUFault = "lost"         // what runs on it can't continue
	GPUNeedsReset  GPUFault = "reset"        // the driver wants it to be reset
	GPUMemoryError GPUFault = "memory"       // it has uncorrected memory errors
	GPUOccupied    GPUFault = "occupied"     // a program that is no job uses it
	GPUUnknown     GPUFault = "unknown"      // the driver's tool does not answer
	GPUUndivided   GPUFault = "no-instances" // in MIG mode without instances, so that there is nothing to give
)

// Expected reports whether jobs can expect to be given the GPU once it is repaired.
func (g FaultyGPU) Expected() bool { return g.Fault != GPUUndivided }

// ExpectedGPUs returns how many GPUs there are if none is faulty.
func (c Capacity) ExpectedGPUs() int {
	n := len(c.GPUs)
	for _, g := range c.FaultyGPUs {
		if g.Expected() {
			n++
		}
	}
	return n
}

// Handle identifies a task to its executor. It is opaque to all others, and
// empty if the service died between the start and its record.
type Handle string

// Task is one attempt at a job, as executors see it. Dir holds task.json and
// the rest of the attempt's files (package task).
type Task struct {
	Job     JobID
	Attempt int
	Token   string // names the attempt, never used twice
	Dir     string // absolute
	Needs   placement.Resources
	Devices placement.Devices
	Limit   time.Duration
	Handle  Handle
	Pilot   string // the directory of the pilot that runs it; "": it has a process of its own
	Owner   Owner

	Placement placement.Placement // for executors that are clusters
}

// Owner says whose task it is, in words for administrators of a cluster.
type Owner struct {
	Organization, Email string
	Job                 string // its name
	Batch               string // the name of its batch; "": it is in none
}

// ClusterJob is the job of a cluster that runs a task.
type ClusterJob struct {
	Job       string `json:"job"` // its number
	Node      string `json:"node,omitempty"`
	Partition string `json:"partition,omitempty"`
}

// TaskState is how far a task is.
type TaskState int

// The states of a task.
const (
	TaskStarting TaskState = iota // accepted; no process yet
	TaskRunning
	TaskEnded // Outcome says how
	TaskLost  // gone without an outcome
)

// TaskStatus is what an executor reports about a task.
type TaskStatus struct {
	State     TaskState
	Reason    string // of TaskStarting: why it waits; of TaskRunning: what is wrong; of TaskLost: what is known
	StartedAt time.Time
	Progress  *Progress
	Cluster   ClusterJob // as far as it is known
	Outcome   *Outcome   // of TaskEnded; of a row that was lost before it began: who cancelled its pilot
}

// Aliases of what executors and tasks exchange. It is defined in package
// protocol, so that the process of a task need not link this package.
type (
	Outcome  = protocol.Outcome
	Cause    = protocol.Cause
	Progress = protocol.Progress
	Step     = protocol.Step
	Sandbox  = protocol.Sandbox
)

// The causes, explained in package protocol.
const (
	CauseDone        = protocol.CauseDone
	CauseExit        = protocol.CauseExit
	CauseSignal      = protocol.CauseSignal
	CauseTimeout     = protocol.CauseTimeout
	CauseMemory      = protocol.CauseMemory
	CauseLimit       = protocol.CauseLimit
	CauseDisk        = protocol.CauseDisk
	CauseStopped     = protocol.CauseStopped
	CauseInterrupted = protocol.CauseInterrupted
	CauseCannotStart = protocol.CauseCannotStart
	CauseNoResult    = protocol.CauseNoResult
)
