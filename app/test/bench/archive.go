package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const archivedFiles = 1000

// measureArchive downloads two results as archives, one with many files and one with a
// single very large file, and compares them with downloads of plain files of the same
// sizes.
func measureArchive(ctx context.Context, b *testbed, f figures) error {
	many := fmt.Sprintf(`{"bytes":%d,"each":%d}`, b.payload.size, max(1, (b.payload.size+archivedFiles-1)/archivedFiles))
	if err := b.jobs.complete("many", "make-files", many); err != nil {
		return err
	}
	if err := b.jobs.complete("hole", "make-hole", fmt.Sprintf(`{"bytes":%d}`, int64(b.Largest))); err != nil {
		return err
	}
	hole, err := b.jobs.resultLink("hole", "hole")
	if err != nil {
		return err
	}
	for _, a := range []struct{ job, plain string }{{"many", b.download}, {"hole", hole}} {
		archive, err := b.jobs.resultLink(a.job, "")
		if err != nil {
			return err
		}
		before, err := diskUse(b.jobs.data())
		if err != nil {
			return err
		}
		s := source{address: b.jobs.address, pids: []int{b.jobs.pid()}}
		one, err := s.fetch(ctx, 1, b.Duration/2, requestHead("GET", a.plain, "", 0))
		if err != nil {
			return err
		}
		whole, err := s.fetch(ctx, 1, b.Duration/2, requestHead("GET", archive, "", 0))
		if err != nil {
			return err
		}
		after, err := diskUse(b.jobs.data())
		if err != nil {
			return err
		}
		if f["archive."+a.job+".first"], err = firstByte(s.address, archive); err != nil {
			return err
		}
		f["archive."+a.job], f["plain."+a.job] = whole.rate(), one.rate()
		f["archive.disk"] = max(f["archive.disk"], float64(max(0, after-before-logAllowance)))
	}
	return nil
}

// logAllowance is the largest number of bytes that the log and the database are expected
// to write during downloads, for example for the last-used time of the API key.
const logAllowance = 64 << 10

// firstByte returns the median time to the first byte of a body, in milliseconds. It does
// not read the rest.
func firstByte(address, path string) (float64, error) {
	var all []time.Duration
	for range 9 {
		c, err := dial(address)
		if err != nil {
			return 0, err
		}
		began := time.Now()
		_, err = c.begin(requestHead("GET", path, "", 0))
		if err == nil {
			_, err = c.reader.Peek(1)
		}
		all = append(all, time.Since(began))
		c.close()
		if err != nil {
			return 0, err
		}
	}
	slices.Sort(all)
	return milliseconds(all[len(all)/2]), nil
}

// diskUse returns the disk space used by the files below dir. It tolerates files that the
// service removes during the walk.
func diskUse(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat, known := info.Sys().(*syscall.Stat_t); known {
			total += stat.Blocks * 512
		}
		return nil
	})
	return total, err
}
