package task

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"molrun/app/task/process"
	"molrun/app/task/sandbox"
)

// sharedSandbox is the sandbox in which a worker's tasks get slots. It is created when it
// is first needed, and again after a task had to be killed together with it.
type sharedSandbox struct {
	above         string          // folder of the directories of the coming tasks; "" means no sharing
	incompatible  bool            // it is not possible here
	box           *sandbox.Shared // nil if there is none
	busy          bool            // the running step is in it
	doubleCounted float64         // CPU seconds that the kernel counted for sandboxes that have ended, and that belong to no task or were already counted for one
}

// folderAbove returns the folder that contains all these directories, or "" for fewer
// than two.
func folderAbove(dirs []string) string {
	if len(dirs) < 2 {
		return ""
	}
	above := filepath.Dir(dirs[0])
	for _, dir := range dirs {
		for above != "/" && !strings.HasPrefix(dir, above+"/") {
			above = filepath.Dir(above)
		}
	}
	return above
}

// reaped records the end of the sandbox if pid was its process, and reports whether it
// was.
func (s *sharedSandbox) reaped(pid int) bool {
	if s.box.Alive() != pid {
		return false
	}
	s.doubleCounted += s.box.Gone()
	return true
}

// discard ends the sandbox, if there is one.
func (s *sharedSandbox) discard() {
	if s.box == nil {
		return
	}
	before := process.ChildrenSeconds()
	if err := s.box.Discard(); err != nil {
		fmt.Fprintf(os.Stderr, "end the shared sandbox: %v\n", err)
	}
	s.doubleCounted += process.ChildrenSeconds() - before
	s.box = nil
}

// idle returns the process of the sandbox if the running step is not in it.
func (s *sharedSandbox) idle() []int {
	if pid := s.box.Alive(); pid > 0 && !s.busy {
		return []int{pid}
	}
	return nil
}

// only reports whether the sandbox is the only child of this process.
func (s *sharedSandbox) only() bool {
	pid := s.box.Alive()
	return pid > 0 && !slices.ContainsFunc(process.Children(os.Getpid()), func(child int) bool { return child != pid })
}
