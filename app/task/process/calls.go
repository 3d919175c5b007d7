package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of denied system calls by architecture. They have had security bugs in the
// kernel and are not needed in a sandbox; container runtimes deny them, too. The order is
// acct, add_key, bpf, delete_module, finit_module, init_module, kexec_load,
// kexec_file_load, keyctl, mount, umount2, open_by_handle_at, perf_event_open,
// pivot_root, quotactl, reboot, request_key, setns, swapoff, swapon, syslog, userfaultfd.
var deniedCalls = map[uint32][]uint32{
	unix.AUDIT_ARCH_X86_64:  {163, 248, 321, 176, 313, 175, 246, 320, 250, 165, 166, 304, 298, 155, 179, 169, 249, 308, 168, 167, 103, 323},
	unix.AUDIT_ARCH_I386:    {51, 286, 357, 129, 350, 128, 283, 288, 21, 22, 52, 342, 336, 217, 131, 88, 287, 346, 115, 87, 103, 374}, // umount instead of kexec_file_load
	unix.AUDIT_ARCH_AARCH64: {89, 217, 280, 106, 273, 105, 104, 294, 219, 40, 39, 265, 241, 41, 60, 142, 218, 268, 225, 224, 116, 282},
	unix.AUDIT_ARCH_ARM:     {51, 309, 386, 129, 379, 128, 347, 401, 311, 21, 52, 371, 364, 218, 131, 88, 310, 375, 115, 87, 103, 388},
}

// newerCalls have the same number on all architectures: io_uring_setup, io_uring_enter,
// io_uring_register, open_tree, move_mount, fsopen, fsconfig, fsmount, fspick,
// mount_setattr, quotactl_fd.
var newerCalls = []uint32{425, 426, 427, 428, 429, 430, 431, 432, 433, 442, 443}

// namespaceCalls are clone and unshare, which are denied if they create namespaces.
var namespaceCalls = map[uint32][]uint32{
	unix.AUDIT_ARCH_X86_64: {56, 272}, unix.AUDIT_ARCH_I386: {120, 310},
	unix.AUDIT_ARCH_AARCH64: {220, 97}, unix.AUDIT_ARCH_ARM: {120, 337},
}

const (
	clone3             = 435        // a filter can't see its flags
	anyNamespace       = 0x7e020000 // CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET
	firstOfX32         = 0x40000000 // a third system call interface of amd64 kernels
	offsetNumber       = 0          // of seccomp_data
	offsetArch         = 4
	offsetFirst        = 16
	answerAllow        = unix.SECCOMP_RET_ALLOW
	answerErrno        = unix.SECCOMP_RET_ERRNO
	load               = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jumpEqual          = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpFrom           = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	jumpAny            = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	ret                = unix.BPF_RET | unix.BPF_K
	seccompFilter      = 1 // SECCOMP_SET_MODE_FILTER
	seccompActionAvail = 2 // SECCOMP_GET_ACTION_AVAIL
)

// CanDenyCalls reports whether the kernel supports system call filters.
func CanDenyCalls() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, seccompActionAvail, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// CallFilter returns the filter of DenyCalls in the format of bwrap.
func CallFilter() (filter []byte) {
	for _, f := range denyFilter(false) {
		filter = binary.NativeEndian.AppendUint16(filter, f.Code)
		filter = binary.NativeEndian.AppendUint32(append(filter, f.Jt, f.Jf), f.K)
	}
	return filter
}

// DenyCalls makes system calls that sandboxed programs do not need fail with EPERM, in
// this thread and all processes that it starts. clone3 fails with ENOSYS, so that glibc
// and Go use other calls, unless this process itself needs it to start a program in a
// cgroup. If the kernel does not support filters, nothing is denied.
func DenyCalls(cgroup bool) error {
	filter := denyFilter(cgroup)
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("set no_new_privs: %w", errno)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, seccompFilter, 0, uintptr(unsafe.Pointer(&program)))
	if errno != 0 && !errors.Is(errno, syscall.ENOSYS) && !errors.Is(errno, syscall.EINVAL) {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}

// denyFilter returns the filter. All calls of an unknown architecture fail.
func denyFilter(cgroup bool) []unix.SockFilter {
	filter := []unix.SockFilter{{Code: load, K: offsetArch}}
	for arch := range deniedCalls {
		part := denialFor(arch, cgroup)
		filter = append(filter, unix.SockFilter{Code: jumpEqual, Jf: uint8(len(part)), K: arch})
		filter = append(filter, part...)
	}
	return append(filter, unix.SockFilter{Code: ret, K: answerErrno | uint32(syscall.ENOSYS)})
}

func denialFor(arch uint32, cgroup bool) []unix.SockFilter {
	filter := []unix.SockFilter{{Code: load, K: offsetNumber}}
	deny := func(jump uint16, k uint32, errno syscall.Errno) {
		filter = append(filter, unix.SockFilter{Code: jump, Jf: 1, K: k}, unix.SockFilter{Code: ret, K: answerErrno | uint32(errno)})
	}
	deny(jumpFrom, firstOfX32, syscall.ENOSYS)
	if !cgroup {
		deny(jumpEqual, clone3, syscall.ENOSYS)
	}
	for _, numbers := range [][]uint32{deniedCalls[arch], newerCalls} {
		for _, n := range numbers {
			deny(jumpEqual, n, syscall.EPERM)
		}
	}
	filter = append(filter, unix.SockFilter{Code: jumpEqual, Jt: 2, K: namespaceCalls[arch][0]},
		unix.SockFilter{Code: jumpEqual, Jt: 1, K: namespaceCalls[arch][1]},
		unix.SockFilter{Code: ret, K: answerAllow},
		unix.SockFilter{Code: load, K: offsetFirst})
	deny(jumpAny, anyNamespace, syscall.EPERM)
	return append(filter, unix.SockFilter{Code: ret, K: answerAllow})
}
