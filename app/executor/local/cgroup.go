package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// serviceGroup is where this process goes if it has to make room: a cgroup that
// shares out its resources holds no process itself.
const serviceGroup = "molrun-service"

// jobsCgroup finds the cgroup below which jobs get theirs, and tells which
// limits it can't set for them.
func jobsCgroup(configured string) (parent string, lacks []string, err error) {
	parent = configured
	if parent == "" {
		if parent, err = ownCgroup("/proc"); err != nil {
			return "", nil, err
		}
	}
	if err := isCgroup(parent); err != nil {
		return "", nil, err
	}
	for _, controller := range []string{"memory", "pids"} {
		if err := share(parent, controller); err != nil {
			lacks = append(lacks, fmt.Sprintf("the %s limit is watched, not enforced: %v", controller, err))
		}
	}
	return parent, lacks, nil
}

// ownCgroup finds the folder of this process's cgroup in the unified hierarchy.
func ownCgroup(proc string) (string, error) {
	own, err := unifiedPath(filepath.Join(proc, "self/cgroup"))
	if err != nil {
		return "", err
	}
	root, point, err := unifiedMount(filepath.Join(proc, "self/mountinfo"))
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(root, own)
	if err != nil || strings.HasPrefix(rel, "..") {
		return "", fmt.Errorf("the cgroup %s of this process is not below %s", own, point)
	}
	dir := filepath.Join(point, rel)
	if filepath.Base(dir) == serviceGroup { // an earlier start, or a unit file, put it there
		dir = filepath.Dir(dir)
	}
	return dir, nil
}

// unifiedPath reads the line "0::/system.slice/molrun.service".
func unifiedPath(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path, nil
		}
	}
	return "", errors.New("this machine has no cgroups of version 2")
}

// unifiedMount finds where cgroups of version 2 are mounted, and which of them
// is the topmost seen there.
func unifiedMount(file string) (root, point string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(data)) {
		mount, system, _ := strings.Cut(line, " - ")
		fields := strings.Fields(mount)
		if strings.HasPrefix(system, "cgroup2 ") && len(fields) > 4 {
			return fields[3], fields[4], nil
		}
	}
	return "", "", errors.New("cgroups of version 2 are not mounted")
}

func isCgroup(dir string) error {
	const magic = 0x63677270 // CGROUP2_SUPER_MAGIC of statfs(2)
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if s.Type != magic {
		return fmt.Errorf("%s is no cgroup of version 2", dir)
	}
	return nil
}

// share lets the cgroups below parent have limits of a controller.
func share(parent, controller string) error {
	available, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return err
	}
	if !contains(available, controller) {
		return errors.New("the cgroup has no such controller")
	}
	err = passOn(parent, controller)
	if errors.Is(err, syscall.EBUSY) {
		if err = makeRoom(parent); err == nil {
			err = passOn(parent, controller)
		}
	}
	return err
}

func contains(words []byte, word string) bool {
	for field := range bytes.FieldsSeq(words) {
		if string(field) == word {
			return true
		}
	}
	return false
}

func passOn(dir, controller string) error {
	return control(filepath.Join(dir, "cgroup.subtree_control"), "+"+controller)
}

func control(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// makeRoom moves this process out of parent into a cgroup of its own, where it is
// alone there: of others nothing is known.
func makeRoom(parent string) error {
	pids, err := os.ReadFile(filepath.Join(parent, "cgroup.procs"))
	if err != nil {
		return err
	}
	if self := strconv.Itoa(os.Getpid()); strings.TrimSpace(string(pids)) != self {
		return fmt.Errorf("other processes are in %s", parent)
	}
	own := filepath.Join(parent, serviceGroup)
	if err := os.Mkdir(own, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return control(filepath.Join(own, "cgroup.procs"), strconv.Itoa(os.Getpid()))
}
