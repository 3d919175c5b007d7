package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"molrun/app/base/durable"
)

func readJSON[T any](path string) (*T, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return &v, nil
}

// writeJSON writes a file atomically.
func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(durable.Replace(dir, filepath.Base(path), append(text, '\n')), dir.Close())
}

// syncTree makes all directory entries in a tree durable.
func syncTree(top string) error {
	return filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = durable.SyncFolder(path)
		}
		return err
	})
}

func removeIfExists(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
