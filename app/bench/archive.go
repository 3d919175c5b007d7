package main

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const archivedFiles = 1000

// measureArchive downloads the results of two jobs, of many files and of one
// very large, as archives, next to plain files of those sizes.
func (b *testbed) measureArchive(ctx context.Context, f figures) error {
	jobs := []struct {
		name, typ, settings, file string
	}{
		{"many", "make-files", fmt.Sprintf(`{"bytes":%d,"each":%d}`, int64(b.Size), max(1, (int64(b.Size)+archivedFiles-1)/archivedFiles)), ""},
		{"hole", "make-hole", fmt.Sprintf(`{"bytes":%d}`, b.Largest), "hole"},
	}
	for _, j := range jobs {
		if err := b.finished(j.name, j.typ, j.settings); err != nil {
			return err
		}
		plain := b.upload
		if j.file != "" {
			var err error
			if plain, err = b.resultLink(j.name, j.file); err != nil {
				return err
			}
		}
		archive, err := b.resultLink(j.name, "")
		if err != nil {
			return err
		}
		before, err := diskUse(b.jobs.data())
		if err != nil {
			return err
		}
		pids := []int{b.jobs.pid()}
		one, err := fetch(ctx, 1, b.For/2, b.jobs.address, pids, [][]byte{head("GET", plain, "", 0)})
		if err != nil {
			return err
		}
		whole, err := fetch(ctx, 1, b.For/2, b.jobs.address, pids, [][]byte{head("GET", archive, "", 0)})
		if err != nil {
			return err
		}
		after, err := diskUse(b.jobs.data())
		if err != nil {
			return err
		}
		if f["archive."+j.name+".first"], err = firstByte(b.jobs.address, archive); err != nil {
			return err
		}
		f["archive."+j.name], f["plain."+j.name] = whole.rate(), one.rate()
		f["archive.disk"] = max(f["archive.disk"], float64(max(0, after-before-logAllowance)))
	}
	return nil
}

// logAllowance is what database and log may grow by while nothing else is
// written: a page of the database, for the last use of a key, and the like.
const logAllowance = 64 << 10

// firstByte gives the median time in milliseconds until the first byte of an
// answer, of which no more is read.
func firstByte(address, path string) (float64, error) {
	var all []time.Duration
	for range 9 {
		c, err := dial(address)
		if err != nil {
			return 0, err
		}
		began := time.Now()
		_, err = c.begin(head("GET", path, "", 0))
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

// diskUse gives the bytes that the files below dir take.
func diskUse(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
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

// measureMemory watches the server while clients move whole files, half of
// them each way.
func (b *testbed) measureMemory(ctx context.Context, f figures) error {
	const each = 4
	stop := peak(b.jobs.pid())
	grants := make([]grant, each)
	errs := make(chan error, 2*each)
	for n := range each {
		go func() {
			var err error
			grants[n], err = b.put(fmt.Sprintf("memory-%d-%d.bin", time.Now().UnixNano(), n))
			errs <- err
		}()
		go func() {
			_, err := fetch(ctx, 1, 0, b.jobs.address, []int{b.jobs.pid()}, [][]byte{head("GET", b.upload, "", 0)})
			errs <- err
		}()
	}
	var failed error
	for range 2 * each {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	f["memory"] = stop()
	if failed != nil {
		return failed
	}
	for _, g := range grants {
		if err := b.jobs.ask(head("DELETE", "/files/"+g.id, b.jobs.header(), 0), nil); err != nil {
			return err
		}
	}
	return nil
}
