package result

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/durable"
	"molrun/app/fault"
	"molrun/app/task"
)

// partial ends the name of a directory that is still being copied.
const partial = ".new"

// Remote is an attempt whose task runs on other machines. Its directory lies
// where they see it, and a link in the job's directory stands for it. When the
// task has ended, what it left is copied to a directory that replaces the link,
// whole or not at all.
type Remote struct {
	Dir      string // where the task runs
	Home     string // the attempt's place in the job's directory
	MaxFiles int
	Check    func() error // an error interrupts the copying
	Log      zerolog.Logger
}

// Fetch copies what the attempt left to its home, durably, unless that was done
// before. For an attempt that is done, o says what there should be: over a
// network files may be seen late, and then the error is fault.Unavailable. For
// any other attempt o is nil, and an output that can't be kept is left behind.
func (r *Remote) Fetch(o *app.Outcome) error {
	if IsDir(r.Home) {
		return nil
	}
	if _, err := os.Lstat(r.Dir); o == nil && (errors.Is(err, fs.ErrNotExist) || !task.Exists(r.Dir, task.RunFile)) {
		return nil // it never began
	} else if err != nil {
		return fault.Errorf(fault.Unavailable, "The attempt's directory can't be seen: %v", err)
	}
	to := r.Home + partial
	if err := errors.Join(RemoveTree(to), os.MkdirAll(to, 0o700)); err != nil {
		return err
	}
	if err := copyFiles(to, r.Dir, r.Check); err != nil {
		return err
	}
	if err := r.fetchOutput(to, o); err != nil {
		return err
	}
	if err := syncTree(to); err != nil {
		return err
	}
	return replaceLink(r.Home, to)
}

func (r *Remote) fetchOutput(to string, o *app.Outcome) error {
	out, err := openOutput(r.Dir)
	if out == "" || err != nil {
		return err
	}
	seen, err := r.survey(out)
	var unfit Unfit
	if errors.As(err, &unfit) && o == nil {
		r.Log.Warn().Str("reason", string(unfit)).Msg("the output of an attempt that was not completed is left behind")
		return nil
	}
	if err != nil {
		return err
	}
	if o != nil && (seen.files < o.OutputFiles || seen.bytes < o.OutputBytes) {
		return fault.Errorf(fault.Unavailable, "The task left %d files with %d bytes, of which %d with %d are seen", o.OutputFiles, o.OutputBytes, seen.files, seen.bytes)
	}
	copied := filepath.Join(to, task.WorkDir, task.OutDir)
	if err := os.MkdirAll(copied, 0o700); err != nil {
		return err
	}
	if err := copyTree(copied, out, r.Check); err != nil || o == nil {
		return err
	}
	got, err := r.survey(copied)
	if err == nil && got.bytes < seen.bytes {
		err = fault.Errorf(fault.Unavailable, "Of %d bytes of output only %d were read", seen.bytes, got.bytes)
	}
	return err
}

type amount struct {
	files int
	bytes int64
}

// survey counts what a program left before it is copied: what can't be kept
// must not fill the disk.
func (r *Remote) survey(dir string) (n amount, err error) {
	entries, holes := 0, int64(0)
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && errors.Is(err, fs.ErrPermission) {
			return fs.SkipDir // copyTree opens it
		}
		if err != nil {
			return err
		}
		if entries++; entries > r.MaxFiles {
			return tooMany(r.MaxFiles)
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return errors.Join(err, r.Check())
		}
		n.files++
		n.bytes += info.Size()
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			holes += max(0, info.Size()-s.Blocks*512)
		}
		return nil
	})
	if err == nil && holes > maxHoles && n.bytes > maxHoles {
		err = tooManyHoles()
	}
	return n, err
}

// syncTree makes a directory durable with all files and directories in it.
func syncTree(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			path, err = filepath.Rel(dir, path)
		}
		if err != nil {
			return err
		}
		return durable.SyncDir(root, path) // syncs a file as well
	})
	return errors.Join(err, root.Close())
}

// replaceLink puts a directory in the place of a link.
func replaceLink(link, dir string) error {
	job, err := os.OpenRoot(filepath.Dir(link))
	if err != nil {
		return err
	}
	err = job.Remove(filepath.Base(link))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = job.Rename(filepath.Base(dir), filepath.Base(link))
	}
	if err == nil {
		err = durable.SyncDir(job, ".")
	}
	return errors.Join(err, job.Close())
}

// Remove removes the directory where the task ran, and the link to it if
// nothing was fetched.
func (r *Remote) Remove() error {
	err := RemoveTree(r.Dir)
	if info, lost := os.Lstat(r.Home); lost == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = errors.Join(err, os.Remove(r.Home))
	}
	err = errors.Join(err, RemoveTree(r.Home+partial))
	os.Remove(filepath.Dir(r.Dir)) // fails if it holds another attempt
	return err
}
