//go:build race

package cli

import (
	"runtime"
	"syscall"
)

// exit ends a process of the test binary at once. Under the race detector os.Exit
// sleeps for a second, in each of the thousand processes that the tests start. As
// with os.Exit, the exit code shows a race.
func exit(code int) {
	if runtime.RaceErrors() > 0 {
		code = 66
	}
	syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(code), 0, 0)
}
