package task

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"molrun/app/protocol"
)

// watch is the life of one step: its program, and everything that it starts.
type watch struct {
	*shim
	step       protocol.Step
	last       bool // no step follows
	leader     int
	box        *box                      // nil: the program sees the whole machine
	toldEnd    <-chan syscall.WaitStatus // of the program in box, before the leader's
	ended      bool                      // the program is
	told       bool                      // what it left behind was asked to end
	oomKills   int64
	counted    int64            // processes, at the last look
	groupKills int64            // the same in the task's cgroup
	kill       <-chan time.Time // when the grace is over, and then again and again
	again      time.Duration    // how long until the next again
	look       *time.Timer      // at the memory
}

// runStep runs one step until none of its processes is left.
func (s *shim) runStep(step protocol.Step, last bool) {
	w := &watch{shim: s, step: step, last: last, oomKills: kernelKills()}
	if s.group != nil {
		w.groupKills = s.group.count("memory.events", "oom_kill")
	}
	output, err := w.start()
	if err != nil {
		s.out.Step = step.Name
		s.settle(protocol.CauseCannotStart, sentence(err.Error()))
		return
	}
	s.memory.pause = 0
	w.look = time.NewTimer(0) // short programs need memory, too
	defer w.look.Stop()
	w.watch()
	err = output.finish()
	if w.box != nil {
		err = errors.Join(err, w.box.close())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "clear up after step %s: %v\n", step.Name, err)
	}
}

// watch returns once this process has no child, which is the kernel's word
// that no descendant is left.
func (w *watch) watch() {
	done := w.ctx.Done()
	for !w.reap() {
		if w.ended && !w.told {
			w.endLeftovers()
		}
		select {
		case <-w.children:
		case status := <-w.toldEnd:
			w.end(status)
		case <-w.ends:
			w.interrupt()
			w.terminate()
		case <-done:
			done = nil
			w.interrupt()
			w.terminate()
		case <-w.wall:
			w.settle(protocol.CauseTimeout, fmt.Sprintf("The job ran longer than its limit of %s.",
				time.Duration(w.spec.MaxRuntimeSeconds)*time.Second))
			w.terminate()
		case <-w.kill:
			w.killAll()
		case <-w.look.C:
			w.measure()
		}
	}
}

// reap takes the ends of all children that have ended, adopted ones included,
// and reports whether no child is left.
func (w *watch) reap() (none bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD: there are none
			return true
		case pid == 0:
			return false
		case pid == w.leader && w.box != nil:
			w.end(w.box.verdict(status))
		case pid == w.leader:
			w.end(status)
		}
	}
}

// end notes how the program ended, once.
func (w *watch) end(status syscall.WaitStatus) {
	if w.ended {
		return
	}
	w.ended = true
	w.judge(status)
}

// terminate asks the program to end. What has not ended when the grace is over
// gets killed. To repeat it changes nothing.
func (w *watch) terminate() {
	if w.kill != nil {
		return
	}
	w.kill = time.After(w.spec.Grace())
	if w.box != nil {
		w.box.signal(syscall.SIGTERM, false)
		return
	}
	// The group is the leader's: while kill is nil, the leader is not reaped.
	syscall.Kill(-w.leader, syscall.SIGTERM)
	syscall.Kill(-w.leader, syscall.SIGCONT)
}

// endLeftovers ends what a program leaves behind, in the background or in
// sessions of their own.
func (w *watch) endLeftovers() {
	w.told = true
	if w.kill == nil {
		w.kill = time.After(w.spec.Grace())
	}
	if w.box != nil {
		w.box.signal(syscall.SIGTERM, true)
		return
	}
	w.signalAll(syscall.SIGTERM)
	w.signalAll(syscall.SIGCONT)
}

// killAll is repeated until nothing is left: a process may be born while it
// looks. It takes its time with those that nothing can kill now, since they
// wait for a disk.
func (w *watch) killAll() {
	switch {
	case w.group != nil && w.group.kill() == nil:
	case w.box != nil:
		w.box.kill()
	default:
		w.freeze()
	}
	w.signalAll(syscall.SIGKILL)
	w.again = min(max(killPause, 2*w.again), usualPause)
	w.kill = time.After(w.again)
}

// signalAll passes over what it can't reach: who ended meanwhile needs no
// signal, and the rest is tried again.
func (w *watch) signalAll(sig syscall.Signal) {
	for _, p := range descendants() {
		p.signal(sig)
	}
}

// mostFreezes bounds the rounds of freeze.
const mostFreezes = 50

// freeze stops all processes, round after round until no new ones are found:
// what multiplies faster than it is killed can't while it is stopped.
func (w *watch) freeze() {
	stopped := map[process]bool{}
	for range mostFreezes {
		before := len(stopped)
		for _, p := range descendants() {
			if !stopped[p] {
				p.signal(syscall.SIGSTOP)
				stopped[p] = true
			}
		}
		if len(stopped) == before {
			return
		}
	}
}

func (w *watch) measure() {
	all := w.programs()
	if w.memory.look(all) {
		w.settle(protocol.CauseMemory, fmt.Sprintf("The job used %s of memory, more than the %s that it may.",
			binary(w.memory.peak), binary(w.memory.limit)))
		w.killAll()
	}
	w.countProcesses(int64(len(all)))
	w.progress.tick()
	w.look.Reset(w.memory.pause)
}

// countProcesses ends what multiplies without end, where nothing keeps it from
// that: the kernel exempts root from its limit.
func (w *watch) countProcesses(n int64) {
	limit := w.isolation.Processes
	if limit <= 0 {
		return
	}
	if n > w.counted+limit/64 {
		w.memory.pause = firstPause
	}
	w.counted = n
	if n > limit {
		w.settle(protocol.CauseLimit, fmt.Sprintf("The job had %d processes at once, more than the %d that it may (runner.processes). "+
			"Have it start fewer, or ask an administrator for more.", n, limit))
		w.killAll()
	}
}

// programs gives the living processes of the step, without those that only
// make up its sandbox.
func (w *watch) programs() []process {
	all := descendants()
	if w.box == nil {
		return all
	}
	return slices.DeleteFunc(all, func(p process) bool { return p.pid == w.leader || p.pid == w.box.first.PID })
}
