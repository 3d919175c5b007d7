package slurm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/placement"
	"molrun/app/task"
	"molrun/app/unit"
)

// The files in an attempt's directory beside those of package task.
const (
	// logFile takes what the process that runs a task says about itself.
	logFile = "shim.log"
	// refusedFile says why we gave the task up before it began.
	refusedFile = "refused"
)

// byPatience is how long it may take accounting to know who cancelled a job.
const byPatience = 15 * time.Second

// over tells how a task ended whose job is no more. What it left may be seen
// here only after a while.
func (e *Executor) over(t app.Task, k *tracked, r record) (app.TaskStatus, error) {
	if k.overAt.IsZero() {
		k.overAt = time.Now()
	}
	o, err := readOutcome(t.Dir)
	if err != nil {
		return app.TaskStatus{}, err
	}
	end := ending{record: r, outcome: o, stopped: task.StopAsked(t.Dir), refused: readRefusal(t.Dir), needs: t.Needs, tracked: k}
	since := time.Since(k.overAt)
	if o == nil && since < e.options.Late && e.began(t, r) || end.foreign() && r.by == "" && !e.view.without && !e.view.silent && since < byPatience {
		if o != nil {
			e.hurry() // it is sacct that is waited for
		}
		if k.startedAt.IsZero() {
			return app.TaskStatus{State: app.TaskStarting, Reason: "it has ended; its files are not seen yet"}, nil
		}
		return e.alive(t, k, r)
	}
	if o == nil && !end.stopped && e.cutOff(t, r) {
		return e.alive(t, k, r)
	}
	end.words = lastWords(t.Dir)
	return end.status(), nil
}

// cutOff reports whether the task lives on though Slurm has given up on its
// node, which it no longer reaches. It ends by itself, or Slurm ends it when the
// node is back; another attempt would run beside it till then. A lock that
// outlives its machine counts no longer than the task could have lived.
func (e *Executor) cutOff(t app.Task, r record) bool {
	if states[r.state] != broken {
		return false
	}
	locked, err := task.Locked(t.Dir)
	if err != nil || !locked {
		return false
	}
	run, err := task.ReadRun(t.Dir)
	return err == nil && !e.overdue(t, run)
}

// began reports whether the task came so far that it should leave an outcome.
func (e *Executor) began(t app.Task, r record) bool {
	if states[r.state] == exited && r.code == exitNoDir {
		return false
	}
	_, isClaimed, err := claimed(t.Dir)
	return isClaimed || err != nil
}

// giveUp ends a task that can't start. Why is noted first, so that its end is
// not taken for somebody else's doing.
func (e *Executor) giveUp(t app.Task, r record) error {
	why := fmt.Sprintf("%s. Slurm had no place for it within %v. Ask an administrator whether the cluster can run such jobs, then retry it.",
		strings.ToUpper(waits(r)[:1])+waits(r)[1:], e.options.HoldGrace)
	if readRefusal(t.Dir) == "" {
		if err := writeFile(filepath.Join(t.Dir, refusedFile), []byte(why)); err != nil {
			return err
		}
		e.log("a task can't start and is given up", "job", string(t.Job), "slurm", r.target(), "reason", r.reason)
	}
	e.canceler.tryAdd(r.target(), end)
	return nil
}

func readRefusal(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, refusedFile))
	if err != nil {
		return ""
	}
	return string(text)
}

// ending is all that is known of how a task ended.
type ending struct {
	record
	outcome *app.Outcome // nil: it left none
	stopped bool         // its end was asked for
	refused string       // why we gave it up
	needs   placement.Resources
	words   string // the last that was said of itself by what ran it
	tracked *tracked
}

// foreign reports whether somebody else cancelled the job in Slurm.
func (d ending) foreign() bool {
	return states[d.state] == cancelled && !d.stopped && d.refused == ""
}

// status decides: Slurm says that the task has ended and whether Slurm ended
// it, else the outcome says how.
func (d ending) status() app.TaskStatus {
	switch states[d.state] {
	case timedOut:
		return d.failed(app.CauseTimeout, "Slurm ended the job at its time limit.")
	case outOfMemory:
		return d.failed(app.CauseMemory, fmt.Sprintf("The job used more than the %s of memory that it asked the cluster for.", unit.Bytes(d.needs.MemoryBytes)))
	case cancelled:
		return d.cancelled()
	}
	if d.outcome != nil && (states[d.state] != broken || d.outcome.Cause != app.CauseInterrupted) {
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
	case d.by != "":
		return d.failed(app.CauseStopped, fmt.Sprintf("The job was cancelled in Slurm by %s.", userName(d.by)))
	}
	return d.failed(app.CauseStopped, "The job was cancelled in Slurm.")
}

// without decides where there is no outcome to believe.
func (d ending) without() app.TaskStatus {
	switch {
	case states[d.state] == broken:
		return d.lost(d.breakage())
	case d.signal == int(syscall.SIGKILL):
		s := d.failed(app.CauseSignal, fmt.Sprintf("Slurm killed the job on node %s, most likely since it used more than the %s of memory that it asked for.",
			d.node, unit.Bytes(d.needs.MemoryBytes)))
		s.Outcome.Signal = "SIGKILL"
		return s
	case d.code == exitNoDir:
		return d.lost(fmt.Sprintf("node %s does not see the folder that is shared with the cluster", d.node))
	case d.code == exitClaimed:
		return d.lost("its job was requeued in Slurm, or its process died before it began")
	case d.words != "":
		return d.lost(fmt.Sprintf("the task left no outcome on node %s: %s", d.node, d.words))
	}
	return d.lost(fmt.Sprintf("the task left no outcome on node %s; Slurm says %s (%s), exit code %d, signal %d", d.node, d.state, d.reason, d.code, d.signal))
}

func (d ending) breakage() string {
	switch d.state {
	case "NODE_FAIL":
		return fmt.Sprintf("its node %s failed", d.node)
	case "PREEMPTED":
		return "a job of higher priority took its place in Slurm"
	}
	return fmt.Sprintf("Slurm could not run it on node %s (%s)", d.node, d.state)
}

func (d ending) lost(why string) app.TaskStatus {
	return app.TaskStatus{State: app.TaskLost, Reason: why, StartedAt: d.tracked.startedAt}
}

// failed gives an end that Slurm decided. What the task measured stays.
func (d ending) failed(cause app.Cause, message string) app.TaskStatus {
	o := made(cause, message, d.record, d.tracked)
	if d.outcome != nil {
		whole := *d.outcome
		whole.Cause, whole.Message = cause, message
		o = &whole
	}
	return app.TaskStatus{State: app.TaskEnded, StartedAt: o.StartedAt, Outcome: o}
}

// made makes the outcome of a task that left none.
func made(cause app.Cause, message string, r record, k *tracked) *app.Outcome {
	o := &app.Outcome{Protocol: task.Protocol, Cause: cause, Message: message}
	if o.StartedAt = k.startedAt; o.StartedAt.IsZero() && !r.ended.Before(r.started) {
		o.StartedAt = r.started
	}
	if o.EndedAt = r.ended; o.EndedAt.Before(o.StartedAt) {
		o.EndedAt = o.StartedAt
	}
	return o
}

// userName names a user of the cluster.
func userName(uid string) string {
	if u, err := user.LookupId(uid); err == nil {
		return fmt.Sprintf("the user %s (%s)", u.Username, uid)
	}
	return "the user with the number " + uid
}

// lastWords gives the last line that what runs the task has said of itself.
func lastWords(dir string) string {
	f, err := os.OpenFile(filepath.Join(dir, logFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	const enough = 1 << 10
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	data, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-enough), enough))
	if err != nil && !errors.Is(err, fs.ErrClosed) {
		return ""
	}
	return lastLine(string(data))
}
