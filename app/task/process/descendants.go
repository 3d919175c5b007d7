package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Descendant is a process below this one, observed at one moment.
type Descendant struct {
	PID   int
	start uint64
}

// Signal sends sig only if the PID still belongs to the observed process.
func (d Descendant) Signal(sig syscall.Signal) error {
	return signalIf(d.PID, sig, func() bool {
		s, err := readStat(d.PID)
		return err == nil && s.start == d.start
	})
}

// Descendants returns the living processes below this one, except the given children and
// their descendants. If this process is a subreaper, none can leave that tree. A process
// that is just being forked can be missed: to kill all of them, repeat until none
// remains.
func Descendants(without ...int) []Descendant {
	childrenOf := children()
	return descendantsBy(os.Getpid(), func(parent int) []int {
		return slices.DeleteFunc(childrenOf(parent), func(pid int) bool { return slices.Contains(without, pid) })
	})
}

// Below returns the living processes below another process.
func Below(pid int) []Descendant { return descendantsBy(pid, children()) }

// Children returns the PIDs of a process's immediate children.
func Children(parent int) []int { return children()(parent) }

// holders are the names of processes that hold the namespaces of all containers of
// rootless Podman.
var holders = []string{"podman pause\n", "catatonit\n"}

// OnlyHolders reports whether this process has no children except those that hold the
// namespaces of a container runtime.
func OnlyHolders() bool {
	return !slices.ContainsFunc(Children(os.Getpid()), func(pid int) bool {
		name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
		return err == nil && !slices.Contains(holders, string(name))
	})
}

// SignalDescendants signals the Descendants. It skips those that can't be signaled, most
// of which have just exited.
func SignalDescendants(sig syscall.Signal, without ...int) {
	for _, d := range Descendants(without...) {
		d.Signal(sig)
	}
}

// FreezeDescendants stops every process below this one, in rounds until it finds no new
// one: processes that fork faster than they can be killed can't fork while they are
// stopped.
func FreezeDescendants() {
	const mostRounds = 50
	stopped := map[Descendant]bool{}
	for range mostRounds {
		before := len(stopped)
		for _, d := range Descendants() {
			if !stopped[d] {
				d.Signal(syscall.SIGSTOP)
				stopped[d] = true
			}
		}
		if len(stopped) == before {
			return
		}
	}
}

func descendantsBy(root int, childrenOf func(parent int) []int) []Descendant {
	var found []Descendant
	for next := []int{root}; len(next) > 0; {
		parent := next[0]
		next = next[1:]
		for _, pid := range childrenOf(parent) {
			s, err := readStat(pid)
			if err != nil || (s.parent != parent && s.parent != root) {
				continue // it exited, and its PID might have been reused
			}
			next = append(next, pid)
			if !s.zombie {
				found = append(found, Descendant{pid, s.start})
			}
		}
	}
	return found
}

// children returns a function that lists children by the best means of this kernel.
func children() func(parent int) []int {
	if _, err := childrenOfThread(os.Getpid(), strconv.Itoa(os.Getpid())); err != nil {
		return childrenSearched()
	}
	return childrenListed
}

// childrenListed reads the kernel's lists, one per thread. Its cost does not depend on
// the number of processes on the machine.
func childrenListed(parent int) []int {
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(parent), "task"))
	if err != nil {
		return nil
	}
	var pids []int
	for _, thread := range threads {
		if listed, err := childrenOfThread(parent, thread.Name()); err == nil {
			pids = append(pids, listed...)
		}
	}
	return pids
}

func childrenOfThread(pid int, thread string) ([]int, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "task", thread, "children"))
	if err != nil {
		return nil, err
	}
	var pids []int
	for field := range bytes.FieldsSeq(data) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// childrenSearched reads the parent of every process on the machine, once. It is for
// kernels without lists of children.
func childrenSearched() func(parent int) []int {
	byParent := map[int][]int{}
	pids, err := allPIDs()
	if err != nil {
		return func(int) []int { return nil }
	}
	for _, pid := range pids {
		if s, err := readStat(pid); err == nil {
			byParent[s.parent] = append(byParent[s.parent], pid)
		}
	}
	return func(parent int) []int { return byParent[parent] }
}
