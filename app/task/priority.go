package task

import (
	"syscall"
	"unsafe"
)

// priority is the real-time priority of the thread that watches a program. Otherwise a
// program that takes all CPU time, such as a fork bomb, could keep the thread from stopping
// it. The thread has it from when processes multiply or have to end until none is left. Not
// earlier: a thread that reaps a process busy-waits in the kernel until others release its
// entry in /proc, and with the priority it would keep those from the CPU. Only root can set
// priorities; for others, the kernel enforces a limit on processes.
type priority struct{ raised bool }

// hurry puts this thread before all others of normal priority. Programs don't inherit that.
func (p *priority) hurry() {
	const roundRobin, resetOnFork = 2, 0x40000000 // of sched_setscheduler(2)
	if !p.raised {
		p.raised = true
		setScheduler(roundRobin|resetOnFork, 1) // the lowest of them
	}
}

// calm takes that back.
func (p *priority) calm() {
	const normal = 0
	if p.raised {
		p.raised = false
		setScheduler(normal, 0)
	}
}

func setScheduler(policy uintptr, priority int32) {
	syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, 0, policy, uintptr(unsafe.Pointer(&priority)))
}
