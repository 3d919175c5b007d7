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

// ending is all that is known about how a task ended.
type ending struct {
	jobRecord
	outcome *app.Outcome // nil: it left none
	stopped bool         // we stopped it
	refused string       // why we gave it up
	needs   placement.Resources
	words   string // last line of the log of the process that ran it
	pilot   bool   // it is the process of a pilot, which leaves no outcome
	tracked *tracked
}

// foreign reports whether another user cancelled the job in Slurm.
func (d ending) foreign() bool {
	return d.Kind() == kindCancelled && !d.stopped && d.refused == ""
}

// status decides. Slurm says that the task has ended and whether Slurm ended it;
// otherwise the outcome says how.
func (d ending) status() app.TaskStatus {
	switch d.Kind() {
	case kindTimedOut:
		return d.failed(app.CauseTimeout, "Slurm ended the job at its time limit.")
	case kindOutOfMemory:
		return d.failed(app.CauseMemory, fmt.Sprintf("The job used more than the %s of memory that it asked the cluster for.", unit.Bytes(d.needs.MemoryBytes)))
	case kindCancelled:
		return d.cancelled()
	}
	if d.outcome != nil && (d.Kind() != kindBroken || d.outcome.Cause != app.CauseInterrupted) {
		return ended(d.outcome)
	}
	return d.without()
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

// without decides where there is no reliable outcome.
func (d ending) without() app.TaskStatus {
	switch {
	case d.Kind() == kindBroken:
		return d.lost(d.breakage())
	case d.Signal == int(syscall.SIGKILL):
		s := d.failed(app.CauseSignal, fmt.Sprintf("Slurm killed the job on node %s, most likely since it used more than the %s of memory that it asked for.",
			d.Node, unit.Bytes(d.needs.MemoryBytes)))
		s.Outcome.Signal = "SIGKILL"
		return s
	case d.Code == exitNoDir:
		return d.lost(fmt.Sprintf("node %s does not see the folder that is shared with the cluster", d.Node))
	case d.Code == exitClaimed:
		return d.lost("its job was requeued in Slurm, or its process died before it began")
	case d.pilot:
		return d.lost(fmt.Sprintf("Slurm job %s, which ran rows of its batch, ended on node %s (%s)", d.Target(), d.Node, d.said()))
	case d.words != "":
		return d.lost(fmt.Sprintf("the task left no outcome on node %s: %s", d.Node, d.words))
	}
	return d.lost(fmt.Sprintf("the task left no outcome on node %s; Slurm says %s, exit code %d, signal %d", d.Node, d.said(), d.Code, d.Signal))
}

func (d ending) breakage() string {
	switch d.State {
	case "NODE_FAIL":
		return fmt.Sprintf("its node %s failed (%s)", d.Node, d.said())
	case "PREEMPTED":
		return fmt.Sprintf("a job of higher priority took its place in Slurm on node %s (%s)", d.Node, d.said())
	}
	return fmt.Sprintf("Slurm could not run it on node %s (%s)", d.Node, d.said())
}

func (d ending) lost(why string) app.TaskStatus {
	return app.TaskStatus{State: app.TaskLost, Reason: why, StartedAt: d.tracked.startedAt}
}

// failed returns an end that Slurm decided. It keeps what the task measured.
func (d ending) failed(cause app.Cause, message string) app.TaskStatus {
	o := made(cause, message, d.jobRecord, d.tracked)
	if d.outcome != nil {
		whole := *d.outcome
		whole.Cause, whole.Message = cause, message
		o = &whole
	}
	return app.TaskStatus{State: app.TaskEnded, StartedAt: o.StartedAt, Outcome: o}
}

// made returns the outcome of a task that left none.
func made(cause app.Cause, message string, r jobRecord, k *tracked) *app.Outcome {
	o := &app.Outcome{Protocol: task.Protocol, Cause: cause, Message: message}
	if o.StartedAt = k.startedAt; o.StartedAt.IsZero() && !r.Ended.Before(r.Started) {
		o.StartedAt = r.Started
	}
	if o.EndedAt = r.Ended; o.EndedAt.Before(o.StartedAt) {
		o.EndedAt = o.StartedAt
	}
	return o
}

// userName names a user of the cluster.
func userName(uid string) string {
	if u, err := user.LookupId(uid); err == nil {
		return fmt.Sprintf("the user %s (%s)", u.Username, uid)
	}
	return "UID " + uid
}
