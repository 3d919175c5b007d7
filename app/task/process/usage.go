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

// RSS adds up the resident memory of processes, in bytes. Pages that forked
// processes share count once for each.
func RSS(all []Descendant) int64 { return sum(all, "status", "RssAnon:", "RssShmem:") }

// PSS adds up the memory of processes, in bytes, and counts shared pages once.
// It costs much more than RSS.
func PSS(all []Descendant) int64 { return sum(all, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:") }

// sum adds up fields of a file that each process has in /proc, in bytes.
func sum(all []Descendant, file string, fields ...string) int64 {
	var total int64
	for _, d := range all {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(d.PID), file))
		if err != nil {
			continue // it ended
		}
		for _, field := range fields {
			total += number(data, field) << 10
		}
	}
	return total
}

// number reads a line such as "RssAnon:	  1234 kB" or "oom_kill 2"; 0 if there
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

// ChildrenSeconds returns the CPU seconds that all children that ended have used.
func ChildrenSeconds() float64 {
	var children syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) != nil {
		return 0
	}
	seconds := func(t syscall.Timeval) float64 { return time.Duration(t.Nano()).Seconds() }
	return seconds(children.Utime) + seconds(children.Stime)
}

// Largest returns the memory in bytes of the largest of a child and those below it, by
// what was said when it was reaped; 0 if it is not known.
func Largest(child syscall.Rusage) int64 {
	if handedDown(child.Maxrss) {
		return 0
	}
	return child.Maxrss << 10
}

// ownPeak is the most memory in KiB that this process was found to have had.
var ownPeak atomic.Int64

// handedDown reports whether the kernel may count a size in KiB for a child because it was forked from this
// process, which has had as much. RUSAGE_SELF does not show it: it counts what was handed down to this process, and
// a service is larger than most programs.
func handedDown(size int64) bool {
	const inexact = 1 << 10 // the kernel adds up pages of each processor only now and then
	if size > ownPeak.Load() {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return true
		}
		ownPeak.Store(number(status, "VmHWM:") + inexact)
	}
	return size <= ownPeak.Load()
}

// OOMKills counts the processes that the kernel has killed since boot because
// memory ran out.
func OOMKills() int64 {
	data, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	return number(data, "oom_kill ")
}

// PreferOOMKill makes the kernel kill this process rather than the service if
// memory runs out. Failure is ignored: it may be forbidden, and the process may
// have ended.
func PreferOOMKill(pid int) {
	os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj"), []byte("500"), 0)
}
