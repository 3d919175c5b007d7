package task

import (
	"syscall"
	"unsafe"
)

// priority is that of the thread which watches a program. A program can take all CPU time,
// as a fork bomb does, and the thread could not stop it. So it gets the CPU whenever it asks
// for it as soon as processes multiply or have to end, until none is left. Not before: the
// kernel lets the thread that reaps a process wait in a loop until others release what they
// know of it in /proc, and the thread would keep them from the CPU. Only root may set
// priorities; the kernel enforces a limit on processes for others.
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
