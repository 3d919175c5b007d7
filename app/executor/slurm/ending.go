package slurm

import (
	"fmt"
	"os/user"
	"syscall"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/unit"
	"molrun/app/task"
)

// ending is everything known about how a task ended.
type ending struct {
	jobRecord
	outcome *app.Outcome // nil if the task left none
	stopped bool         // we stopped it
	refused string       // why we abandoned it
	needs   placement.Resources
	logLine string // last line of the log of the process that ran it
	worker  bool   // it is the process of a worker, which leaves no outcome
	tracked *tracked
}

// canceledByOther reports whether another user canceled the job in Slurm.
func (d ending) canceledByOther() bool {
	return d.Kind() == kindCancelled && !d.stopped && d.refused == ""
}

// status determines the status. Slurm reports that the task has ended and whether Slurm
// ended it; otherwise the outcome decides.
func (d ending) status() app.TaskStatus {
	switch d.Kind() {
	case kindTimedOut:
		return d.failed(app.CauseTimeout, "Slurm ended the job at its time limit.")
	case kindOutOfMemory:
		return d.failed(app.CauseMemory, fmt.Sprintf("The job exceeded its %s of requested memory.", unit.Bytes(d.needs.MemoryBytes)))
	case kindCancelled:
		return d.cancelled()
	}
	if d.outcome != nil && (d.Kind() != kindBroken || d.outcome.Cause != app.CauseInterrupted) {
		return ended(d.outcome)
	}
	return d.statusWithoutOutcome()
}

func (d ending) cancelled() app.TaskStatus {
	switch {
	case d.stopped:
		return d.failed(app.CauseStopped, "The job was stopped.")
	case d.refused != "":
		return d.failed(app.CauseCannotStart, d.refused)
	}
	by, on := "", ""
	if d.By != "" {
		by = " by " + userName(d.By)
	}
	if !d.Started.IsZero() && d.Node != "" {
		on = fmt.Sprintf(" while Slurm job %s ran on node %s", d.Target(), d.Node)
	}
	return d.failed(app.CauseStopped, fmt.Sprintf("The job was cancelled in Slurm%s%s.", by, on))
}

// statusWithoutOutcome determines the status if there is no reliable outcome.
func (d ending) statusWithoutOutcome() app.TaskStatus {
	switch {
	case d.Kind() == kindBroken:
		return d.lost(d.failureReason())
	case d.Signal == int(syscall.SIGKILL):
		s := d.failed(app.CauseSignal, fmt.Sprintf("Slurm killed the job on node %s, most likely because it exceeded its %s of requested memory.",
			d.Node, unit.Bytes(d.needs.MemoryBytes)))
		s.Outcome.Signal = "SIGKILL"
		return s
	case d.Code == exitNoDir:
		return d.lost(fmt.Sprintf("node %s can't access the folder shared with the cluster", d.Node))
	case d.Code == exitClaimed:
		return d.lost("its job was requeued in Slurm, or its process died before it began")
	case d.worker:
		return d.lost(fmt.Sprintf("Slurm job %s, which ran jobs of its batch, ended on node %s (%s)", d.Target(), d.Node, d.stateText()))
	case d.logLine != "":
		return d.lost(fmt.Sprintf("the task left no outcome on node %s: %s", d.Node, d.logLine))
	}
	return d.lost(fmt.Sprintf("the task left no outcome on node %s; Slurm reports %s, exit code %d, signal %d", d.Node, d.stateText(), d.Code, d.Signal))
}

func (d ending) failureReason() string {
	switch d.State {
	case "NODE_FAIL":
		return fmt.Sprintf("its node %s failed (%s)", d.Node, d.stateText())
	case "PREEMPTED":
		return fmt.Sprintf("preempted in Slurm on node %s (%s)", d.Node, d.stateText())
	}
	return fmt.Sprintf("Slurm could not run it on node %s (%s)", d.Node, d.stateText())
}

func (d ending) lost(why string) app.TaskStatus {
	return app.TaskStatus{State: app.TaskLost, Reason: why, StartedAt: d.tracked.startedAt}
}

// failed returns an end decided by Slurm. It keeps the task's measurements.
func (d ending) failed(cause app.Cause, message string) app.TaskStatus {
	o := newOutcome(cause, message, d.jobRecord, d.tracked)
	if d.outcome != nil {
		whole := *d.outcome
		whole.Cause, whole.Message = cause, message
		o = &whole
	}
	return app.TaskStatus{State: app.TaskEnded, StartedAt: o.StartedAt, Outcome: o}
}

// newOutcome returns an outcome for a task that left none.
func newOutcome(cause app.Cause, message string, r jobRecord, k *tracked) *app.Outcome {
	o := &app.Outcome{Protocol: task.Protocol, Cause: cause, Message: message}
	if o.StartedAt = k.startedAt; o.StartedAt.IsZero() && !r.Ended.Before(r.Started) {
		o.StartedAt = r.Started
	}
	if o.EndedAt = r.Ended; o.EndedAt.Before(o.StartedAt) {
		o.EndedAt = o.StartedAt
	}
	return o
}

// userName returns the name of a cluster user for messages.
func userName(uid string) string {
	if u, err := user.LookupId(uid); err == nil {
		return fmt.Sprintf("the user %s (%s)", u.Username, uid)
	}
	return "UID " + uid
}
