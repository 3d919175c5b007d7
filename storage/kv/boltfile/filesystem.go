package boltfile

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"molrun/app/base/fault"
)

// FileSystem is the file system of a path.
type FileSystem struct {
	Name string

	// Unsafe is the reason why it cannot hold a database, or "" if it can.
	Unsafe string
}

// Reasons why file systems are unsafe.
const (
	unsafeNetwork = "locks and syncs are unreliable on a network file system"
	unsafeUnknown = "its backing storage is unknown, and its locks and syncs are unreliable"
	unsafeMemory  = "all data is lost when the machine stops"
)

// fileSystems lists the known file systems by their statfs(2) magic numbers. Unlisted
// ones count as local disks.
var fileSystems = map[uint32]FileSystem{
	0x6969:     {"NFS", unsafeNetwork},
	0x517B:     {"SMB", unsafeNetwork},
	0xFF534D42: {"CIFS", unsafeNetwork},
	0xFE534D42: {"SMB2", unsafeNetwork},
	0x01021997: {"9p", unsafeNetwork},
	0x5346414F: {"AFS", unsafeNetwork},
	0x73757245: {"Coda", unsafeNetwork},
	0x00C36400: {"Ceph", unsafeNetwork},
	0x0BD00BD0: {"Lustre", unsafeNetwork},
	0x47504653: {"GPFS", unsafeNetwork},
	0x19830326: {"BeeGFS", unsafeNetwork},
	0x7461636F: {"OCFS2", unsafeNetwork},
	0x01161970: {"GFS2", unsafeNetwork},
	0x65735546: {"FUSE", unsafeUnknown},
	0x01021994: {"tmpfs", ""}, // allowed for tests and demonstrations; molrun doctor warns
	0x858458F6: {"ramfs", unsafeMemory},
	0xEF53:     {"ext4", ""},
	0x58465342: {"xfs", ""},
	0x9123683E: {"btrfs", ""},
	0x2FC12FC1: {"zfs", ""},
	0xF2F52010: {"f2fs", ""},
	// Files are written to the upper layer, on a local disk. They are lost with the
	// container, which doctor reports.
	0x794C7630: {"overlay", ""},
}

// fuseLocal lists the FUSE file systems on local disks by their names in
// /proc/self/mountinfo.
var fuseLocal = map[string]bool{"fuseblk": true, "fuse.fuse-overlayfs": true}

// FileSystemOf returns the file system of an existing path.
func FileSystemOf(path string) (FileSystem, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return FileSystem{}, fmt.Errorf("inspect the file system of %s: %w", path, err)
	}
	fs := fileSystemOf(uint32(s.Type))
	if fs.Name == "FUSE" {
		if kind := mountKind(path); kind != "" {
			fs.Name = kind
			if fuseLocal[kind] {
				fs.Unsafe = ""
			}
		}
	}
	return fs, nil
}

func fileSystemOf(magic uint32) FileSystem {
	if fs, ok := fileSystems[magic]; ok {
		return fs
	}
	return FileSystem{Name: fmt.Sprintf("file system %#x", magic)}
}

// mountKind returns the type of the mount of a path, such as fuse.sshfs, or "" if it is
// unknown.
func mountKind(path string) string {
	var s syscall.Stat_t
	if err := syscall.Stat(path, &s); err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return kindOfDevice(string(mounts), uint64(s.Dev))
}

// kindOfDevice finds the mount type of a device in lines such as
//
//	36 35 0:45 / /mnt rw,noatime shared:1 - fuse.sshfs ann@host:/ rw
func kindOfDevice(mounts string, device uint64) string {
	// The kernel splits both the major and the minor number into two groups of bits.
	major := device>>8&0xFFF | device>>32&^0xFFF
	minor := device&0xFF | device>>12&0xFFFFFF00
	want := fmt.Sprintf("%d:%d", major, minor)
	for line := range strings.Lines(mounts) {
		left, right, found := strings.Cut(line, " - ")
		fields, kind := strings.Fields(left), strings.Fields(right)
		if found && len(fields) > 2 && fields[2] == want && len(kind) > 0 {
			return kind[0]
		}
	}
	return ""
}

// RefuseFileSystem returns an error if commits to files in the directory could be lost.
func RefuseFileSystem(dir string) error {
	fs, err := FileSystemOf(dir)
	if err != nil || fs.Unsafe == "" {
		return err
	}
	return fault.Errorf(fault.Invalid, "the data directory is on %s, which is unsafe for a database: %s; "+
		"choose a directory on a local disk, or override this check with database.file_system = \"any\"", fs.Name, fs.Unsafe)
}
