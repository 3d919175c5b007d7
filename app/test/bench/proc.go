package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// cpuDuring returns the CPU time that processes use while run runs, including the CPU
// time of children that they reap.
func cpuDuring(run func() error, pids ...int) (time.Duration, error) {
	before, err := cpuOf(pids)
	if err != nil {
		return 0, err
	}
	if err := run(); err != nil {
		return 0, err
	}
	after, err := cpuOf(pids)
	return after - before, err
}

func cpuOf(pids []int) (total time.Duration, err error) {
	for _, pid := range pids {
		process, children, err := clocksOf(pid)
		if err != nil {
			return 0, err
		}
		total += process + children
	}
	return total, nil
}

// clocksOf returns the CPU time of a process, and the CPU time of the children it has
// reaped, including their own reaped children.
func clocksOf(pid int) (process, children time.Duration, err error) {
	process, err = clockOf(pid)
	if err != nil {
		return 0, 0, err
	}
	children, err = childrenOf(pid)
	return process, children, err
}

// clockOf reads the CPU-time clock of a process, which is not rounded to ticks.
func clockOf(pid int) (time.Duration, error) {
	const scheduled = 2 // all threads, as clock_getcpuclockid(3) encodes it
	var t unix.Timespec
	if err := unix.ClockGettime(^int32(pid)<<3|scheduled, &t); err != nil {
		return 0, fmt.Errorf("read the CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// tick is the unit of CPU times in /proc, which is the same on all Linux systems.
const tick = 10 * time.Millisecond

// childrenOf returns the CPU time of the children that a process has reaped, in whole
// ticks.
func childrenOf(pid int) (total time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // after the command name
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

// awaitChildren waits until a process has no children.
func awaitChildren(ctx context.Context, pid int) error {
	for ctx.Err() == nil {
		lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		if err != nil {
			return err
		}
		found := ""
		for _, list := range lists {
			text, _ := os.ReadFile(list) // the thread might have just exited
			found += string(text)
		}
		if found == "" {
			return nil
		}
		_ = pause(ctx, 20*time.Millisecond) // on cancellation, the loop condition ends the loop
	}
	return fmt.Errorf("wait for the server's children to exit: %w", ctx.Err())
}

// anonymousMemory returns the anonymous memory of a process in MiB. It excludes the pages
// of mapped files, such as the database, which the kernel can reclaim.
func anonymousMemory(pid int) (float64, error) {
	kib, err := readStatus(fmt.Sprintf("/proc/%d", pid), "RssAnon")
	return float64(kib) / 1024, err
}

// peakMemory watches the anonymous memory of a process until stop is called. stop returns
// the peak in MiB.
func peakMemory(pid int) (stop func() float64) {
	watched := watchMemory(pid)
	return func() (highest float64) {
		for _, m := range watched() {
			highest = max(highest, m.mib)
		}
		return highest
	}
}

// memory is the memory use of a process at one time.
type memory struct {
	at  time.Time
	mib float64
}

// watchMemory samples the anonymous memory of a process until stop is called. stop
// returns all samples.
func watchMemory(pid int) (stop func() []memory) {
	var all []memory
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			if now, err := anonymousMemory(pid); err == nil {
				all = append(all, memory{time.Now(), now})
			}
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
	})
	return func() []memory {
		close(done)
		watching.Wait()
		return all
	}
}

// wakeUps returns the number of times that the threads of a process have gone to sleep.
func wakeUps(pid int) (sum int64, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return 0, err
	}
	for _, t := range threads {
		n, err := readStatus(t, "voluntary_ctxt_switches")
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// load1 returns the one-minute load average.
func load1() (load float64, err error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(text), &load)
	return load, err
}

// readStatus returns a number from the status file of a process or thread;
// sizes are in KiB.
func readStatus(dir, name string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s/status has no %s", dir, name)
}
