package task

import (
	"syscall"
	"unsafe"
)

// priority is the real-time priority of the thread that watches a program. Without it, a
// program that takes all CPU time, such as a fork bomb, could keep the thread from
// stopping it. The thread raises its priority when processes multiply, or when they have
// to be killed, until none remains. It must not do so earlier: a thread that reaps a
// process busy-waits in the kernel until others release its entry in /proc, and with the
// priority it would keep them from the CPU. Only root can set priorities; for others, the
// kernel enforces a limit on processes.
type priority struct{ raised bool }

// raise raises this thread above all threads of normal priority. Programs don't inherit
// that.
func (p *priority) raise() {
	const roundRobin, resetOnFork = 2, 0x40000000 // see sched_setscheduler(2)
	if !p.raised {
		p.raised = true
		setScheduler(roundRobin|resetOnFork, 1) // the lowest real-time priority
	}
}

// reset restores normal priority.
func (p *priority) reset() {
	const normal = 0
	if p.raised {
		p.raised = false
		setScheduler(normal, 0)
	}
}

func setScheduler(policy uintptr, priority int32) {
	syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, 0, policy, uintptr(unsafe.Pointer(&priority)))
}
