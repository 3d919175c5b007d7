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

// serviceCgroup is the cgroup to which this process moves if it must leave its own: a
// cgroup that sets limits for its children can't contain processes itself.
const serviceCgroup = "molrun-service"

// controlCgroup is where systemd runs the auxiliary commands of a unit with Delegate=yes.
const controlCgroup = ".control"

// jobsCgroup returns the parent cgroup of the jobs' cgroups, and a phrase for each limit
// that can't be set for them.
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
			missing = append(missing, fmt.Sprintf("the %s limit is monitored, not enforced: %v", controller, err))
		}
	}
	return parent, missing, nil
}

// ownCgroup returns the directory of this process's cgroup in the unified hierarchy.
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
	case serviceCgroup, // set by an earlier start or the unit file
		controlCgroup: // systemd runs ExecStopPost there
		dir = filepath.Dir(dir)
	}
	return dir, nil
}

// DisableControllers disables the controllers of the jobs' cgroups once the service has ended, so
// that systemd can put a new service into their parent cgroup: it does so before it
// starts any program, and the kernel refuses while that cgroup sets limits for its
// children. Until then running tasks watch their limits themselves. The new service
// enables the controllers again, and the tasks then set their limits again.
func DisableControllers() error {
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

// withdraw disables all controllers for the children of parent.
func withdraw(parent string) error {
	enabled, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
	for _, controller := range bytes.Fields(enabled) {
		err = errors.Join(err, process.WriteControl(parent, "cgroup.subtree_control", "-"+string(controller)))
	}
	return err
}

// unifiedPath parses the line "0::/system.slice/molrun.service".
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
	return "", errors.New("this machine has no cgroup v2")
}

// unifiedMount returns the mount point of the cgroup v2 file system, and which cgroup is
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
	return "", "", errors.New("cgroup v2 is not mounted")
}

func checkCgroup(dir string) error {
	const magic = 0x63677270 // CGROUP2_SUPER_MAGIC, see statfs(2)
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if s.Type != magic {
		return fmt.Errorf("%s is not a cgroup v2 directory", dir)
	}
	return nil
}

// delegate enables a controller for the children of parent.
func delegate(parent, controller string) error {
	available, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(bytes.Fields(available), func(name []byte) bool { return string(name) == controller }) {
		return errors.New("the cgroup has no such controller")
	}
	err = process.WriteControl(parent, "cgroup.subtree_control", "+"+controller)
	if errors.Is(err, syscall.EBUSY) { // parent contains processes
		if err = leave(parent); err == nil {
			err = process.WriteControl(parent, "cgroup.subtree_control", "+"+controller)
		}
	}
	return err
}

// leave moves this process from parent into its own cgroup. It fails if parent contains
// other processes, which it must not move.
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
