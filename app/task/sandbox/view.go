package sandbox

import (
	"os"
	"strconv"
)

// systemFolders hold the system's programs and libraries, which every program
// may read. If one is a link, as /bin to /usr/bin, it is a link inside, too.
var systemFolders = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
}

// systemFiles are what programs need to find their libraries, to tell the time
// and to choose among installed programs. None holds a secret.
var systemFiles = []string{
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
	"/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/nsswitch.conf",
	"/etc/fonts", "/etc/OpenCL", "/etc/openmpi", "/etc/R",
	"/sys/devices/system", // number and topology of CPUs
}

// networkFiles are what programs also need to reach other machines.
var networkFiles = []string{
	"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/services", "/etc/protocols", "/etc/gai.conf",
	"/etc/ssl/certs", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted", "/etc/crypto-policies",
}

// view is what programs in a sandbox see of the machine.
type view struct {
	work     string   // read and written, under its own path
	readOnly []string // below work
	temp     string   // appears as /tmp
	read     []string // beyond the system's own, only read
	devices  []string
	network  bool
	shmBytes int64 // size of /dev/shm; 0 leaves it to the kernel

	// scratchBytes, if not 0, is the size of work and of /tmp. Both then begin
	// empty, are kept in memory and vanish with the sandbox.
	scratchBytes int64
}

// initArguments are bwrap's arguments for a sandbox whose first process is Init.
func (v *view) initArguments() []string {
	a := append([]string{"--as-pid-1"}, v.arguments(accountsFD, groupsFD)...)
	return append(a, "--", "/proc/self/fd/"+strconv.Itoa(programFD), "task", "--inside")
}

// arguments are bwrap's arguments, which it follows in this order. The two
// descriptors hold the users and groups that exist inside.
func (v *view) arguments(accounts, groups int) []string {
	a := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL",
	}
	if !v.network {
		a = append(a, "--unshare-net")
	}
	a = append(a, v.system()...)
	a = append(a, "--file", strconv.Itoa(accounts), "/etc/passwd", "--file", strconv.Itoa(groups), "/etc/group")
	a = append(a, "--proc", "/proc")
	a = append(a, v.deviceFolder()...)
	a = append(a, "--dir", "/run", "--dir", "/var", "--symlink", "/tmp", "/var/tmp")
	a = append(a, v.writable(v.temp, "/tmp")...)
	for _, path := range v.read {
		a = append(a, "--ro-bind-try", path, path) // this program may just be replaced
	}
	a = append(a, v.writable(v.work, v.work)...)
	for _, path := range v.readOnly {
		a = append(a, "--ro-bind", path, path)
	}
	// The root is a tmpfs, which programs must not fill.
	return append(a, "--remount-ro", "/", "--chdir", v.work)
}

// writable makes a folder that programs write to.
func (v *view) writable(dir, inside string) []string {
	if v.scratchBytes > 0 {
		return []string{"--size", strconv.FormatInt(v.scratchBytes, 10), "--tmpfs", inside}
	}
	return []string{"--bind", dir, inside}
}

func (v *view) system() []string {
	var a []string
	for _, path := range systemFolders {
		if target, err := os.Readlink(path); err == nil {
			a = append(a, "--symlink", target, path)
		} else {
			a = append(a, "--ro-bind-try", path, path)
		}
	}
	files := systemFiles
	if v.network {
		files = append(files[:len(files):len(files)], networkFiles...)
	}
	for _, path := range files {
		a = append(a, "--ro-bind-try", path, path)
	}
	return a
}

// deviceFolder makes /dev: the virtual devices (null, zero, random), and those
// that were granted, which programs also find in /sys.
func (v *view) deviceFolder() []string {
	a := []string{"--dev", "/dev"}
	if v.shmBytes > 0 {
		a = append(a, "--size", strconv.FormatInt(v.shmBytes, 10))
	}
	a = append(a, "--tmpfs", "/dev/shm")
	for _, path := range v.devices {
		a = append(a, "--dev-bind", path, path)
	}
	if len(v.devices) > 0 {
		a = append(a, "--ro-bind-try", "/sys", "/sys")
	}
	return append(a, "--remount-ro", "/dev")
}
