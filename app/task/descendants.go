package task

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// process is a descendant of this process, as seen at one moment.
type process struct {
	pid   int
	start uint64
}

// signal reaches the process only if it is still the one that was seen.
func (p process) signal(sig syscall.Signal) error {
	return signalIf(p.pid, sig, func() bool {
		s, err := readStat(p.pid)
		return err == nil && s.start == p.start
	})
}

// descendants gives the living processes below this one. Since orphans become
// its own children (a subreaper), none can leave that tree; but one that is
// being born may be missed, so who wants them all gone asks again.
func descendants() []process {
	if _, err := listed(os.Getpid(), strconv.Itoa(os.Getpid())); err != nil {
		return descendantsBy(childrenSearched()) // a kernel without such lists
	}
	return descendantsBy(childrenListed)
}

// children gives the numbers of a process's own children.
func children(parent int) []int {
	if _, err := listed(os.Getpid(), strconv.Itoa(os.Getpid())); err != nil {
		return childrenSearched()(parent)
	}
	return childrenListed(parent)
}

func descendantsBy(childrenOf func(parent int) []int) []process {
	var found []process
	self := os.Getpid()
	for next := []int{self}; len(next) > 0; {
		parent := next[0]
		next = next[1:]
		for _, pid := range childrenOf(parent) {
			s, err := readStat(pid)
			if err != nil || (s.parent != parent && s.parent != self) {
				continue // it ended, and the number may be another's already
			}
			next = append(next, pid)
			if !s.zombie {
				found = append(found, process{pid, s.start})
			}
		}
	}
	return found
}

// childrenListed reads the kernel's lists, one per thread: cheap however many
// processes the machine runs.
func childrenListed(parent int) []int {
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(parent), "task"))
	if err != nil {
		return nil
	}
	var all []int
	for _, thread := range threads {
		pids, err := listed(parent, thread.Name())
		if err == nil {
			all = append(all, pids...)
		}
	}
	return all
}

func listed(pid int, thread string) ([]int, error) {
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

// childrenSearched asks every process of the machine for its parent, once.
func childrenSearched() func(parent int) []int {
	byParent := map[int][]int{}
	all, err := processes()
	if err != nil {
		return func(int) []int { return nil }
	}
	for _, pid := range all {
		if s, err := readStat(pid); err == nil {
			byParent[s.parent] = append(byParent[s.parent], pid)
		}
	}
	return func(parent int) []int { return byParent[parent] }
}
