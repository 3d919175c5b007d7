package slurm

// stateKind is the meaning of a Slurm state for a task.
type stateKind int

// The kinds. Those from kindCompleted on are final.
const (
	kindUnknown   stateKind = iota // a state of a newer Slurm version
	kindQueued                     // no process yet
	kindRunning                    // processes may be alive
	kindClosing                    // processes are ending; files may still be written
	kindCompleted                  // the script exited with 0
	kindExited                     // the script exited with another status
	kindTimedOut                   // exceeded Slurm's own limit
	kindOutOfMemory
	kindCancelled
	kindBroken // not caused by the task
)

// stateKinds maps Slurm's states to their meaning.
var stateKinds = map[string]stateKind{
	"PENDING": kindQueued, "CONFIGURING": kindQueued, "REQUEUED": kindQueued, "REQUEUE_FED": kindQueued,
	"REQUEUE_HOLD": kindQueued, "RESV_DEL_HOLD": kindQueued, "SPECIAL_EXIT": kindQueued,
	"RUNNING": kindRunning, "SUSPENDED": kindRunning, "STOPPED": kindRunning, "RESIZING": kindRunning, "SIGNALING": kindRunning,
	"COMPLETING": kindClosing, "STAGE_OUT": kindClosing,
	"COMPLETED": kindCompleted,
	"FAILED":    kindExited,
	"TIMEOUT":   kindTimedOut, "DEADLINE": kindTimedOut,
	"OUT_OF_MEMORY": kindOutOfMemory,
	"CANCELLED":     kindCancelled,
	"NODE_FAIL":     kindBroken, "BOOT_FAIL": kindBroken, "PREEMPTED": kindBroken, "REVOKED": kindBroken,
	"LAUNCH_FAILED": kindBroken, "RECONFIG_FAIL": kindBroken,
}

// Over reports whether the state is final.
func (k stateKind) Over() bool { return k >= kindCompleted }
