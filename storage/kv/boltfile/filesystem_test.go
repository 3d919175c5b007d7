package boltfile

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestNetworkFileSystemsAreUnsafe(t *testing.T) {
	for magic, want := range map[uint32]struct {
		name string
		safe bool
	}{
		0x6969: {"NFS", false}, 0xFF534D42: {"CIFS", false}, 0xFE534D42: {"SMB2", false}, 0x517B: {"SMB", false},
		0x01021997: {"9p", false}, 0x65735546: {"FUSE", false}, 0x00C36400: {"Ceph", false}, 0x0BD00BD0: {"Lustre", false},
		0xEF53: {"ext4", true}, 0x58465342: {"xfs", true}, 0x9123683E: {"btrfs", true}, 0x2FC12FC1: {"zfs", true},
		0x01021994: {"tmpfs", true}, 0x794C7630: {"overlay", true}, 0xABCD: {"file system 0xabcd", true},
	} {
		got := fileSystemOf(magic)
		if got.Name != want.name || (got.Unsafe == "") != want.safe {
			t.Errorf("%#x is %+v, want %+v", magic, got, want)
		}
	}
}

func TestMountKindIsFoundByDevice(t *testing.T) {
	const mounts = `22 28 0:21 / /sys rw,nosuid shared:7 - sysfs sysfs rw
36 35 0:45 / /mnt/far rw,noatime shared:1 - fuse.sshfs ann@host:/data rw,user_id=0
37 35 259:1048577 / / rw - ext4 /dev/nvme0n1p1 rw
38 35 74565:7 / /y rw - xfs /dev/y rw
39 0:46 rw
40 35 0:46 / /x rw - 
`
	device := func(major, minor uint64) uint64 {
		return minor&0xFF | major&0xFFF<<8 | minor&^0xFF<<12 | major&^0xFFF<<32
	}
	for want, dev := range map[string]uint64{"fuse.sshfs": device(0, 45), "ext4": device(259, 1048577), "xfs": device(0x12345, 7), "": device(0, 46)} {
		must.Equal(t, fmt.Sprintf("device %#x", dev), kindOfDevice(mounts, dev), want)
	}
	if fs, err := FileSystemOf(t.TempDir()); err != nil || fs.Name == "" || strings.Contains(fs.Unsafe, "another machine") {
		t.Errorf("this directory lies on %+v, %v", fs, err)
	}
}
