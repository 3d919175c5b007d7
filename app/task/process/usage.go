package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// RSS returns the total resident memory of processes, in bytes. Pages shared by forked
// processes count once for each.
func RSS(all []Descendant) int64 { return sum(all, "status", "RssAnon:", "RssShmem:") }

// PSS returns the total memory of processes, in bytes, counting shared pages once. It is
// much more expensive than RSS.
func PSS(all []Descendant) int64 { return sum(all, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:") }

// sum adds up fields of a file in /proc over all processes, in bytes.
func sum(all []Descendant, file string, fields ...string) int64 {
	var total int64
	for _, d := range all {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(d.PID), file))
		if err != nil {
			continue // it has exited
		}
		for _, field := range fields {
			total += number(data, field) << 10
		}
	}
	return total
}

// number reads a line such as "RssAnon: 1234 kB" or "oom_kill 2". It returns 0 if there
// is none. The line must not be the first.
func number(data []byte, field string) int64 {
	_, rest, _ := bytes.Cut(data, []byte("\n"+field))
	rest = bytes.TrimLeft(rest, " \t")
	end := bytes.IndexAny(rest, " \n")
	if end < 0 {
		return 0
	}
	n, _ := strconv.ParseInt(string(rest[:end]), 10, 64) // the kernel writes numbers
	return n
}

// ChildrenSeconds returns the CPU seconds used by all children that have exited.
func ChildrenSeconds() float64 {
	var children syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) != nil {
		return 0
	}
	seconds := func(t syscall.Timeval) float64 { return time.Duration(t.Nano()).Seconds() }
	return seconds(children.Utime) + seconds(children.Stime)
}

// Largest returns the peak memory in bytes of the largest process among a child and its
// descendants, from the usage that was reported when the child was reaped. It returns 0
// if the peak is unknown.
func Largest(child syscall.Rusage) int64 {
	if inheritedPeak(child.Maxrss) {
		return 0
	}
	return child.Maxrss << 10
}

// ownPeak is the largest known memory size of this process, in KiB.
var ownPeak atomic.Int64

// inheritedPeak reports whether the kernel could have counted a size in KiB for a child only
// because it was forked from this process, which has been at least that large.
// RUSAGE_SELF does not help: it includes what this process itself inherited, and a
// service is larger than most programs.
func inheritedPeak(size int64) bool {
	const inexact = 1 << 10 // the kernel adds up per-CPU page counts only occasionally
	if size > ownPeak.Load() {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return true
		}
		ownPeak.Store(number(status, "VmHWM:") + inexact)
	}
	return size <= ownPeak.Load()
}

// OOMKills counts the processes that the kernel has killed since boot because memory ran
// out.
func OOMKills() int64 {
	data, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	return number(data, "oom_kill ")
}

// PreferOOMKill makes the kernel kill this process rather than the service if memory runs
// out. It ignores failure: it might be forbidden, and the process might have exited.
func PreferOOMKill(pid int) {
	os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj"), []byte("500"), 0)
}
