package blobs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/blobs/result"
)

// Disk returns the free space of the directory's disk. Bytes still to be written by
// uploads in progress count as used, so that they are not also assigned to a job.
func (d *Dir) Disk() (app.Disk, error) {
	promised := d.space.promised.Load() // read before statfs, so that bytes written in between count twice rather than not at all
	disk, err := Space(d.path, d.options.Reserve)
	disk.Free = max(0, disk.Free-promised)
	return disk, err
}

// Space returns the free space of the disk that holds path. A reserve of 0 means the
// default.
func Space(path string, reserve int64) (app.Disk, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return app.Disk{}, fmt.Errorf("look up free space: %w", err)
	}
	size := int64(s.Blocks) * int64(s.Bsize)
	if reserve == 0 {
		reserve = max(1<<30, size/20)
	}
	files := int64(s.Files)
	return app.Disk{
		Size: size, Free: int64(s.Bavail) * int64(s.Bsize), Reserve: reserve,
		Files: files, FreeFiles: int64(s.Ffree), ReserveFiles: min(max(reservedFiles, files/100), files/10),
	}, nil
}

// reservedFiles is the minimum number of free inodes that uploads leave on a file system.
// Above 100,000 inodes it is 1 %, and below 10,000 it is 10 %.
const reservedFiles = 1000

// diskError adds the operation to a file system error, and a code if a client can act on
// it.
func diskError(op string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", op, err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &fault.Error{
			Code:    fault.StorageFull,
			Message: "The server's disk is full; delete files or jobs that are no longer needed, or ask an administrator.",
			Err:     err,
		}
	case errors.Is(err, syscall.EFBIG):
		return &fault.Error{
			Code:    fault.FileTooLarge,
			Message: "The server's file system can't store a file of this length; split it.",
			Err:     err,
		}
	}
	return err
}

// JobSize returns the total size in bytes of all files of a job, or 0 if it has none.
func (d *Dir) JobSize(id app.JobID) (size int64, err error) {
	if _, err := sortid.Parse(string(id)); err != nil {
		return 0, fmt.Errorf("measure job %q: %w", id, err)
	}
	err = fs.WalkDir(d.root.FS(), result.JobDir(id), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				size += info.Size()
			}
		}
		// A file can disappear during the walk, and a program can make its directories
		// unreadable.
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return err
	})
	if err != nil {
		return size, fmt.Errorf("measure job %s: %w", id, err)
	}
	return size, nil
}

// space ensures that concurrent uploads together respect the free-space threshold. The
// threshold allows records to be written on a disk that uploads have filled.
type space struct {
	mu       sync.Mutex
	promised atomic.Int64 // bytes that uploads can write and that the disk does not yet count as used; changed under mu
}

// claim is the space claimed by a file being received. The holder must call release.
type claim struct {
	dir       *Dir
	allocated bool  // all blocks of the file are allocated
	promised  int64 // share of Dir.space.promised
}

// reserve truncates a file to keep bytes and allocates blocks for length bytes, unless
// that would leave less than the free-space threshold. On a file system that cannot
// allocate blocks it promises the missing space.
func (c *claim) reserve(f *os.File, keep, length int64) error {
	c.dir.space.mu.Lock()
	defer c.dir.space.mu.Unlock()
	info, err := f.Stat()
	if err != nil {
		return diskError("reserve space", err)
	}
	missing := max(0, length-blocksOf(info))
	if missing > 0 || length == 0 {
		if err := c.promiseLocked(missing); err != nil {
			return err
		}
	}
	if info.Size() > keep { // frees reserved blocks, which no other upload can take while mu is held
		if err := f.Truncate(keep); err != nil {
			return diskError("reserve space", err)
		}
	}
	if length == 0 {
		return nil
	}
	if c.allocated, err = preallocate(f, length); err != nil || c.allocated {
		c.releasePromised(c.promised)
	}
	return diskError("reserve space", err)
}

// promise raises the promised space to n bytes, without allocating blocks.
func (c *claim) promise(n int64) error {
	c.dir.space.mu.Lock()
	defer c.dir.space.mu.Unlock()
	return c.promiseLocked(n)
}

// promiseLocked raises the promised space to n bytes. It fails if that would leave less
// free space than the threshold.
func (c *claim) promiseLocked(n int64) error {
	more := max(0, n-c.promised)
	disk, err := c.dir.Disk()
	if err == nil {
		if shortage := disk.Shortage(more); shortage != "" {
			err = fmt.Errorf("%d bytes wanted; %s: %w", n, shortage, syscall.ENOSPC)
		}
	}
	if err == nil {
		c.promised += more
		c.dir.space.promised.Add(more)
	}
	return diskError("check free space", err)
}

// releasePromised releases some of the promised space.
func (c *claim) releasePromised(n int64) {
	n = min(n, c.promised)
	c.promised -= n
	c.dir.space.promised.Add(-n)
}

// writeBlocks appends to a file. If its blocks are not allocated, it first checks that
// there is space.
func (c *claim) writeBlocks(f *os.File, b []byte) (n int, err error) {
	if !c.allocated && len(b) > 0 {
		if err := c.promise(int64(len(b))); err != nil {
			return 0, err
		}
	}
	n, err = f.Write(b)
	if !c.allocated {
		c.dir.space.mu.Lock()
		defer c.dir.space.mu.Unlock()
		c.releasePromised(int64(n)) // the disk counts them now
	}
	return n, diskError("receive file", err)
}

// release releases the remaining promised space. It is idempotent.
func (c *claim) release() {
	c.dir.space.mu.Lock()
	defer c.dir.space.mu.Unlock()
	c.releasePromised(c.promised)
}

// blocksOf returns the number of bytes that a file occupies on disk.
func blocksOf(info os.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return 0
}
