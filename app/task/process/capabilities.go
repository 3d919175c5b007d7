package process

import (
	"fmt"
	"syscall"
	"unsafe"
)

// DropCapabilities permanently removes all capabilities from this thread and the programs
// that it starts, even if they belong to root.
func DropCapabilities() error {
	const (
		dropBounding   = 24 // PR_CAPBSET_DROP of prctl(2)
		ambient        = 47 // PR_CAP_AMBIENT
		clearAll       = 4  // PR_CAP_AMBIENT_CLEAR_ALL
		version3       = 0x20080522
		mostCapability = 63
	)
	for capability := range uintptr(mostCapability + 1) {
		_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, dropBounding, capability, 0)
		if errno == syscall.EINVAL {
			break // the last capability of this kernel
		}
		if errno != 0 {
			return fmt.Errorf("drop capability %d: %w", capability, errno)
		}
	}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, ambient, clearAll, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("drop the ambient capabilities: %w", errno)
	}
	header := struct {
		version uint32
		pid     int32
	}{version: version3}
	var none [6]uint32 // effective, permitted and inheritable, twice
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0); errno != 0 {
		return fmt.Errorf("drop the capabilities: %w", errno)
	}
	return nil
}
