package process

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

// Cgroup is a cgroup (version 2) that holds all programs of a task. No process can leave
// it, so all of them can be counted and killed at once.
type Cgroup struct {
	dir      string
	settings []cgroupSetting
}

// cgroupPrefix starts the names of tasks' cgroups, to distinguish them from others below
// the same parent.
const cgroupPrefix = "molrun-task-"

// CgroupLimits limits what the processes of a cgroup use together.
type CgroupLimits struct {
	MemoryBytes, Processes int64 // 0 means no limit
}

// MakeCgroup makes the cgroup of a task's token below parent. It might already exist,
// from the previous step.
func MakeCgroup(parent, token string, l CgroupLimits) (*Cgroup, error) {
	g := cgroupOf(parent, token)
	g.settings = l.settings()
	if err := os.Mkdir(g.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the task's cgroup: %w", err)
	}
	for _, s := range g.settings {
		// Without the controller, package task monitors the limit itself.
		if err := WriteControl(g.dir, s.file, s.value); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("set up the task's cgroup: %w", err)
		}
	}
	return g, nil
}

func cgroupOf(parent, token string) *Cgroup {
	return &Cgroup{dir: filepath.Join(parent, cgroupPrefix+token)}
}

// KeepLimits restores limits that the kernel has lost, as it does when the controllers of
// the parent were off while the service restarted.
func (g *Cgroup) KeepLimits() error {
	for _, s := range g.settings {
		now, err := os.ReadFile(filepath.Join(g.dir, s.file))
		if err != nil || strings.TrimSpace(string(now)) != s.initial {
			continue // without the controller, package task monitors the limit itself
		}
		if err := WriteControl(g.dir, s.file, s.value); err != nil {
			return fmt.Errorf("restore the limits of the task's cgroup: %w", err)
		}
	}
	return nil
}

// cgroupSetting is the value of a control file, and the value in a new cgroup.
type cgroupSetting struct{ file, value, initial string }

func (l CgroupLimits) settings() []cgroupSetting {
	var all []cgroupSetting
	if l.MemoryBytes > 0 {
		all = append(all, cgroupSetting{"memory.max", strconv.FormatInt(l.MemoryBytes, 10), "max"},
			cgroupSetting{"memory.swap.max", "0", "max"}, cgroupSetting{"memory.oom.group", "1", "0"})
	}
	if l.Processes > 0 {
		all = append(all, cgroupSetting{"pids.max", strconv.FormatInt(l.Processes+extraThreads, 10), "max"})
	}
	return all
}

// WriteControl writes a control file of a cgroup. It never creates the file: on another
// file system that would succeed and have no effect.
func WriteControl(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// OpenDir opens the cgroup's directory, to start processes in it.
func (g *Cgroup) OpenDir() (*os.File, error) { return os.Open(g.dir) }

// Kill kills every process in the cgroup, including those that are just being
// forked.
func (g *Cgroup) Kill() error { return WriteControl(g.dir, "cgroup.kill", "1") }

// OOMKills counts the processes of the cgroup that the kernel killed because
// the cgroup reached its memory limit.
func (g *Cgroup) OOMKills() int64 { return g.count("memory.events", "oom_kill") }

// ForksRefused counts how often the kernel denied the cgroup a process or thread because
// it had reached its limit.
func (g *Cgroup) ForksRefused() int64 { return g.count("pids.events", "max") }

func (g *Cgroup) populated() bool { return g.count("cgroup.events", "populated") != 0 }

// count reads a line such as "oom_kill 2" from one of the cgroup's files. It returns 0 if
// there is none.
func (g *Cgroup) count(file, field string) int64 {
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

// Gone reports whether the cgroup has been removed.
func (g *Cgroup) Gone() bool {
	_, err := os.Lstat(g.dir)
	return errors.Is(err, fs.ErrNotExist)
}

// Remove removes the cgroup and those that programs created below it. It fails while a
// process remains.
func (g *Cgroup) Remove() error {
	entries, err := os.ReadDir(g.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, (&Cgroup{dir: filepath.Join(g.dir, e.Name())}).Remove())
		}
	}
	if err = errors.Join(err, syscall.Rmdir(g.dir)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// KillCgroup kills the remaining processes in the cgroup of a token below parent, waits
// until they have exited or ctx is done, and removes the cgroup. It is for tasks whose
// own process has exited.
func KillCgroup(ctx context.Context, parent, token string) error {
	g := cgroupOf(parent, token)
	if token == "" || filepath.Dir(g.dir) != filepath.Clean(parent) {
		return nil
	}
	if _, err := os.Stat(g.dir); err != nil {
		return nil
	}
	for g.populated() {
		if err := g.Kill(); err != nil {
			return fmt.Errorf("kill the task's cgroup: %w", err)
		}
		if err := pause(ctx, killPause); err != nil {
			return fmt.Errorf("the processes of cgroup %s were killed but have not exited: %w", g.dir, err)
		}
	}
	return g.Remove()
}

// RemoveEmptyCgroups removes the empty cgroups below parent that finished tasks left. A
// running task's cgroup is not empty, or is created again for the next step.
func RemoveEmptyCgroups(parent string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return fmt.Errorf("find leftover cgroups: %w", err)
	}
	for _, e := range entries {
		g := &Cgroup{dir: filepath.Join(parent, e.Name())}
		if e.IsDir() && strings.HasPrefix(e.Name(), cgroupPrefix) && !g.populated() {
			g.Remove() // fails if a process has since been started in it
		}
	}
	return nil
}
