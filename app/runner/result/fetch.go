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

// partial is the suffix of a directory that is still being copied.
const partial = ".new"

// Remote is an attempt whose task runs on other machines. Its directory is where they see
// it, and the job's directory has a link to it. When the task has ended, its files are
// copied to a new directory, which replaces the link only once it is complete.
type Remote struct {
	Dir      string // where the task runs
	Home     string // the attempt's directory within the job's directory
	MaxFiles int
	Log      zerolog.Logger

	// Boot is the machine's current boot ID if the files of a completed attempt are not
	// to be synced here, because the caller syncs the disk before it records the end.
	// Until then, a copy may exist only in memory, so after a reboot it is made again. If
	// Boot is "", each file is synced.
	Boot string
}

// fetchedFile records the boot during which a directory was copied without being made
// durable.
const fetchedFile = ".fetched"

// invalidFile records why a directory was copied without its output.
const invalidFile = ".unfit"

// Fetch copies the attempt's files to Home, durably unless Boot is set, if that was not
// done before. For a completed attempt, o lists the expected files: on a network file
// system they can appear late, and the error is then fault.Unavailable. For other
// attempts o is nil, and an invalid output is not copied: collecting it later fails with
// the same InvalidOutputError. An error of check interrupts the copying.
func (r *Remote) Fetch(o *app.Outcome, check func() error) error {
	if IsDir(r.Home) && !r.stale() {
		if o == nil {
			return nil
		}
		return r.invalidOutput()
	}
	if _, err := os.Lstat(r.Dir); o == nil && (errors.Is(err, fs.ErrNotExist) || !task.Exists(r.Dir, task.RunFile)) {
		return nil // it never began
	} else if err != nil {
		return fault.Errorf(fault.Unavailable, "The attempt's directory is not visible: %v", err)
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

// invalidOutput returns the InvalidOutputError of an output that an earlier Fetch did not
// copy.
func (r *Remote) invalidOutput() error {
	reason, err := os.ReadFile(filepath.Join(r.Home, invalidFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return InvalidOutputError(reason)
}

// stale reports whether the copy may be incomplete because the machine has rebooted
// since, and can be made again.
func (r *Remote) stale() bool {
	if r.Boot == "" {
		return false
	}
	boot, err := os.ReadFile(filepath.Join(r.Home, fetchedFile))
	return (err != nil || string(boot) != r.Boot) && IsDir(r.Dir)
}

// forget removes files copied and collected during an earlier boot.
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
		return fault.Errorf(fault.Unavailable, "The task wrote %d files with %d bytes; only %d files with %d bytes are visible", o.OutputFiles, o.OutputBytes, seen.files, seen.bytes)
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
		err = fault.Errorf(fault.Unavailable, "Only part of the %d bytes of output could be read (%d)", seen.bytes, got.bytes)
	}
	return err
}

// replaceLink replaces a link with a directory.
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

// Remove removes the directory where the task ran, and the link to it if nothing was
// fetched.
func (r *Remote) Remove() error {
	err := RemoveTree(r.Dir)
	if info, lost := os.Lstat(r.Home); lost == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = errors.Join(err, os.Remove(r.Home))
	}
	err = errors.Join(err, RemoveTree(r.Home+partial))
	os.Remove(filepath.Dir(r.Dir)) // fails if it contains another attempt
	return err
}
