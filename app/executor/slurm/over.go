package slurm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/task"
)

// Files in an attempt's directory in addition to those of package task.
const (
	// logFile is the log of the process that runs a task.
	logFile = "shim.log"
	// refusedFile records why the task was abandoned before it began.
	refusedFile = "refused"
)

// rowsDelay is how long the files of jobs can take to become visible here after their
// worker has ended. A worker leaves no outcome of its own to wait for.
const rowsDelay = 2 * time.Second

// accountingDelay is how long accounting can take to record who canceled a job.
const accountingDelay = 15 * time.Second

// over returns the status of a task whose Slurm job is over. The task's files may become
// visible here only after a while.
func (e *Executor) over(t app.Task, k *tracked, r jobRecord) (app.TaskStatus, error) {
	if k.overAt.IsZero() {
		k.overAt = time.Now()
	}
	o, err := readOutcome(t.Dir)
	if err != nil {
		return app.TaskStatus{}, err
	}
	end := ending{
		jobRecord: r, outcome: o, stopped: task.StopRequested(t.Dir), refused: readRejection(t.Dir),
		needs: t.Needs, tracked: k, worker: isWorker(t),
	}
	since, late := time.Since(k.overAt), e.options.Late
	if end.worker {
		late = min(late, rowsDelay)
	}
	if o == nil && since < late && e.began(t, r) || end.canceledByOther() && r.By == "" && !e.snapshot.noAccounting && !e.snapshot.accountingDown && since < accountingDelay {
		if o != nil {
			e.submissions.expectChange() // sacct has yet to report who canceled it
		}
		if k.startedAt.IsZero() {
			return app.TaskStatus{State: app.TaskStarting, Reason: "it has ended; its files are not visible yet"}, nil
		}
		return e.alive(t, k, r)
	}
	if o == nil && !end.stopped && e.cutOff(t, r) {
		return e.alive(t, k, r)
	}
	end.logLine = lastLogLine(t.Dir)
	return end.status(), nil
}

// cutOff reports whether the task is alive although Slurm has given up its unreachable
// node. The task ends on its own, or Slurm ends it when the node is back; until then,
// another attempt would run alongside it. A lock that outlives its machine counts only
// for as long as the task could have lived.
func (e *Executor) cutOff(t app.Task, r jobRecord) bool {
	if r.Kind() != kindBroken {
		return false
	}
	locked, err := task.Locked(t.Dir)
	if err != nil || !locked {
		return false
	}
	run, err := task.ReadRun(t.Dir)
	return err == nil && !e.options.overdue(t, run)
}

// began reports whether the task got far enough to leave an outcome.
func (e *Executor) began(t app.Task, r jobRecord) bool {
	if r.Kind() == kindExited && r.Code == exitNoDir {
		return false
	}
	_, isClaimed, err := claimed(t.Dir)
	return isClaimed || err != nil
}

// abandon ends a task that can't start. The reason is recorded first, so that the end is
// not attributed to another user.
func (e *Executor) abandon(t app.Task, r jobRecord) error {
	why := fmt.Sprintf("%s. It could not start within %v. Ask an administrator whether the cluster can run such jobs, then retry it.",
		strings.ToUpper(waitReason(r)[:1])+waitReason(r)[1:], e.options.HoldGrace)
	if readRejection(t.Dir) == "" {
		if err := replaceFile(filepath.Join(t.Dir, refusedFile), []byte(why)); err != nil {
			return err
		}
		e.options.Log("abandoned a task that cannot start", "job", string(t.Job), "slurm", r.Target(), "reason", r.Reason)
	}
	e.canceler.tryAdd(r, cancelEnd)
	return nil
}

func readRejection(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, refusedFile))
	if err != nil {
		return ""
	}
	return string(text)
}

// lastLogLine returns the last line of the log of the process that ran the task.
func lastLogLine(dir string) string {
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
