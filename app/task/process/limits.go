package process

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"unsafe"
)

// extraThreads is added to the program's process limit for the threads of the sandbox's
// first process.
const extraThreads = 64

const rlimitProcesses = 6 // RLIMIT_NPROC of setrlimit(2)

// Limit sets limits on the number of processes and the size of files, for this process
// and all that it starts; 0 means no limit. The kernel counts processes by user and user
// namespace, so this is for a sandbox, which has its own namespace. The kernel exempts
// root, whose processes package task counts.
func Limit(processes, fileBytes int64) error {
	if processes > 0 {
		if err := lower(0, rlimitProcesses, uint64(processes+extraThreads)); err != nil {
			return fmt.Errorf("limit processes: %w", err)
		}
	}
	return LimitFileSize(0, fileBytes)
}

// LimitFileSize permanently limits the size of files that a process writes; PID 0 is this
// process.
func LimitFileSize(pid int, fileBytes int64) error {
	if fileBytes <= 0 {
		return nil
	}
	if err := lower(pid, syscall.RLIMIT_FSIZE, uint64(fileBytes)); err != nil {
		return fmt.Errorf("limit file size: %w", err)
	}
	return nil
}

// WithMemoryLimit returns a command that runs argv with a permanent limit on the memory
// that each of its processes can write to. Memory that a program only reserves does not
// count: Go and Java reserve far more than they use. 0 means no limit.
func WithMemoryLimit(argv []string, bytes int64) []string {
	if bytes <= 0 {
		return argv
	}
	// The shell sets the limit before the program runs. Setting it from outside would be
	// too late for processes that the program starts immediately.
	var own syscall.Rlimit
	if err := prlimit(0, syscall.RLIMIT_DATA, nil, &own); err == nil {
		bytes = int64(min(uint64(bytes), own.Max))
	}
	return slices.Concat([]string{"/bin/sh", "-c", fmt.Sprintf(`ulimit -d %d && exec "$0" "$@"`, bytes>>10)}, argv)
}

// WithFileSizeLimit calls start while this process itself has the limit, so that the
// program started by start inherits it. start must not write files.
func WithFileSizeLimit(fileBytes int64, start func() error) error {
	if fileBytes <= 0 {
		return start()
	}
	var old syscall.Rlimit
	if err := prlimit(0, syscall.RLIMIT_FSIZE, nil, &old); err != nil {
		return fmt.Errorf("limit file size: %w", err)
	}
	inherited := syscall.Rlimit{Cur: min(uint64(fileBytes), old.Cur), Max: old.Max}
	if err := prlimit(0, syscall.RLIMIT_FSIZE, &inherited, nil); err != nil {
		return fmt.Errorf("limit file size: %w", err)
	}
	err := start()
	if restored := prlimit(0, syscall.RLIMIT_FSIZE, &old, nil); restored != nil {
		fmt.Fprintf(os.Stderr, "restore the file size limit: %v\n", restored) // this process only writes smaller files
	}
	return err
}

// lower sets a limit permanently, unless it is already lower.
func lower(pid, resource int, to uint64) error {
	var now syscall.Rlimit
	if err := prlimit(pid, resource, nil, &now); err != nil {
		return err
	}
	to = min(to, now.Max)
	return prlimit(pid, resource, &syscall.Rlimit{Cur: to, Max: to}, nil)
}

func prlimit(pid, resource int, to, old *syscall.Rlimit) error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), uintptr(resource),
		uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(old)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
