package result

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"molrun/app/task"
)

// openOutput returns the output directory of an attempt, "" if there is none.
func openOutput(attemptDir string) (string, error) {
	work := filepath.Join(attemptDir, task.WorkDir)
	out := filepath.Join(work, task.OutDir)
	for _, dir := range []string{attemptDir, work, out} {
		if found, err := openDir(dir); !found || err != nil {
			return "", err
		}
	}
	return out, nil
}

// openDir makes a directory usable, whatever mode its program gave it, and
// reports whether there is one. An error is not taken for absence: a faulty
// disk must not make a result empty.
func openDir(path string) (bool, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !info.IsDir() {
		return false, err
	}
	return true, os.Chmod(path, 0o700)
}

// IsDir reports whether path is a directory, and not a link to one.
func IsDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// RemoveWork removes an attempt's work directory.
func RemoveWork(attemptDir string) error {
	return RemoveTree(filepath.Join(attemptDir, task.WorkDir))
}

// RemoveTree removes a directory, whatever modes a program gave to those in it.
func RemoveTree(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700) // RemoveAll fails if that was not enough
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Discard removes what an earlier attempt had begun to collect.
func Discard(jobDir string) error {
	return errors.Join(
		os.RemoveAll(filepath.Join(jobDir, manifestFile)),
		os.RemoveAll(filepath.Join(jobDir, recordFile)),
		os.RemoveAll(filepath.Join(jobDir, resultDir)),
	)
}
