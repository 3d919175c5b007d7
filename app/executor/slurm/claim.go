package slurm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"molrun/app/task"
)

// claimed says which job claimed an attempt. id is "" where it claimed and was
// gone before it could say so.
func claimed(dir string) (id string, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(dir, task.ClaimDir, "job"))
	if err == nil {
		return strings.TrimSpace(string(text)), true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	_, err = os.Lstat(filepath.Join(dir, task.ClaimDir))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return "", err == nil, err
}
