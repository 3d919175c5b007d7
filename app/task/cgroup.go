package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// group is a cgroup (version 2) that holds all programs of a task. No process
// leaves it by itself: what is in it can be killed at once, and counted.
type group struct {
	dir string
}

// groupPrefix begins the names of the cgroups that tasks make, so that they are
// told from others beside them.
const groupPrefix = "molrun-task-"

func groupOf(parent, token string) *group { return &group{filepath.Join(parent, groupPrefix+token)} }

// groupLimits are what the programs of a group may use together.
type groupLimits struct {
	memoryBytes, processes int64 // 0 is no limit
}

// makeGroup makes the group of a token below parent. It may be there already,
// from the step before.
func makeGroup(parent, token string, l groupLimits) (*group, error) {
	g := groupOf(parent, token)
	if err := os.Mkdir(g.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the task's cgroup: %w", err)
	}
	for _, s := range l.settings() {
		// Where the controller is not there, others watch the limit.
		if err := writeControl(g.dir, s.file, s.value); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("set up the task's cgroup: %w", err)
		}
	}
	return g, nil
}

type groupSetting struct{ file, value string }

func (l groupLimits) settings() []groupSetting {
	var all []groupSetting
	if l.memoryBytes > 0 {
		all = append(all, groupSetting{"memory.max", strconv.FormatInt(l.memoryBytes, 10)},
			groupSetting{"memory.swap.max", "0"}, groupSetting{"memory.oom.group", "1"})
	}
	if l.processes > 0 {
		all = append(all, groupSetting{"pids.max", strconv.FormatInt(l.processes+ownThreads, 10)})
	}
	return all
}

// writeControl writes a control file, which is never made: a file of that name
// on another file system would do nothing.
func writeControl(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// kill kills every process in the group at once, those being born included.
func (g *group) kill() error { return writeControl(g.dir, "cgroup.kill", "1") }

// count reads a line such as "oom_kill 2" of one of the group's files; 0 where
// there is none.
func (g *group) count(file, field string) int64 {
	data, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		name, number, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if string(name) == field {
			n, _ := strconv.ParseInt(string(number), 10, 64) // the kernel writes numbers
			return n
		}
	}
	return 0
}

func (g *group) populated() bool { return g.count("cgroup.events", "populated") != 0 }

// remove removes the group and those that programs have made below it. It fails
// while a process is left.
func (g *group) remove() error {
	entries, err := os.ReadDir(g.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, (&group{filepath.Join(g.dir, e.Name())}).remove())
		}
	}
	if err = errors.Join(err, syscall.Rmdir(g.dir)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// KillGroup kills what is left in the cgroup of a token below parent, waits
// until it is gone or ctx ends, and removes the group. It is for tasks whose own
// process is gone.
func KillGroup(ctx context.Context, parent, token string) error {
	g := groupOf(parent, token)
	if token == "" || filepath.Dir(g.dir) != filepath.Clean(parent) || !exists(g.dir) {
		return nil
	}
	for g.populated() {
		if err := g.kill(); err != nil {
			return fmt.Errorf("kill the task's cgroup: %w", err)
		}
		if err := pause(ctx, killPause); err != nil {
			return fmt.Errorf("the processes of cgroup %s are killed and still there: %w", g.dir, err)
		}
	}
	return g.remove()
}

// SweepGroups removes empty groups that ended tasks have left below parent.
// Those of living tasks are not empty, or are made again for the next step.
func SweepGroups(parent string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return fmt.Errorf("look for left cgroups: %w", err)
	}
	for _, e := range entries {
		g := &group{filepath.Join(parent, e.Name())}
		if e.IsDir() && strings.HasPrefix(e.Name(), groupPrefix) && !g.populated() {
			g.remove() // a process may have come in meanwhile
		}
	}
	return nil
}
