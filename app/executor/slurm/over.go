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

// The files in an attempt's directory beside those of package task.
const (
	// logFile is the log of the process that runs a task.
	logFile = "shim.log"
	// refusedFile says why the task was abandoned before it began.
	refusedFile = "refused"
)

// rowsDelay is how long the files of rows may take to become visible here after their pilot
// has ended. A pilot leaves no outcome of its own to wait for.
const rowsDelay = 2 * time.Second

// accountingDelay is how long accounting may take to know who cancelled a job.
const accountingDelay = 15 * time.Second

// over returns how a task ended whose job is over. Its files may become visible
// here only after a while.
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
		needs: t.Needs, tracked: k, pilot: isPilot(t),
	}
	since, late := time.Since(k.overAt), e.options.Late
	if end.pilot {
		late = min(late, rowsDelay)
	}
	if o == nil && since < late && e.began(t, r) || end.foreign() && r.By == "" && !e.snapshot.without && !e.snapshot.silent && since < accountingDelay {
		if o != nil {
			e.submissions.hurry() // sacct has yet to say who cancelled it
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

// cutOff reports whether the task is alive although Slurm has abandoned its
// node, which it cannot reach. It ends by itself, or Slurm ends it when the node
// is back; until then, another attempt would run beside it. A lock that outlives
// its machine counts no longer than the task could have lived.
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

// began reports whether the task came far enough to leave an outcome.
func (e *Executor) began(t app.Task, r jobRecord) bool {
	if r.Kind() == kindExited && r.Code == exitNoDir {
		return false
	}
	_, isClaimed, err := claimed(t.Dir)
	return isClaimed || err != nil
}

// abandon ends a task that can't start. The reason is recorded first, so that the
// end is not attributed to another user.
func (e *Executor) abandon(t app.Task, r jobRecord) error {
	why := fmt.Sprintf("%s. Slurm had no place for it within %v. Ask an administrator whether the cluster can run such jobs, then retry it.",
		strings.ToUpper(waits(r)[:1])+waits(r)[1:], e.options.HoldGrace)
	if readRejection(t.Dir) == "" {
		if err := replaceFile(filepath.Join(t.Dir, refusedFile), []byte(why)); err != nil {
			return err
		}
		e.options.Log("gave up a task that cannot start", "job", string(t.Job), "slurm", r.Target(), "reason", r.Reason)
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

// lastWords returns the last line of the log of the process that ran the task.
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
