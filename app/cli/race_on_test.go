//go:build race

package cli

import (
	"runtime"
	"syscall"
)

// longChain makes a simulation of a second or more, in tens of residues.
const longChain = 25

// exit ends a process of the test binary at once. os.Exit would sleep for a
// second under the race detector, in each of the thousand processes that the
// tests start. As with os.Exit, a process that has seen a race says so.
func exit(code int) {
	if runtime.RaceErrors() > 0 {
		code = 66
	}
	syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(code), 0, 0)
}
