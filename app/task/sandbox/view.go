package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// systemFolders hold the system's programs and libraries, which every program
// may read. If one is a link, as /bin to /usr/bin, it is a link inside, too.
var systemFolders = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
}

// systemTopology shows programs the number and topology of CPUs.
const systemTopology = "/sys/devices/system"

// optional holds programs of other makers, a folder each.
const optional = "/opt"

// view is what programs in a sandbox see of the machine.
type view struct {
	work     string   // read and written, under its own path
	readOnly []string // below work
	temp     string   // appears as /tmp
	shared   bool     // by steps, each with its own mount namespace: work is the folder above all, and temp is not used
	read     []string // beyond the system's own, only read
	hide     []string // unless it is work or below what is hidden, and in read
	devices  []string
	network  bool
	cgroups  bool  // programs are started in cgroups beside that of the sandbox, which the kernel allows nobody in a cgroup namespace below
	closed   bool  // no user namespaces; also without it, system calls are denied that make them, unless programs start in cgroups
	shmBytes int64 // size of /dev/shm; 0 leaves it to the kernel

	// scratchBytes, if not 0, is the size of work and of /tmp. Both then begin
	// empty, are kept in memory and vanish with the sandbox.
	scratchBytes int64
}

// initArguments are bwrap's arguments for a sandbox whose first process is Init.
func (v *view) initArguments() []string {
	a := append([]string{"--as-pid-1"}, v.arguments(namesFD)...)
	a = append(a, "--", "/proc/self/fd/"+strconv.Itoa(programFD), "task", "--inside")
	if v.shared {
		a = append(a, "--shared")
	}
	return a
}

// arguments are bwrap's arguments, which it follows in this order. The descriptors from
// names on hold the users, groups and hosts that exist inside.
func (v *view) arguments(names int) []string {
	a := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL",
	}
	if !v.cgroups {
		a = append(a, "--unshare-cgroup-try")
	}
	if v.shared {
		a = append(a, "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP") // of the first process alone
	}
	if v.closed {
		a = append(a, "--disable-userns")
	}
	if !v.network {
		a = append(a, "--unshare-net")
	}
	system := append(v.system(), settings(etc, v.read)...)
	a = append(a, system...)
	a = append(a, v.names(names)...)
	a = append(a, "--proc", "/proc")
	a = append(a, v.deviceFolder()...)
	a = append(a, "--dir", "/run", "--dir", "/var", "--symlink", "/tmp", "/var/tmp")
	a = append(a, v.writable(v.temp, "/tmp")...)
	readings, covers := v.readings(bound(system))
	a = append(a, readings...)
	a = append(a, v.writable(v.work, v.work)...)
	for _, path := range v.readOnly {
		a = append(a, "--ro-bind", path, path)
	}
	// The root and the covers are each a tmpfs, which programs must not fill.
	for _, path := range covers {
		a = append(a, "--remount-ro", path)
	}
	folder := v.work
	if v.shared {
		folder = "/"
	}
	return append(a, "--remount-ro", "/", "--chdir", folder)
}

// writable makes a folder that programs write to.
func (v *view) writable(dir, inside string) []string {
	if v.scratchBytes > 0 {
		return []string{"--size", strconv.FormatInt(v.scratchBytes, 10), "--tmpfs", inside}
	}
	if dir == "" {
		return []string{"--tmpfs", inside}
	}
	return []string{"--bind", dir, inside}
}

// readings binds the readable paths, first those that contain hidden paths, which are then covered.
func (v *view) readings(system []string) (a, covers []string) {
	wide, narrow := divide(v.read, v.hide)
	bind := func(paths []string) {
		for _, path := range paths {
			a = append(a, "--ro-bind-try", path, path) // this program may just be replaced
		}
	}
	bind(wide)
	masks, covers := masks(v.hide, append(wide, system...))
	a = append(a, masks...)
	bind(narrow)
	return a, covers
}

// bound returns what these arguments bind.
func bound(arguments []string) (paths []string) {
	for i, a := range arguments {
		if a == "--ro-bind-try" {
			paths = append(paths, arguments[i+2])
		}
	}
	return paths
}

// system lets in the system's folders, and what everybody may enter of /opt.
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
	return append(a, v.publicOf(optional)...)
}

// publicOf lets in what everybody may enter of a folder. Links such as rocm to rocm-6.0 stay links.
func (v *view) publicOf(folder string) (a []string) {
	entries, _ := os.ReadDir(folder) // what can't be read stays outside
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

// names makes the users, groups and hosts of the sandbox. The hosts and name servers of the machine may be links to
// where programs see nothing, as /etc/resolv.conf to /run.
func (v *view) names(first int) (a []string) {
	a = []string{"--file", strconv.Itoa(first), "/etc/passwd", "--file", strconv.Itoa(first + 1), "/etc/group"}
	if !v.network {
		return append(a, "--file", strconv.Itoa(first+2), "/etc/hosts")
	}
	return append(a, "--ro-bind-try", "/etc/hosts", "/etc/hosts", "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf")
}

// Shows reports whether programs see what is at a path of the machine, if anything is and everybody may read it.
func Shows(path string) bool {
	if isBelow(path, etc) {
		return path == etc || showsOfEtc(path)
	}
	return slices.ContainsFunc(append([]string{optional}, systemFolders...), func(folder string) bool { return isBelow(path, folder) })
}

// isPublic reports whether everybody may read the file or enter the folder.
func isPublic(info fs.FileInfo) bool {
	if info.IsDir() {
		return info.Mode()&0o005 == 0o005
	}
	return info.Mode().IsRegular() && info.Mode()&0o004 != 0
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
