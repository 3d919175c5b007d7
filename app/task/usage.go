package task

import (
	"fmt"
	"os"
	"slices"
	"time"

	"molrun/app/base/unit"
	"molrun/app/task/process"
	"molrun/app/task/protocol"
)

// memory monitors the total memory use of the task's processes.
type memory struct {
	limit int64 // 0 means no limit
	peak  int64
	pause time.Duration // until the next check
}

// The pauses between two checks: short while a program grows, and while it is
// near its limit, because memory fills at gigabytes per second.
const (
	firstPause = 10 * time.Millisecond
	nearPause  = 100 * time.Millisecond
	usualPause = time.Second
)

// checkLimit measures the memory use, and reports whether it exceeds the limit.
func (m *memory) checkLimit(all []process.Descendant) (exceeded bool) {
	used := process.RSS(all)
	m.pause = min(max(firstPause, 2*m.pause), usualPause)
	switch {
	case m.limit > 0 && used > m.limit:
		if shared := process.PSS(all); shared > 0 {
			used = shared
		}
		m.pause = usualPause
	case m.limit > 0 && used > m.limit/2:
		m.pause = min(m.pause, nearPause)
	}
	m.peak = max(m.peak, used)
	return m.limit > 0 && used > m.limit
}

// checkUsage ends the step if it uses too much memory or too many processes.
func (r *runningStep) checkUsage() {
	all := r.descendants()
	if r.memory.checkLimit(all) {
		r.decide(protocol.CauseMemory, fmt.Sprintf("The job used %s of memory, which exceeds its limit of %s.",
			unit.Bytes(r.memory.peak), unit.Bytes(r.memory.limit)))
		r.killAll()
	}
	r.checkProcesses(int64(len(all)))
	r.keepLimits()
	r.updateProgress()
	r.progress.tick()
	r.memoryCheck.Reset(r.memory.pause)
}

// keepLimits restores limits of the cgroup that a restart of the service has removed.
func (r *runningStep) keepLimits() {
	if r.cgroup == nil {
		return
	}
	if err := r.cgroup.KeepLimits(); err != nil {
		fmt.Fprintln(os.Stderr, err) // checkUsage enforces them too
	}
}

// forkBombThreshold is a number of processes that normal programs do not reach, but that
// a fork bomb exceeds.
const forkBombThreshold = 128

// checkProcesses enforces the process limit where the kernel does not: it exempts root.
func (r *runningStep) checkProcesses(n int64) {
	if n > forkBombThreshold {
		r.priority.raise()
	}
	limit := r.isolation.Processes
	if limit <= 0 {
		return
	}
	if n > r.processes+limit/64 {
		r.memory.pause = firstPause
	}
	r.processes = n
	if n > limit {
		r.decide(protocol.CauseLimit, fmt.Sprintf("The job had %d processes at once, which exceeds the limit of %d (runner.processes). "+
			"Make it start fewer, or ask an administrator to raise the limit.", n, limit))
		r.killAll()
	}
}

// descendants returns the living processes of the step, except those that make up its
// sandbox.
func (r *runningStep) descendants() []process.Descendant {
	if r.isolation.Runtime != nil {
		return process.Below(r.sandbox.First.PID)
	}
	all := process.Descendants(r.shared.idle()...)
	if r.sandbox == nil {
		return all
	}
	return slices.DeleteFunc(all, func(d process.Descendant) bool {
		return d.PID == r.leader || d.PID == r.sandbox.First.PID
	})
}
