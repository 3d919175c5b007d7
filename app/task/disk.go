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

// disk watches what the task writes, and what it leaves free on the disk. Each task decides
// for itself: if the disk is about to be down to its reserve, those that still grow end.
type disk struct {
	reserve int64 // bytes that must stay free; 0: any
	most    int64 // bytes that the task may write; 0: any

	free  int64 // at the last check
	at    time.Time
	pause time.Duration // until the next check

	short  bool  // the disk was about to be down to its reserve then
	before int64 // what the task had written when that began

	reported int64         // what WrittenFile says
	measured time.Time     // when the task's files were last measured
	took     time.Duration // that this took
}

const (
	// writeSpeed is twice what can be written in a second: by it, no check comes too late.
	writeSpeed = 8 << 30
	// lookAhead is how long it takes to end programs that write.
	lookAhead = 250 * time.Millisecond
	// growth is how much a task may still write while the disk is short: a few lines of a log.
	growth = 4 << 20
)

// checkUsage looks at the disk of a directory, and returns a sentence if the task must end: so
// much does it write.
func (d *disk) checkUsage(dir string, now time.Time) (excess string) {
	d.pause = usualPause
	if d.reserve > 0 {
		excess = d.checkFree(dir, now)
	}
	if excess != "" || d.most <= 0 || now.Sub(d.measured) < max(usualPause, 20*d.took) {
		return excess
	}
	written := d.measure(dir, now)
	d.share(dir, written)
	if written > d.most {
		return fmt.Sprintf("The job wrote %s, and %s are left of what its user or organization may store. "+
			"Have it write less, or delete files or jobs that are no longer needed.", unit.Bytes(written), unit.Bytes(d.most))
	}
	return ""
}

// amount is the content of WrittenFile and ShareFile.
type amount struct {
	Protocol int   `json:"protocol"`
	Bytes    int64 `json:"bytes"`
}

// share tells the service what the task has written, and learns from it what others have left.
func (d *disk) share(dir string, written int64) {
	if written != d.reported {
		if err := writeUnsynced(dir, WrittenFile, amount{Protocol, written}); err == nil { // else the next check may
			d.reported = written
		}
	}
	if may, err := readFile[amount](dir, ShareFile); err == nil && may.Bytes > 0 {
		d.most = may.Bytes
	}
}

// ReadWritten returns how many bytes a task had written when that was last measured.
func ReadWritten(dir string) (int64, error) {
	a, err := readFile[amount](dir, WrittenFile)
	if err != nil {
		return 0, err
	}
	return a.Bytes, nil
}

// WriteShare says how many bytes a task may write, in place of what task.json says.
func WriteShare(dir string, bytes int64) error {
	return writeUnsynced(dir, ShareFile, amount{Protocol, bytes})
}

func (d *disk) checkFree(dir string, now time.Time) (excess string) {
	free, err := freeBytes(dir)
	if err != nil {
		return "" // the next check may find out
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
	d.pause = max(firstPause, 5*d.took)
	if written-d.before < growth {
		return ""
	}
	return fmt.Sprintf("The job had written %s and went on, while the server's disk was down to the %s that stay free (disk.reserve). "+
		"Have it write less, or ask an administrator to free some space.", unit.Bytes(written), unit.Bytes(d.reserve))
}

// measure returns how many bytes of the disk the task's files take, but for those that were
// laid in.
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
	d.measured, d.took = now, time.Since(begin)
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

// checkDisk ends the step if the task writes too much.
func (r *runningStep) checkDisk() {
	if excess := r.disk.checkUsage(r.dir, time.Now()); excess != "" {
		r.decide(protocol.CauseDisk, excess)
		r.killAll()
	}
	r.diskCheck.Reset(r.disk.pause)
}
