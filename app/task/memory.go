package task

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// memory watches what all processes of the task use together.
type memory struct {
	limit int64 // 0 is none
	peak  int64
	pause time.Duration
}

// The pauses between two looks: short while a program grows up, and while it
// is near its limit, since memory fills at gigabytes per second.
const (
	firstPause = 10 * time.Millisecond
	nearPause  = 100 * time.Millisecond
	usualPause = time.Second
)

// look measures, and reports whether the limit is passed. It sets the pause
// until the next look.
func (m *memory) look(all []process) (exceeded bool) {
	used := sum(all, "status", "RssAnon:", "RssShmem:")
	m.pause = min(max(firstPause, 2*m.pause), usualPause)
	switch {
	case m.limit > 0 && used > m.limit:
		// Pages that forked processes share were counted once for each. The
		// fair share of each costs much more to find out.
		if shared := sum(all, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:"); shared > 0 {
			used = shared
		}
		m.pause = usualPause
	case m.limit > 0 && used > m.limit/2:
		m.pause = min(m.pause, nearPause)
	}
	m.peak = max(m.peak, used)
	return m.limit > 0 && used > m.limit
}

// sum adds up fields of a file that each process has in /proc, in bytes.
func sum(all []process, file string, fields ...string) int64 {
	var total int64
	for _, p := range all {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), file))
		if err != nil {
			continue // it ended
		}
		for _, field := range fields {
			total += kilobytes(data, field) << 10
		}
	}
	return total
}

// kilobytes reads a line such as "RssAnon:	  1234 kB".
func kilobytes(data []byte, field string) int64 {
	_, rest, found := bytes.Cut(data, []byte("\n"+field))
	if !found {
		return 0
	}
	number, _, _ := bytes.Cut(bytes.TrimLeft(rest, " \t"), []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// usage gives what all children that ended have used: CPU seconds and the
// memory of the largest.
func usage() (cpuSeconds float64, largest int64) {
	var children, self syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) != nil ||
		syscall.Getrusage(syscall.RUSAGE_SELF, &self) != nil {
		return 0, 0
	}
	seconds := func(t syscall.Timeval) float64 { return time.Duration(t.Nano()).Seconds() }
	cpuSeconds = seconds(children.Utime) + seconds(children.Stime)
	if children.Maxrss <= self.Maxrss {
		return cpuSeconds, 0 // a child counts the memory it was forked from
	}
	return cpuSeconds, children.Maxrss << 10
}

// kernelKills counts the processes that the kernel killed for want of memory.
func kernelKills() int64 {
	data, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(data, []byte("\noom_kill "))
	number, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
