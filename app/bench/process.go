package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of CPU times in /proc, the same on every Linux.
const tick = 10 * time.Millisecond

// cpuOf gives the CPU time that processes have used so far, and the children
// that they have waited for.
func cpuOf(pids ...int) (total time.Duration, err error) {
	for _, pid := range pids {
		own, err := clockOf(pid)
		if err != nil {
			return 0, err
		}
		children, err := childrenOf(pid)
		if err != nil {
			return 0, err
		}
		total += own + children
	}
	return total, nil
}

// clockOf reads the CPU clock of a process, which is exact.
func clockOf(pid int) (time.Duration, error) {
	const scheduled = 2 // as clock_getcpuclockid(3) makes it: all threads, by the scheduler
	var t unix.Timespec
	if err := unix.ClockGettime(^int32(pid)<<3|scheduled, &t); err != nil {
		return 0, fmt.Errorf("read the CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// childrenOf gives the CPU time of children, in ticks.
func childrenOf(pid int) (total time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, fmt.Errorf("/proc/%d/stat is too short", pid)
	}
	for _, field := range fields[13:15] { // cutime, cstime
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		total += time.Duration(ticks) * tick
	}
	return total, nil
}

// status gives a line of /proc/PID/status as a number; sizes are in KiB.
func status(path, line string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(path, "status"))
	if err != nil {
		return 0, err
	}
	for l := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(l, line+":"); found {
			return strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s/status has no %s", path, line)
}

// anonymous gives the memory in MiB that a process has for itself: what it
// maps of files, such as the database, the system can take back.
func anonymous(pid int) (float64, error) {
	kib, err := status(fmt.Sprintf("/proc/%d", pid), "RssAnon")
	return float64(kib) / 1024, err
}

// wakeUps gives how often the threads of a process have gone to sleep.
func wakeUps(pid int) (sum int64, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return 0, err
	}
	for _, t := range threads {
		n, err := status(t, "voluntary_ctxt_switches")
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// peak watches the anonymous memory of a process until stop is called, which
// gives the highest value in MiB.
func peak(pid int) (stop func() float64) {
	var highest float64
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			if now, err := anonymous(pid); err == nil {
				highest = max(highest, now)
			}
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
	})
	return func() float64 {
		close(done)
		watching.Wait()
		return highest
	}
}
