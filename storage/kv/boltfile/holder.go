package boltfile

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Process is a process on this machine.
type Process struct {
	PID  int
	Name string
}

func (p Process) String() string {
	if p.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("%s (process %d)", p.Name, p.PID)
}

// Holder returns the process that has locked the database at path, or false if there is
// none or it cannot be determined.
func Holder(path string) (Process, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return Process{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Process{}, false
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return Process{}, false
	}
	// Each line looks like this:
	//
	//	1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234567 0 EOF
	inode := fmt.Sprintf(":%d", stat.Ino)
	for line := range strings.Lines(string(locks)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], inode) {
			continue
		}
		name, err := os.ReadFile("/proc/" + f[4] + "/comm")
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(f[4])
		return Process{pid, string(bytes.TrimSpace(name))}, err == nil
	}
	return Process{}, false
}
