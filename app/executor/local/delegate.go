package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"molrun/app/task/process"
)

// serviceCgroup is where this process moves if it has to leave its cgroup: a
// cgroup with limits for the ones below it must not hold processes itself.
const serviceCgroup = "molrun-service"

// controlCgroup is where systemd runs other commands of a unit with Delegate=yes.
const controlCgroup = ".control"

// jobsCgroup returns the cgroup below which jobs get theirs, and a sentence part
// for each limit that it can't set for them.
func jobsCgroup(configured string) (parent string, missing []string, err error) {
	parent = configured
	if parent == "" {
		if parent, err = ownCgroup("/proc"); err != nil {
			return "", nil, err
		}
	}
	if err := checkCgroup(parent); err != nil {
		return "", nil, err
	}
	for _, controller := range []string{"memory", "pids"} {
		if err := delegate(parent, controller); err != nil {
			missing = append(missing, fmt.Sprintf("the %s limit is watched, not enforced: %v", controller, err))
		}
	}
	return parent, missing, nil
}

// ownCgroup returns the directory of this process's cgroup in the unified
// hierarchy.
func ownCgroup(proc string) (string, error) {
	own, err := unifiedPath(filepath.Join(proc, "self/cgroup"))
	if err != nil {
		return "", err
	}
	root, mount, err := unifiedMount(filepath.Join(proc, "self/mountinfo"))
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(root, own)
	if err != nil || strings.HasPrefix(rel, "..") {
		return "", fmt.Errorf("the cgroup %s of this process is not below %s", own, mount)
	}
	dir := filepath.Join(mount, rel)
	switch filepath.Base(dir) {
	case serviceCgroup, // an earlier start, or a unit file, put it there
		controlCgroup: // systemd runs what follows an end there
		dir = filepath.Dir(dir)
	}
	return dir, nil
}

// MakeRoom takes the controllers from the cgroups of jobs once the service has ended, so that
// systemd can put a new service into the cgroup above these: it does so before it starts any
// program, and the kernel refuses it while that cgroup has limits for those below. Running
// tasks watch their limits meanwhile. The new service turns the controllers on again, and the
// tasks then set their limits again.
func MakeRoom() error {
	own, err := unifiedPath("/proc/self/cgroup")
	if err != nil {
		return err
	}
	if filepath.Base(own) != controlCgroup {
		return fmt.Errorf("this process is in the cgroup %s, not in one that systemd gives to ExecStopPost of a unit with Delegate=yes", own)
	}
	parent, err := ownCgroup("/proc")
	if err == nil {
		err = checkCgroup(parent)
	}
	if err != nil {
		return err
	}
	return withdraw(parent)
}

// withdraw disables all controllers for the cgroups below parent.
func withdraw(parent string) error {
	enabled, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
	for _, controller := range bytes.Fields(enabled) {
		err = errors.Join(err, process.WriteControl(parent, "cgroup.subtree_control", "-"+string(controller)))
	}
	return err
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

// unifiedMount returns the mount point of cgroups of version 2, and which cgroup is
// mounted there.
func unifiedMount(file string) (root, mount string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(data)) {
		text, system, _ := strings.Cut(line, " - ")
		fields := strings.Fields(text)
		if strings.HasPrefix(system, "cgroup2 ") && len(fields) > 4 {
			return fields[3], fields[4], nil
		}
	}
	return "", "", errors.New("cgroups of version 2 are not mounted")
}

func checkCgroup(dir string) error {
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

// delegate enables a controller for the cgroups below parent.
func delegate(parent, controller string) error {
	available, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(bytes.Fields(available), func(name []byte) bool { return string(name) == controller }) {
		return errors.New("the cgroup has no such controller")
	}
	err = process.WriteControl(parent, "cgroup.subtree_control", "+"+controller)
	if errors.Is(err, syscall.EBUSY) { // it holds processes
		if err = leave(parent); err == nil {
			err = process.WriteControl(parent, "cgroup.subtree_control", "+"+controller)
		}
	}
	return err
}

// leave moves this process from parent into a cgroup of its own. It fails if
// parent holds other processes, which it must not move.
func leave(parent string) error {
	pids, err := os.ReadFile(filepath.Join(parent, "cgroup.procs"))
	if err != nil {
		return err
	}
	self := strconv.Itoa(os.Getpid())
	if strings.TrimSpace(string(pids)) != self {
		return fmt.Errorf("other processes are in %s", parent)
	}
	own := filepath.Join(parent, serviceCgroup)
	if err := os.Mkdir(own, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return process.WriteControl(own, "cgroup.procs", self)
}
