package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// systemFolders hold the system's programs and libraries, which every program
// may read. If one is a link, as /bin to /usr/bin, it is a link inside, too.
var systemFolders = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
}

// systemTopology tells programs the number and topology of CPUs.
const systemTopology = "/sys/devices/system"

// optional holds programs of other makers, a folder each.
const optional = "/opt"

// view is what programs in a sandbox see of the machine.
type view struct {
	work     string   // read and written, under its own path
	readOnly []string // below work
	temp     string   // appears as /tmp
	shared   bool     // by steps, each of which gets a place: work is the folder above all, and temp is not used
	read     []string // beyond the system's own, only read
	hide     []string // unless it is work or below what is hidden, and in read
	etc      string   // copy of what programs see of /etc; "": they see its own entries
	devices  []string
	network  bool
	cgroups  bool  // programs are started in cgroups beside that of the sandbox, which the kernel allows nobody in a cgroup namespace below
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
	if !v.network {
		a = append(a, "--unshare-net")
	}
	system := v.system()
	a = append(a, system...)
	a = append(a, v.settings(names)...)
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

// readings lets in what may be read, first what holds something hidden, which is then covered.
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

// system lets in what is the same for all programs: the system's folders, and what everybody may enter
// of /opt.
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
	entries, _ := os.ReadDir(optional) // what can't be read stays outside
	for _, e := range entries {
		path := filepath.Join(optional, e.Name())
		info, err := e.Info()
		if err == nil && isPublic(info) && !isHidden(path, v.hide) {
			a = append(a, "--ro-bind-try", path, path)
		}
	}
	return a
}

// settings makes /etc: what everybody may read of it, with users, groups and hosts of its own. Those of
// the machine may be links to where programs see nothing, as /etc/resolv.conf to /run.
func (v *view) settings(names int) (a []string) {
	if v.etc != "" {
		a = []string{"--ro-bind", v.etc, etc}
	} else {
		for _, each := range settingsOf(v.read, v.hide).all(etc) {
			if each.target != "" {
				a = append(a, "--symlink", each.target, each.path)
			} else {
				a = append(a, "--ro-bind-try", each.path, each.path)
			}
		}
		a = append(a, "--file", strconv.Itoa(names), "/etc/passwd", "--file", strconv.Itoa(names+1), "/etc/group")
		if !v.network {
			a = append(a, "--file", strconv.Itoa(names+2), "/etc/hosts")
		}
	}
	if v.network {
		for _, name := range networkNames {
			a = append(a, "--ro-bind-try", filepath.Join(etc, name), filepath.Join(etc, name))
		}
	}
	return a
}

// useCopy takes the copy of /etc, if it is there and has a place for all that is let in beside it.
func (v *view) useCopy(path string) {
	at := resolved(path)
	if path == "" || !exists(path) || slices.ContainsFunc(v.read, func(read string) bool {
		place := filepath.Join(at, strings.TrimPrefix(read, etc))
		return isBelow(read, etc) && (!exists(place) || resolved(place) != place)
	}) {
		return
	}
	v.etc = path
}

// Shows reports whether programs see what is at a path of the machine, if anything is and everybody may read it.
func Shows(path string) bool {
	if isBelow(path, etc) {
		parts := strings.Split(strings.TrimPrefix(path, etc), "/")
		left := slices.Concat(madeInside, serviceNames)
		return len(parts) < 2 || !slices.Contains(left, parts[1]) && !slices.ContainsFunc(parts, secret)
	}
	return slices.ContainsFunc(append([]string{optional}, systemFolders...), func(folder string) bool { return isBelow(path, folder) })
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
