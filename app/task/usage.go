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

// memory watches what all processes of the task use together.
type memory struct {
	limit int64 // 0 is none
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

// checkLimit measures, and reports whether the processes exceed the limit.
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
		r.decide(protocol.CauseMemory, fmt.Sprintf("The job used %s of memory, more than the %s that it may.",
			unit.Bytes(r.memory.peak), unit.Bytes(r.memory.limit)))
		r.killAll()
	}
	r.checkProcesses(int64(len(all)))
	r.keepLimits()
	r.lookAround()
	r.progress.tick()
	r.memoryCheck.Reset(r.memory.pause)
}

// keepLimits sets limits of the cgroup again that a restart of the service has taken away.
func (r *runningStep) keepLimits() {
	if r.cgroup == nil {
		return
	}
	if err := r.cgroup.KeepLimits(); err != nil {
		fmt.Fprintln(os.Stderr, err) // checkUsage watches them too
	}
}

// manyProcesses is more than programs have that compute. A bomb passes it.
const manyProcesses = 128

// checkProcesses enforces the limit of processes where the kernel does not: it
// exempts root.
func (r *runningStep) checkProcesses(n int64) {
	if n > manyProcesses {
		r.priority.hurry()
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
		r.decide(protocol.CauseLimit, fmt.Sprintf("The job had %d processes at once, more than the %d that it may (runner.processes). "+
			"Have it start fewer, or ask an administrator for more.", n, limit))
		r.killAll()
	}
}

// descendants returns the living processes of the step, without those that make
// up its sandbox.
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
