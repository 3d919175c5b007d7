package task

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"molrun/app/base/unit"
	"molrun/app/task/protocol"
)

// disk monitors what the task writes and how much space remains free. Each task decides
// for itself: when free space is about to reach the threshold, the tasks that still grow
// fail.
type disk struct {
	reserve int64 // free-space threshold in bytes; 0 means none
	limit   int64 // limit on bytes written by the task; 0 means none

	free  int64 // at the last check
	at    time.Time
	pause time.Duration // until the next check

	short  bool  // free space was about to reach the threshold
	before int64 // bytes written by the task when short became true

	reported    int64         // content of WrittenFile
	measured    time.Time     // when the task's files were last measured
	measureTime time.Duration // duration of that measurement
}

const (
	// writeSpeed is twice the number of bytes that can be written per second, so that no
	// check comes too late.
	writeSpeed = 8 << 30
	// lookAhead is the time it takes to kill programs that write.
	lookAhead = 250 * time.Millisecond
	// growth is how much a task can write while the disk is short: a few lines of a log.
	growth = 4 << 20
)

// checkUsage checks the disk that holds dir. It returns a sentence if the task must end
// because it writes too much, otherwise "".
func (d *disk) checkUsage(dir string, now time.Time) (excess string) {
	d.pause = usualPause
	if d.reserve > 0 {
		excess = d.checkFree(dir, now)
	}
	if excess != "" || d.limit <= 0 || now.Sub(d.measured) < max(usualPause, 20*d.measureTime) {
		return excess
	}
	written := d.measure(dir, now)
	d.syncQuota(dir, written)
	if written > d.limit {
		return fmt.Sprintf("The job wrote %s, but only %s remain of the storage quota of its user or organization. "+
			"Make it write less, or delete files or jobs that are no longer needed.", unit.Bytes(written), unit.Bytes(d.limit))
	}
	return ""
}

// amount is the content of WrittenFile and ShareFile.
type amount struct {
	Protocol int   `json:"protocol"`
	Bytes    int64 `json:"bytes"`
}

// syncQuota reports to the service what the task has written, and reads the limit that
// remains after the writes of others.
func (d *disk) syncQuota(dir string, written int64) {
	if written != d.reported {
		if err := writeUnsynced(dir, WrittenFile, amount{Protocol, written}); err == nil { // on failure the next check retries
			d.reported = written
		}
	}
	if may, err := readFile[amount](dir, ShareFile); err == nil && may.Bytes > 0 {
		d.limit = may.Bytes
	}
}

// ReadWritten returns the last measured number of bytes written by a task.
func ReadWritten(dir string) (int64, error) {
	a, err := readFile[amount](dir, WrittenFile)
	if err != nil {
		return 0, err
	}
	return a.Bytes, nil
}

// WriteQuota limits how many bytes a task can write, overriding task.json.
func WriteQuota(dir string, bytes int64) error {
	return writeUnsynced(dir, ShareFile, amount{Protocol, bytes})
}

func (d *disk) checkFree(dir string, now time.Time) (excess string) {
	free, err := freeBytes(dir)
	if err != nil {
		return "" // leave the decision to the next check
	}
	soon := free
	if passed := now.Sub(d.at); !d.at.IsZero() && free < d.free && passed > 0 {
		soon -= int64(float64(d.free-free) * lookAhead.Seconds() / passed.Seconds())
	}
	d.free, d.at = free, now
	if soon >= d.reserve {
		d.short = false
		d.pause = min(max(firstPause, time.Duration(float64(free-d.reserve)/writeSpeed*float64(time.Second))), usualPause)
		return ""
	}
	written := d.measure(dir, now)
	if !d.short {
		d.short, d.before = true, written
	}
	d.pause = max(firstPause, 5*d.measureTime)
	if written-d.before < growth {
		return ""
	}
	return fmt.Sprintf("The job had written %s and continued writing when free disk space on the server reached the threshold of %s (disk.reserve). "+
		"Make it write less, or ask an administrator to free some space.", unit.Bytes(written), unit.Bytes(d.reserve))
}

// measure returns the disk space used by the task's files in bytes, without its input
// files.
func (d *disk) measure(dir string, now time.Time) (bytes int64) {
	begin := time.Now()
	in := filepath.Join(dir, WorkDir, InDir)
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // the program may remove it during the walk
		}
		if path == in {
			return fs.SkipDir
		}
		if e.Type().IsRegular() {
			bytes += blocks(e)
		}
		return nil
	})
	d.measured, d.measureTime = now, time.Since(begin)
	return bytes
}

func blocks(e fs.DirEntry) int64 {
	info, err := e.Info()
	if err != nil {
		return 0
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}

func freeBytes(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, os.NewSyscallError("statfs", err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// checkDisk fails the step if the task writes too much.
func (r *runningStep) checkDisk() {
	if excess := r.disk.checkUsage(r.dir, time.Now()); excess != "" {
		r.decide(protocol.CauseDisk, excess)
		r.killAll()
	}
	r.diskCheck.Reset(r.disk.pause)
}
