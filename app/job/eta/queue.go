// Package eta estimates how long jobs wait and run, and says why they wait. It is free of
// side effects.
package eta

// Reason is why a queued job does not start.
type Reason struct {
	Text string  // for users
	By   Blocker // "" means none of the constants
}

// Blocker is what a queued job waits for.
type Blocker string

// The kinds of blockers.
const (
	GPU        Blocker = "gpu"
	CPU        Blocker = "cpu"
	Memory     Blocker = "memory"
	UserLimit  Blocker = "user-limit"  // users with fewer running jobs come first, or a limit is reached
	BatchOrder Blocker = "batch-order" // earlier jobs of the same user or batch come first
	Dependency Blocker = "dependency"
	Slurm      Blocker = "slurm"
	Drain      Blocker = "drain"
	Disk       Blocker = "disk"
)

// Queue is the queue information in the record of a queued job. A field without a value
// is unknown.
type Queue struct {
	Position   int     `json:"position,omitempty"` // in scheduling order, from 1
	Of         int     `json:"of,omitempty"`       // number of jobs waiting for the same executor
	BlockedBy  Blocker `json:"blockedBy,omitempty"`
	ETASeconds int64   `json:"etaSeconds,omitempty"` // until it starts, at least 1
	ETABasis   string  `json:"etaBasis,omitempty"`
}

// Forecast predicts when jobs would start and end if they were queued now.
type Forecast struct {
	Queue      Queue // of the first job
	EndSeconds int64 // until the last job ends; 0 means unknown
}

// NotTurnYet returns the reason for a job that is not next in scheduling order. behind
// means that earlier jobs of the same user come first.
func NotTurnYet(behind bool) Reason {
	by := UserLimit
	if behind {
		by = BatchOrder
	}
	return Reason{"waiting for its turn", by}
}
