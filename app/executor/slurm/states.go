package slurm

import "fmt"

// kind is what a state of Slurm means for a task.
type kind int

const (
	unknown   kind = iota // newer versions add states: as before
	queued                // no process yet
	running               // processes may live
	closing               // processes end; files may still be written
	completed             // the script exited 0
	exited                // it did not
	timedOut              // Slurm's own limit
	outOfMemory
	cancelled
	broken // through no fault of the task
)

var states = map[string]kind{
	"PENDING": queued, "CONFIGURING": queued, "REQUEUED": queued, "REQUEUE_FED": queued,
	"REQUEUE_HOLD": queued, "RESV_DEL_HOLD": queued, "SPECIAL_EXIT": queued,
	"RUNNING": running, "SUSPENDED": running, "STOPPED": running, "RESIZING": running, "SIGNALING": running,
	"COMPLETING": closing, "STAGE_OUT": closing,
	"COMPLETED": completed,
	"FAILED":    exited,
	"TIMEOUT":   timedOut, "DEADLINE": timedOut,
	"OUT_OF_MEMORY": outOfMemory,
	"CANCELLED":     cancelled,
	"NODE_FAIL":     broken, "BOOT_FAIL": broken, "PREEMPTED": broken, "REVOKED": broken,
	"LAUNCH_FAILED": broken, "RECONFIG_FAIL": broken,
}

// over reports whether a job in such a state is no more.
func (k kind) over() bool { return k >= completed }

// hopeless are the reasons for which a job waits that do not go by themselves.
// An administrator may help, hence the grace.
var hopeless = map[string]string{
	"PartitionConfig":             "no node of its partition can run it: it asks for more than any has, or the partition has none",
	"BadConstraints":              "no node meets what it asks for",
	"DependencyNeverSatisfied":    "it depends on a job that failed",
	"InvalidAccount":              "its account may not be used",
	"InvalidQOS":                  "its QOS may not be used",
	"launch failed requeued held": "a node could not launch it",
	"launch_failed_requeued_held": "a node could not launch it",
	"JobHeldAdmin":                "an administrator of the cluster holds it back",
	"job requeued in held state":  "it was requeued and is held back",
	"PartitionTimeLimit":          "its time limit is longer than its partition allows",
	"AccountNotAllowed":           "its account may not use its partition",
	"QOSNotAllowed":               "its QOS may not be used in its partition",
}

// waits says for the job's user why a job waits in Slurm.
func waits(r record) string {
	if why := hopeless[r.reason]; why != "" {
		return fmt.Sprintf("Slurm job %s can't start: %s (%s)", r.target(), why, r.reason)
	}
	if r.reason == "" || r.reason == "None" {
		return fmt.Sprintf("waiting in Slurm as job %s", r.target())
	}
	return fmt.Sprintf("waiting in Slurm as job %s (%s)", r.target(), r.reason)
}
