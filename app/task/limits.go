package task

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// ownThreads is room for what runs beside the program in a sandbox.
const ownThreads = 64

const rlimitProcesses = 6 // RLIMIT_NPROC of setrlimit(2)

// limit sets what this process and all that it starts may use. Processes are
// counted by user and user namespace, so this is for a sandbox, where nobody
// else's count; the kernel exempts root, whom others watch.
func limit(processes, fileBytes int64) error {
	if processes > 0 {
		if err := lower(0, rlimitProcesses, uint64(processes+ownThreads)); err != nil {
			return fmt.Errorf("limit processes: %w", err)
		}
	}
	return limitFiles(0, fileBytes)
}

// limitFiles bounds the files that process pid writes; 0 is this process.
func limitFiles(pid int, fileBytes int64) error {
	if fileBytes <= 0 {
		return nil
	}
	if err := lower(pid, syscall.RLIMIT_FSIZE, uint64(fileBytes)); err != nil {
		return fmt.Errorf("limit files: %w", err)
	}
	return nil
}

// withFileLimit runs start while this process has the limit that the program,
// which start starts, is to inherit. Nothing is written meanwhile.
func withFileLimit(fileBytes int64, start func() error) error {
	if fileBytes <= 0 {
		return start()
	}
	var own syscall.Rlimit
	if err := prlimit(0, syscall.RLIMIT_FSIZE, nil, &own); err != nil {
		return fmt.Errorf("limit files: %w", err)
	}
	passed := syscall.Rlimit{Cur: min(uint64(fileBytes), own.Cur), Max: own.Max}
	if err := prlimit(0, syscall.RLIMIT_FSIZE, &passed, nil); err != nil {
		return fmt.Errorf("limit files: %w", err)
	}
	err := start()
	if back := prlimit(0, syscall.RLIMIT_FSIZE, &own, nil); back != nil {
		fmt.Fprintf(os.Stderr, "lift the limit of files: %v\n", back) // what it still writes is smaller
	}
	return err
}

// lower sets a limit, for good, where it is not lower yet.
func lower(pid, resource int, to uint64) error {
	var now syscall.Rlimit
	if err := prlimit(pid, resource, nil, &now); err != nil {
		return err
	}
	to = min(to, now.Max)
	return prlimit(pid, resource, &syscall.Rlimit{Cur: to, Max: to}, nil)
}

func prlimit(pid, resource int, to, now *syscall.Rlimit) error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), uintptr(resource),
		uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(now)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
