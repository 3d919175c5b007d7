package task

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"molrun/app/task/process"
	"molrun/app/task/sandbox"
)

// startSandboxed starts the program in a sandbox of its own.
func (r *runningStep) startSandboxed(path string, stdout, stderr *os.File) error {
	c := sandbox.Config{
		Bubblewrap: r.isolation.Bubblewrap,
		Token:      r.spec.Token,
		Allowed:    r.isolation.Sandbox,
		Work:       r.work,
		ReadOnly:   readOnlyInputs(r.work),
		GPUs:       r.spec.grantedGPUs(),
		Stdout:     stdout, Stderr: stderr,
		Fork: r.forkExec,
		Started: func(first process.ID) error {
			return writeUnsynced(r.dir, SandboxFile, sandboxRecord{Protocol, first})
		},
	}
	if r.isolation.Sized {
		c.SharedMemoryBytes = r.spec.MemoryBytes
	}
	s, err := sandbox.Start(c, sandbox.Program{
		Path: path, Argv: r.step.Argv, Env: r.env, Work: r.work,
		Processes: r.isolation.Processes, FileBytes: r.isolation.FileBytes,
	})
	if err != nil {
		return err
	}
	r.sandbox, r.leader = s, s.PID
	return nil
}

// readOnlyInputs returns the parts of the work directory that programs may only
// read. An earlier step may have replaced them: links are not followed.
func readOnlyInputs(work string) []string {
	var inputs []string
	if info, err := os.Lstat(filepath.Join(work, InDir)); err == nil && info.IsDir() {
		inputs = append(inputs, filepath.Join(work, InDir))
	}
	if info, err := os.Lstat(filepath.Join(work, SettingsFile)); err == nil && info.Mode().IsRegular() {
		inputs = append(inputs, filepath.Join(work, SettingsFile))
	}
	return inputs
}

// sandboxRecord is the content of sandbox.json: the first process in the
// sandbox. When it has ended, nothing inside is left.
type sandboxRecord struct {
	Protocol int `json:"protocol"`
	process.ID
}

// AwaitSandboxEnd waits until the sandbox of a task whose own process is gone
// has ended, or ctx ends.
func AwaitSandboxEnd(ctx context.Context, dir string) error {
	r, err := read[sandboxRecord](dir, SandboxFile)
	if err != nil {
		return nil // no sandbox
	}
	if err := r.AwaitEnd(ctx); err != nil {
		return fmt.Errorf("the task's sandbox is still there: %w", err)
	}
	return nil
}
