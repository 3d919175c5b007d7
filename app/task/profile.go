package task

import (
	"os"
	"path/filepath"
	"strconv"
)

// systemFolders are what every program may read: the system's own programs and
// libraries. Where one is a link, as /bin to /usr/bin, it is one inside, too.
var systemFolders = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
}

// systemFiles are the parts of /etc that programs need to find their libraries,
// to tell the time and to choose among installed programs. None holds a secret.
var systemFiles = []string{
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
	"/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/nsswitch.conf",
	"/etc/fonts", "/etc/OpenCL", "/etc/openmpi", "/etc/R",
	"/sys/devices/system", // how many CPUs there are, and how they lie
}

// networkFiles are what programs need besides to reach other machines.
var networkFiles = []string{
	"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/services", "/etc/protocols", "/etc/gai.conf",
	"/etc/ssl/certs", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted", "/etc/crypto-policies",
}

// profile is the view of the machine that the programs of one step get.
type profile struct {
	work     string   // read and written, under its own path
	inputs   []string // below work, only read
	temp     string   // seen as /tmp
	read     []string // beyond the system's own, only read
	devices  []string
	network  bool
	shmBytes int64 // of /dev/shm; 0 leaves it to the kernel

	// scratchBytes, where not 0, is how much fits into work and into /tmp, which
	// then begin empty and go with the sandbox. Nothing of the disk is written.
	scratchBytes int64
}

// arguments are those of bwrap for a task.
func (p *profile) arguments() []string {
	a := append([]string{"--as-pid-1"}, p.view(insideAccounts, insideGroups)...)
	return append(a, "--", "/proc/self/fd/"+strconv.Itoa(insideSelf), "task", "--inside")
}

// view are arguments of bwrap that make what programs see, in the order in which
// it does things. Two descriptors give what users and groups there are.
func (p *profile) view(accounts, groups int) []string {
	a := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL",
	}
	if !p.network {
		a = append(a, "--unshare-net")
	}
	a = append(a, p.system()...)
	a = append(a, "--file", strconv.Itoa(accounts), "/etc/passwd", "--file", strconv.Itoa(groups), "/etc/group")
	a = append(a, "--proc", "/proc")
	a = append(a, p.deviceFolder()...)
	a = append(a, "--dir", "/run", "--dir", "/var", "--symlink", "/tmp", "/var/tmp")
	a = append(a, p.writable(p.temp, "/tmp")...)
	for _, path := range p.read {
		a = append(a, "--ro-bind", path, path)
	}
	a = append(a, p.writable(p.work, p.work)...)
	for _, path := range p.inputs {
		a = append(a, "--ro-bind", path, path)
	}
	// The root itself is memory, which is not for programs to fill.
	return append(a, "--remount-ro", "/", "--chdir", p.work)
}

// writable makes a folder that programs write to.
func (p *profile) writable(dir, seenAs string) []string {
	if p.scratchBytes > 0 {
		return []string{"--size", strconv.FormatInt(p.scratchBytes, 10), "--tmpfs", seenAs}
	}
	return []string{"--bind", dir, seenAs}
}

func (p *profile) system() []string {
	var a []string
	for _, path := range systemFolders {
		if target, err := os.Readlink(path); err == nil {
			a = append(a, "--symlink", target, path)
		} else {
			a = append(a, "--ro-bind-try", path, path)
		}
	}
	files := systemFiles
	if p.network {
		files = append(files[:len(files):len(files)], networkFiles...)
	}
	for _, path := range files {
		a = append(a, "--ro-bind-try", path, path)
	}
	return a
}

// deviceFolder makes /dev: the devices that are none (null, zero, random), and
// those that were granted. Programs find these in /sys, too.
func (p *profile) deviceFolder() []string {
	a := []string{"--dev", "/dev"}
	if p.shmBytes > 0 {
		a = append(a, "--size", strconv.FormatInt(p.shmBytes, 10))
	}
	a = append(a, "--tmpfs", "/dev/shm")
	for _, path := range p.devices {
		a = append(a, "--dev-bind", path, path)
	}
	if len(p.devices) > 0 {
		a = append(a, "--ro-bind-try", "/sys", "/sys")
	}
	return append(a, "--remount-ro", "/dev")
}

// ownInputs gives what of the work directory is only read. A program may have
// put something else in its place by now: a link is not followed.
func ownInputs(work string) []string {
	var own []string
	if info, err := os.Lstat(filepath.Join(work, InDir)); err == nil && info.IsDir() {
		own = append(own, filepath.Join(work, InDir))
	}
	if info, err := os.Lstat(filepath.Join(work, SettingsFile)); err == nil && info.Mode().IsRegular() {
		own = append(own, filepath.Join(work, SettingsFile))
	}
	return own
}
