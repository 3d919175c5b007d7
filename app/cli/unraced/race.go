//go:build race

package unraced

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// suffix makes the name of the program of that of the test binary.
const suffix = ".unraced"

// init runs before that of package app/task/start, which runs a task and exits: of the
// packages whose imports are initialised, Go takes the one whose path sorts first.
func init() {
	if len(os.Args) < 2 || os.Args[1] != "task" && os.Args[1] != "engine" {
		return
	}
	_ = syscall.Exec(Program(), os.Args, os.Environ()) // goes on here if there is none, as where only one file is seen
}

// Program is molrun without the race detector. There is none before Build.
func Program() string {
	own, _ := os.Executable() // Build would have failed
	return own + suffix
}

// Build makes the program next to the test binary; remove it in the end.
func Build() (remove func() error, err error) {
	if _, err := os.Executable(); err != nil {
		return nil, err
	}
	c := exec.Command("go", "build", "-buildvcs=false", "-o", Program(), "molrun")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build molrun without the race detector: %w", err), errors.New(string(out)))
	}
	return func() error { return os.Remove(Program()) }, nil
}
