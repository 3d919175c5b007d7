package result

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/base/durable"
	"molrun/app/base/fault"
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
	Log      zerolog.Logger

	// Boot is the machine's current boot if what a completed attempt left is not to be made
	// durable, because the caller syncs the disk before it records the end. Until then, a copy
	// is only in the memory of this boot: after another one it is made again. "": each file
	// is synced.
	Boot string
}

// fetchedFile says during which boot a directory was copied that was not made durable.
const fetchedFile = ".fetched"

// invalidFile says why a directory was copied without its output.
const invalidFile = ".unfit"

// Fetch copies the attempt's files to its home, durably except with Boot, unless that was done
// before. For a completed attempt, o lists the expected files: on a network file system
// they can appear late, and the error is then fault.Unavailable. For other attempts o is
// nil, and an invalid output is not copied: collecting it later fails with the same
// InvalidOutputError. An error of check interrupts the copying.
func (r *Remote) Fetch(o *app.Outcome, check func() error) error {
	if IsDir(r.Home) && !r.stale() {
		if o == nil {
			return nil
		}
		return r.leftBehind()
	}
	if _, err := os.Lstat(r.Dir); o == nil && (errors.Is(err, fs.ErrNotExist) || !task.Exists(r.Dir, task.RunFile)) {
		return nil // it never began
	} else if err != nil {
		return fault.Errorf(fault.Unavailable, "The attempt's directory can't be seen: %v", err)
	}
	to := r.Home + partial
	if err := errors.Join(r.forget(), RemoveTree(to), os.MkdirAll(to, 0o700)); err != nil {
		return err
	}
	if err := copyFiles(to, r.Dir, check); err != nil {
		return err
	}
	if err := r.fetchOutput(to, o, check); err != nil {
		return err
	}
	if r.Boot != "" && o != nil {
		err := os.WriteFile(filepath.Join(to, fetchedFile), []byte(r.Boot), 0o600)
		return errors.Join(err, replaceLink(r.Home, to))
	}
	if err := syncTree(to); err != nil {
		return err
	}
	return errors.Join(replaceLink(r.Home, to), durable.SyncFolder(filepath.Dir(r.Home)))
}

// leftBehind returns the Unfit of an output that an earlier Fetch did not copy.
func (r *Remote) leftBehind() error {
	reason, err := os.ReadFile(filepath.Join(r.Home, invalidFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return InvalidOutputError(reason)
}

// stale reports whether the copy may be incomplete because the machine was restarted since,
// and can be made again.
func (r *Remote) stale() bool {
	if r.Boot == "" {
		return false
	}
	boot, err := os.ReadFile(filepath.Join(r.Home, fetchedFile))
	return (err != nil || string(boot) != r.Boot) && IsDir(r.Dir)
}

// forget removes what was copied and collected during an earlier boot.
func (r *Remote) forget() error {
	if r.Boot == "" || !IsDir(r.Home) {
		return nil
	}
	return errors.Join(Discard(filepath.Dir(r.Home)), RemoveTree(r.Home))
}

func (r *Remote) fetchOutput(to string, o *app.Outcome, check func() error) error {
	var seen amount
	out, err := openOutput(r.Dir)
	if err == nil && out != "" {
		seen, err = survey(out, r.MaxFiles, check)
	}
	var invalid InvalidOutputError
	if errors.As(err, &invalid) && o == nil {
		r.Log.Warn().Str("reason", string(invalid)).Msg("did not collect the output of an unfinished attempt")
		return os.WriteFile(filepath.Join(to, invalidFile), []byte(invalid), 0o600)
	}
	if out == "" || err != nil {
		return err
	}
	if o != nil && (seen.files < o.OutputFiles || seen.bytes < o.OutputBytes) {
		return fault.Errorf(fault.Unavailable, "The task left %d files with %d bytes, of which %d with %d are seen", o.OutputFiles, o.OutputBytes, seen.files, seen.bytes)
	}
	copied := filepath.Join(to, task.WorkDir, task.OutDir)
	if err := os.MkdirAll(copied, 0o700); err != nil {
		return err
	}
	if err := copyTree(copied, out, check); err != nil || o == nil {
		return err
	}
	got, err := survey(copied, r.MaxFiles, check)
	if err == nil && got.bytes < seen.bytes {
		err = fault.Errorf(fault.Unavailable, "Of %d bytes of output only %d were read", seen.bytes, got.bytes)
	}
	return err
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
