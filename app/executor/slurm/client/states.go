package client

// Kind is what a state of Slurm means for a task.
type Kind int

// The kinds. Those from Completed on are final.
const (
	Unknown   Kind = iota // of a newer version of Slurm
	Queued                // no process yet
	Running               // processes may be alive
	Closing               // processes end; files may still be written
	Completed             // the script exited with 0
	Exited                // the script exited with another status
	TimedOut              // at Slurm's own limit
	OutOfMemory
	Cancelled
	Broken // through no fault of the task
)

// kinds are the states of Slurm.
var kinds = map[string]Kind{
	"PENDING": Queued, "CONFIGURING": Queued, "REQUEUED": Queued, "REQUEUE_FED": Queued,
	"REQUEUE_HOLD": Queued, "RESV_DEL_HOLD": Queued, "SPECIAL_EXIT": Queued,
	"RUNNING": Running, "SUSPENDED": Running, "STOPPED": Running, "RESIZING": Running, "SIGNALING": Running,
	"COMPLETING": Closing, "STAGE_OUT": Closing,
	"COMPLETED": Completed,
	"FAILED":    Exited,
	"TIMEOUT":   TimedOut, "DEADLINE": TimedOut,
	"OUT_OF_MEMORY": OutOfMemory,
	"CANCELLED":     Cancelled,
	"NODE_FAIL":     Broken, "BOOT_FAIL": Broken, "PREEMPTED": Broken, "REVOKED": Broken,
	"LAUNCH_FAILED": Broken, "RECONFIG_FAIL": Broken,
}

// Over reports whether the state is final.
func (k Kind) Over() bool { return k >= Completed }
