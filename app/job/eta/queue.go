// Package eta says why jobs wait, and how long they wait and run. It is pure.
package eta

// Reason says why a queued job does not start.
type Reason struct {
	Text string  // for people
	By   Blocker // "": none of them
}

// Blocker is what a queued job waits for.
type Blocker string

// What a job may wait for.
const (
	GPU        Blocker = "gpu"
	CPU        Blocker = "cpu"
	Memory     Blocker = "memory"
	UserLimit  Blocker = "user-limit"  // it is the turn of users who run fewer jobs, or a limit holds it up
	BatchOrder Blocker = "batch-order" // earlier jobs of the same user or batch start first
	Dependency Blocker = "dependency"
	Slurm      Blocker = "slurm"
	Drain      Blocker = "drain"
	Disk       Blocker = "disk"
)

// Queue is what the record of a queued job says about its place in the queue. A
// member without a value is unknown.
type Queue struct {
	Position   int     `json:"position,omitempty"` // in the order of turns, from 1
	Of         int     `json:"of,omitempty"`       // jobs that wait for the same executor
	BlockedBy  Blocker `json:"blockedBy,omitempty"`
	ETASeconds int64   `json:"etaSeconds,omitempty"` // until it starts, at least 1
	ETABasis   string  `json:"etaBasis,omitempty"`
}

// Forecast says how jobs would fare if they were queued now.
type Forecast struct {
	Queue      Queue // of the first
	EndSeconds int64 // until the last ends; 0: unknown
}

// NotTurnYet is the reason of a job whose turn has not come, behind others of its own
// user or not.
func NotTurnYet(behind bool) Reason {
	by := UserLimit
	if behind {
		by = BatchOrder
	}
	return Reason{"waiting for its turn", by}
}
