package task

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"molrun/app/task/process"
)

// mostAhead is how many rows of a pilot have a sandbox, or get one, before their turn.
// Making one is mostly waiting for the kernel, several times as long as it takes CPU time.
const mostAhead = 4

// ahead is the sandbox of a row whose turn has not come. It is the row's own, as if it had
// been made in its turn, with its cgroup and its mark, but the first process in it still
// waits to be told which program to start: nothing of the row has begun, and no file says
// so. It dies with this process, as every sandbox. Whatever happens to it costs the row
// nothing: it gets another one in its turn.
type ahead struct {
	step *runningStep // the row's first, in a shim that runs nothing
	path string       // of the program
	pipe *os.File     // what the program will print
	lost bool         // it has ended
}

// makeAhead makes sandboxes for the first of these rows.
func (h *host) makeAhead(rows []string) {
	if h.isolation.Bubblewrap == "" || h.isolation.looksForPrograms() || h.cannot != nil {
		return
	}
	for _, dir := range rows[:min(len(rows), mostAhead)] {
		if _, tried := h.ahead[dir]; tried || Exists(dir, OutcomeFile) || Exists(dir, RunFile) || StopRequested(dir) {
			continue
		}
		a, err := h.newAhead(dir)
		if err != nil {
			a = nil // its turn will show why
		}
		h.ahead[dir] = a
	}
}

// newAhead makes the sandbox of a row.
func (h *host) newAhead(dir string) (*ahead, error) {
	s := newShim(h, dir)
	var err error
	if s.spec, err = Read(dir); err != nil {
		return nil, err
	}
	if len(s.spec.Steps) == 0 {
		return nil, errors.New("it has no steps")
	}
	if err := os.MkdirAll(filepath.Join(s.work, TempDir), 0o700); err != nil {
		return nil, err
	}
	s.pin()
	step := s.spec.Steps[0]
	r := &runningStep{shim: s, step: step, env: s.environment(step)}
	path, err := r.program()
	if err != nil {
		return nil, err
	}
	pipe, err := r.withStreams(path, r.makeSandbox)
	if err != nil {
		return nil, errors.Join(err, r.removeCgroup())
	}
	return &ahead{step: r, path: path, pipe: pipe}, nil
}

// takeAhead returns the sandbox that was made for a row, if it is of use.
func (h *host) takeAhead(dir string) *ahead {
	a := h.ahead[dir]
	if a != nil && (a.lost || a.step.sandbox.Await() != nil) {
		h.dropAhead(dir)
		a = nil
	}
	delete(h.ahead, dir)
	return a
}

// dropAhead ends the sandbox that was made for a row, if there is one.
func (h *host) dropAhead(dir string) {
	a := h.ahead[dir]
	delete(h.ahead, dir)
	if a == nil {
		return
	}
	err := errors.Join(a.step.sandbox.Discard(), a.pipe.Close(), a.step.removeCgroup())
	if err != nil {
		fmt.Fprintf(os.Stderr, "task %s: end the sandbox that was made ahead: %v\n", dir, err)
	}
}

func (h *host) dropAllAhead() {
	for _, dir := range slices.Collect(maps.Keys(h.ahead)) {
		h.dropAhead(dir)
	}
}

// lostAhead reports whether a process that has ended was that of a sandbox made ahead, and
// notes it.
func (h *host) lostAhead(pid int) bool {
	for _, a := range h.ahead {
		if a != nil && a.step.sandbox.PID == pid {
			a.lost = true
			a.step.sandbox.Gone()
			return true
		}
	}
	return false
}

// pidsAhead are the children of this process that are sandboxes made ahead.
func (h *host) pidsAhead() (pids []int) {
	for _, a := range h.ahead {
		if a != nil && !a.lost {
			pids = append(pids, a.step.sandbox.PID)
		}
	}
	return pids
}

// onlyAhead reports whether this process has children, and they are sandboxes made ahead.
func (h *host) onlyAhead() bool {
	ahead := h.pidsAhead()
	return len(ahead) > 0 && !slices.ContainsFunc(process.Children(os.Getpid()), func(pid int) bool {
		return !slices.Contains(ahead, pid)
	})
}
