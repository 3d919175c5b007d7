package app

import (
	"context"
	"time"

	"molrun/app/algorithm/placement"
	"molrun/app/task/protocol"
)

// Executor runs tasks on this machine or on a cluster. Its methods are safe for
// concurrent use and return when their context ends.
type Executor interface {
	// Name returns the name used by jobs and the configuration: local, slurm.
	Name() string

	// Capacity returns the resources that can be in use at once, or false if the executor
	// has its own queue and accepts any number of tasks.
	Capacity() (Capacity, bool)

	// Start starts a task whose directory is complete. An error means that the task is
	// not running and never will. If that is uncertain, Start returns no error, and
	// Status finds out.
	Start(ctx context.Context, t Task) (Handle, error)

	// Status reports the status of each task, in the given order. If it returns an error,
	// the status of all of them is unknown. A Lost task has no processes left.
	Status(ctx context.Context, tasks []Task) ([]TaskStatus, error)

	// Stop requests that a task end; Status reports when it has ended. Stop is
	// idempotent.
	Stop(ctx context.Context, t Task) error
}

// Remote is an Executor whose tasks run on machines that don't see the data directory.
// Task directories are in a folder shared by both sides and are copied to the data
// directory when the task has ended.
type Remote interface {
	Executor

	// AttemptsDir returns the shared folder of task directories: <job>/<attempt>.
	AttemptsDir() string

	// Program returns the path of this program as seen by tasks. The error is Unavailable
	// if the shared folder can't be reached now.
	Program(ctx context.Context) (string, error)

	// MaxTasks returns the maximum number of tasks at a time. Further jobs stay queued.
	MaxTasks() int
}

// Workers is an Executor that can run short tasks one after the other in one process, a
// worker, which costs less than one process per task. See package task.
type Workers interface {
	Executor

	// StartWorker starts the worker of a directory for tasks like t and assigns its first
	// chunk of rows, given as task directories. If a worker already runs there, nothing is
	// assigned. After an error none of the rows starts.
	StartWorker(ctx context.Context, dir string, t Task, rows []string) error

	// ShutdownWorker shuts down the worker of a directory whose rows are no longer
	// needed. It reports whether the worker has exited, so that the directory can be
	// removed. The caller must repeat the call until then.
	ShutdownWorker(ctx context.Context, dir string) (gone bool, err error)
}

// GPUWatcher is an Executor that monitors its GPUs, so that its Capacity changes.
type GPUWatcher interface {
	Executor

	// GPUsChanged returns a channel that receives a value after the GPUs in Capacity have
	// changed. Only one goroutine must receive from it.
	GPUsChanged() <-chan struct{}

	// HoldGPUs sets the names of the GPUs assigned to jobs. Programs on other GPUs are
	// not jobs. Before the first call the assignment is unknown.
	HoldGPUs(names []string)

	// CheckGPUs checks the GPUs now and returns once Capacity reflects the result. It
	// takes bounded time and returns an error if the GPUs could not be checked.
	CheckGPUs(ctx context.Context) error
}

// Capacity is the resources that an executor can use at once.
type Capacity struct {
	CPUs        int
	MemoryBytes int64
	GPUs        []string          // assignable to jobs, as in CUDA_VISIBLE_DEVICES
	Cards       map[string]string // for GPUs that are MIG instances: UUIDs of their cards
	FaultyGPUs  []FaultyGPU       // never assigned to jobs
	GPUsUnknown bool              // the GPUs have not been detected yet
	Cores       [][]int           // CPUs of each core, for pinning jobs; empty disables pinning
}

// FaultyGPU is a GPU that jobs can't use.
type FaultyGPU struct {
	Name  string
	Fault GPUFault
	Text  string // description, such as "is lost"
}

// GPUFault is a kind of GPU fault.
type GPUFault string

// The kinds of GPU faults.
const (
	GPULost        GPUFault = "lost"         // programs on it can't continue
	GPUNeedsReset  GPUFault = "reset"        // the driver requires a reset
	GPUMemoryError GPUFault = "memory"       // uncorrected memory errors
	GPUOccupied    GPUFault = "occupied"     // used by a program that is not a job
	GPUUnknown     GPUFault = "unknown"      // the driver's tool does not respond
	GPUUndivided   GPUFault = "no-instances" // in MIG mode without instances, so nothing can be assigned
)

// Expected reports whether the GPU will be available to jobs once it is repaired.
func (g FaultyGPU) Expected() bool { return g.Fault != GPUUndivided }

// ExpectedGPUs returns the number of GPUs that jobs can use once the faulty ones are
// repaired.
func (c Capacity) ExpectedGPUs() int {
	n := len(c.GPUs)
	for _, g := range c.FaultyGPUs {
		if g.Expected() {
			n++
		}
	}
	return n
}

// Handle identifies a task to its executor. It is opaque to all other code, and empty if
// the service crashed between starting the task and recording it.
type Handle string

// Task is one attempt at a job, as executors see it. Dir contains task.json and the other
// files of the attempt (package task).
type Task struct {
	Job     JobID
	Attempt int
	Token   string // unique ID of the attempt, never reused
	Dir     string // absolute
	Needs   placement.Resources
	Devices placement.Devices
	Limit   time.Duration
	Handle  Handle
	Worker  string // directory of its worker; "" means it has its own process
	Owner   Owner

	Placement placement.Placement // for executors that are clusters
}

// Owner identifies the owner of a task to cluster administrators.
type Owner struct {
	Organization, Email string
	Job                 string // name of the job
	Batch               string // name of its batch; "" if it has none
}

// ClusterJob is the cluster job that runs a task.
type ClusterJob struct {
	Job       string `json:"job"` // job number
	Node      string `json:"node,omitempty"`
	Partition string `json:"partition,omitempty"`
}

// TaskState is the state of a task.
type TaskState int

// The states of a task.
const (
	TaskStarting TaskState = iota // accepted; no process yet
	TaskRunning
	TaskEnded // see Outcome
	TaskLost  // gone without an outcome
)

// TaskStatus is what an executor reports about a task.
type TaskStatus struct {
	State     TaskState
	Reason    string // why a TaskStarting task waits, what is wrong with a TaskRunning one, or what is known about a TaskLost one
	StartedAt time.Time
	Progress  *Progress
	Cluster   ClusterJob // as far as known
	Outcome   *Outcome   // of a TaskEnded task; for a row lost before it started, says who canceled its worker
}

// Aliases of the types that executors and tasks exchange. They are defined in package
// protocol so that task processes need not link this package.
type (
	Outcome  = protocol.Outcome
	Cause    = protocol.Cause
	Progress = protocol.Progress
	Step     = protocol.Step
	Sandbox  = protocol.Sandbox
)

// The causes, documented in package protocol.
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
