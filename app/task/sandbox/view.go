package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// systemFolders hold the system's programs and libraries, which every program can read. A
// folder that is a symbolic link, such as /bin to /usr/bin, is also a link inside.
var systemFolders = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
}

// systemTopology exposes the number and topology of CPUs.
const systemTopology = "/sys/devices/system"

// optional holds third-party programs, one folder each.
const optional = "/opt"

// view describes what programs in a sandbox see of the machine.
type view struct {
	work     string   // readable and writable, with the same path inside
	readOnly []string // below work
	temp     string   // mounted as /tmp
	shared   bool     // steps have their own mount namespaces: work is the folder of all work directories, and temp is not used
	read     []string // read-only, in addition to the system's own
	hide     []string // hidden paths; work, and read paths below them, stay visible
	devices  []string
	network  bool
	cgroups  bool  // programs start in cgroups next to the sandbox's, which the kernel forbids in a nested cgroup namespace
	closed   bool  // no user namespaces; even without it the system call filter denies them, unless programs start in cgroups
	shmBytes int64 // size of /dev/shm; 0 means the kernel's default

	// scratchBytes, if not 0, is the size of work and of /tmp. Both are then initially
	// empty, kept in memory and removed with the sandbox.
	scratchBytes int64
}

// initArguments returns bwrap's arguments for a sandbox whose first process is Init.
func (v *view) initArguments() []string {
	a := append([]string{"--as-pid-1"}, v.arguments(namesFD)...)
	a = append(a, "--", "/proc/self/fd/"+strconv.Itoa(programFD), "task", "--inside")
	if v.shared {
		a = append(a, "--shared")
	}
	return a
}

// arguments returns bwrap's arguments, which it applies in this order. The descriptors
// starting with names hold the users, groups and hosts that exist inside.
func (v *view) arguments(names int) []string {
	a := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL",
	}
	if !v.cgroups {
		a = append(a, "--unshare-cgroup-try")
	}
	if v.shared {
		a = append(a, "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP") // for the first process only
	}
	if v.closed {
		a = append(a, "--disable-userns")
	}
	if !v.network {
		a = append(a, "--unshare-net")
	}
	system := append(v.system(), etcArguments(etc, v.read)...)
	a = append(a, system...)
	a = append(a, v.names(names)...)
	a = append(a, "--proc", "/proc")
	a = append(a, v.deviceFolder()...)
	a = append(a, "--dir", "/run", "--dir", "/var", "--symlink", "/tmp", "/var/tmp")
	a = append(a, v.writable(v.temp, "/tmp")...)
	readings, covers := v.readBinds(bound(system))
	a = append(a, readings...)
	a = append(a, v.writable(v.work, v.work)...)
	for _, path := range v.readOnly {
		a = append(a, "--ro-bind", path, path)
	}
	// The root and the covers are each a tmpfs, which programs must not fill up.
	for _, path := range covers {
		a = append(a, "--remount-ro", path)
	}
	folder := v.work
	if v.shared {
		folder = "/"
	}
	return append(a, "--remount-ro", "/", "--chdir", folder)
}

// writable mounts a folder that programs can write to.
func (v *view) writable(dir, inside string) []string {
	if v.scratchBytes > 0 {
		return []string{"--size", strconv.FormatInt(v.scratchBytes, 10), "--tmpfs", inside}
	}
	if dir == "" {
		return []string{"--tmpfs", inside}
	}
	return []string{"--bind", dir, inside}
}

// readBinds binds the readable paths: first those that contain hidden paths, which are
// then covered.
func (v *view) readBinds(system []string) (a, covers []string) {
	wide, narrow := divide(v.read, v.hide)
	bind := func(paths []string) {
		for _, path := range paths {
			a = append(a, "--ro-bind-try", path, path) // molrun's own file can be missing while it is replaced
		}
	}
	bind(wide)
	masks, covers := masks(v.hide, append(wide, system...))
	a = append(a, masks...)
	bind(narrow)
	return a, covers
}

// bound returns the paths that these arguments bind.
func bound(arguments []string) (paths []string) {
	for i, a := range arguments {
		if a == "--ro-bind-try" {
			paths = append(paths, arguments[i+2])
		}
	}
	return paths
}

// system makes the system's folders and the public entries of /opt visible.
func (v *view) system() []string {
	var a []string
	for _, path := range systemFolders {
		if target, err := os.Readlink(path); err == nil {
			a = append(a, "--symlink", target, path)
		} else {
			a = append(a, "--ro-bind-try", path, path)
		}
	}
	a = append(a, "--ro-bind-try", systemTopology, systemTopology)
	return append(a, v.publicEntries(optional)...)
}

// publicEntries makes the public entries of a folder visible. Links such as rocm to rocm-6.0
// stay links.
func (v *view) publicEntries(folder string) (a []string) {
	entries, _ := os.ReadDir(folder) // unreadable entries stay hidden
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		info, err := e.Info()
		switch {
		case err != nil || isHidden(path, v.hide):
		case isPublic(info):
			a = append(a, "--ro-bind-try", path, path)
		default:
			if target, ok := keptLink(path, path, v.read); ok {
				a = append(a, "--symlink", target, path)
			}
		}
	}
	return a
}

// names creates the users, groups and hosts of the sandbox. The machine's hosts and name
// servers could be links to paths that programs do not see, such as /etc/resolv.conf to
// /run.
func (v *view) names(first int) (a []string) {
	a = []string{"--file", strconv.Itoa(first), "/etc/passwd", "--file", strconv.Itoa(first + 1), "/etc/group"}
	if !v.network {
		return append(a, "--file", strconv.Itoa(first+2), "/etc/hosts")
	}
	return append(a, "--ro-bind-try", "/etc/hosts", "/etc/hosts", "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf")
}

// IsVisible reports whether programs see a path of the machine, provided that it exists and
// is publicly readable.
func IsVisible(path string) bool {
	if isBelow(path, etc) {
		return path == etc || isVisibleInEtc(path)
	}
	return slices.ContainsFunc(append([]string{optional}, systemFolders...), func(folder string) bool { return isBelow(path, folder) })
}

// isPublic reports whether all users can read the file or enter the folder.
func isPublic(info fs.FileInfo) bool {
	if info.IsDir() {
		return info.Mode()&0o005 == 0o005
	}
	return info.Mode().IsRegular() && info.Mode()&0o004 != 0
}

// deviceFolder creates /dev with the virtual devices (null, zero, random) and the granted
// ones, which programs also find in /sys.
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
