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

// sharedSandbox is the sandbox of a pilot's tasks, in which they get slots. It is made when
// it is first needed, and again after a task had to be killed with it.
type sharedSandbox struct {
	above        string          // folder that holds the directories of the tasks to come; "": none is shared
	incompatible bool            // it can't be had here
	box          *sandbox.Shared // nil: there is none
	busy         bool            // the step that runs is in it
	twice        float64         // CPU seconds that the kernel has counted for sandboxes which have ended, and that are no task's or were counted for one
}

// folderAbove returns the folder that holds all these directories, "" for fewer than two.
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

// reaped reports whether the process that has ended was that of the sandbox, and notes it.
func (s *sharedSandbox) reaped(pid int) bool {
	if s.box.Alive() != pid {
		return false
	}
	s.twice += s.box.Gone()
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
	s.twice += process.ChildrenSeconds() - before
	s.box = nil
}

// idle is the process of the sandbox if the step that runs is not in it.
func (s *sharedSandbox) idle() []int {
	if pid := s.box.Alive(); pid > 0 && !s.busy {
		return []int{pid}
	}
	return nil
}

// only reports whether this process has no child but the sandbox.
func (s *sharedSandbox) only() bool {
	pid := s.box.Alive()
	return pid > 0 && !slices.ContainsFunc(process.Children(os.Getpid()), func(child int) bool { return child != pid })
}
