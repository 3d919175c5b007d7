// Package place gives a program in a shared sandbox its own mount namespace, with its own
// work directory, /tmp and /dev/shm, and its own IPC namespace.
package place

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"molrun/app/task/process"
)

// ErrIncompatible means that a shared sandbox can't be created, or can't be used for a
// step.
var ErrIncompatible = errors.New("no sandbox can be shared")

// Mounts describes what a step sees in a shared sandbox in addition to what all steps see.
type Mounts struct {
	Above             string   `json:"above"`          // folder of all work directories; programs see only their own
	Kept              []string `json:"kept,omitempty"` // paths below /tmp that all steps see
	Work              string   `json:"work"`
	Temp              string   `json:"temp"` // name below Work; mounted as /tmp
	ReadOnly          []string `json:"readOnly,omitempty"`
	SharedMemoryBytes int64    `json:"sharedMemoryBytes,omitempty"`
	CPUs              []int    `json:"cpus,omitempty"`
}

// Temp is the path of temporary files in the sandbox.
const Temp = "/tmp"

const (
	openPath      = 0x200000 // O_PATH: a location in the tree, not its content
	noPrivileges  = syscall.MS_NOSUID | syscall.MS_NODEV
	coverSettings = "mode=0755,size=64k,nr_inodes=64"
)

// ForkExec starts a program in this mount namespace. All errors wrap ErrIncompatible,
// unless they are due to the program.
func (p *Mounts) ForkExec(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread exits with this function
		if err = p.enter(); err == nil {
			err = process.DenyCalls(attr.Sys.UseCgroupFD)
		}
		if err == nil {
			pid, err = syscall.ForkExec(path, argv, attr)
			if err == nil || !attr.Sys.UseCgroupFD {
				return
			}
		}
		err = fmt.Errorf("%w: %w", ErrIncompatible, err) // this can also be an error of the program, which a separate sandbox will report
	}()
	<-done
	return pid, err
}

// enter moves this thread to new mount and IPC namespaces and drops its capabilities.
// Programs that it starts inherit this; the thread itself is not usable for anything
// else. Every path that a program might have created is opened without following links.
func (p *Mounts) enter() error {
	if err := syscall.Unshare(syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := p.setUpMounts(); err != nil {
		return err
	}
	if len(p.CPUs) > 0 {
		if err := process.Pin(p.CPUs); err != nil {
			fmt.Fprintln(os.Stderr, err) // the program runs on other CPUs, perhaps slower
		}
	}
	return process.DropCapabilities()
}

// setUpMounts sets up the mount namespace.
func (p *Mounts) setUpMounts() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the view private: %w", err)
	}
	var o opened
	defer o.close()
	work := o.open(p.Work, syscall.O_DIRECTORY)
	temp := o.below(work, p.Temp, syscall.O_DIRECTORY)
	kept := map[string]int{}
	for _, path := range p.Kept {
		if exists(path) { // otherwise bwrap did not find it
			kept[path] = o.open(path, 0)
		}
	}
	if o.err != nil {
		return o.err
	}
	if err := bind(temp, Temp, 0); err != nil {
		return err
	}
	for _, path := range p.Kept {
		if fd, found := kept[path]; found {
			if err := keepVisible(fd, path); err != nil {
				return err
			}
		}
	}
	if err := p.cover(); err != nil {
		return err
	}
	if err := bind(work, p.Work, 0); err != nil {
		return err
	}
	if err := p.protect(); err != nil {
		return err
	}
	if err := remountReadOnly(p.Above); err != nil {
		return err
	}
	settings := "mode=0755"
	if p.SharedMemoryBytes > 0 {
		settings += fmt.Sprintf(",size=%d", p.SharedMemoryBytes)
	}
	if err := syscall.Mount("tmpfs", "/dev/shm", "tmpfs", noPrivileges, settings); err != nil {
		return fmt.Errorf("make /dev/shm: %w", err)
	}
	return nil
}

// keepVisible mounts a path that all steps see in the new /tmp.
func keepVisible(fd int, path string) error {
	var s syscall.Stat_t
	if err := syscall.Fstat(fd, &s); err != nil {
		return err
	}
	if err := MakePoint(path, s.Mode&syscall.S_IFMT == syscall.S_IFDIR); err != nil {
		return err
	}
	return bind(fd, path, syscall.MS_REC)
}

// MakePoint creates a folder or file as a mount point, unless it exists.
func MakePoint(path string, folder bool) error {
	if exists(path) {
		return nil
	}
	if folder {
		return os.MkdirAll(path, 0o700)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// cover hides the folder of all work directories under one that contains only this one.
func (p *Mounts) cover() error {
	if strings.HasPrefix(p.Above, Temp+"/") {
		if err := os.MkdirAll(p.Above, 0o700); err != nil {
			return err
		}
	}
	if err := syscall.Mount("tmpfs", p.Above, "tmpfs", noPrivileges, coverSettings); err != nil {
		return fmt.Errorf("cover the folder of all work directories: %w", err)
	}
	return os.MkdirAll(p.Work, 0o755)
}

// protect makes paths read-only.
func (p *Mounts) protect() error {
	var o opened
	defer o.close()
	work := o.open(p.Work, syscall.O_DIRECTORY)
	for _, name := range p.ReadOnly {
		at := o.below(work, name, 0)
		if o.err != nil {
			return o.err
		}
		if err := bind(at, descriptor(at), 0); err != nil {
			return err
		}
		if at = o.below(work, name, 0); o.err != nil { // the new mount
			return o.err
		}
		if err := remountReadOnly(descriptor(at)); err != nil {
			return err
		}
	}
	return o.err
}

func descriptor(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

func bind(fd int, to string, flags uintptr) error {
	if err := syscall.Mount(descriptor(fd), to, "", syscall.MS_BIND|flags, ""); err != nil {
		return fmt.Errorf("bind %s: %w", to, err)
	}
	return nil
}

// remountReadOnly keeps the other flags of a mount, which can't be cleared.
func remountReadOnly(path string) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return err
	}
	const relatime = 0x1000 // ST_RELATIME; the other flags equal those of mount(2)
	flags := uintptr(s.Flags) & (noPrivileges | syscall.MS_NOEXEC | syscall.MS_NOATIME | syscall.MS_NODIRATIME)
	if s.Flags&relatime != 0 {
		flags |= syscall.MS_RELATIME
	}
	if err := syscall.Mount("", path, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY|flags, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", path, err)
	}
	return nil
}

// opened holds descriptors of locations in the tree. It keeps the first error.
type opened struct {
	fds []int
	err error
}

func (o *opened) open(path string, flags int) int { return o.below(atCurrentDir, path, flags) }

const atCurrentDir = -100 // AT_FDCWD

func (o *opened) below(dir int, path string, flags int) int {
	if o.err != nil {
		return -1
	}
	fd, err := syscall.Openat(dir, path, openPath|syscall.O_NOFOLLOW|syscall.O_CLOEXEC|flags, 0)
	if err != nil {
		o.err = fmt.Errorf("open %s: %w", path, err)
		return -1
	}
	o.fds = append(o.fds, fd)
	return fd
}

func (o *opened) close() {
	for _, fd := range o.fds {
		syscall.Close(fd)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
