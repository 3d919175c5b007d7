package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// writeFile replaces a file with v, atomically and durably.
func writeFile(dir, name string, v any) error {
	data, err := encode(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	temp, err := writeTemp(dir, name, data)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := install(temp, dir, name, true); err != nil {
		return fmt.Errorf("write %s: %w", name, errors.Join(err, os.Remove(temp)))
	}
	return nil
}

// writeUnsynced replaces a file with v, atomically but without fsync. It is for files
// that are meaningless after a reboot.
func writeUnsynced(dir, name string, v any) error {
	data, err := encode(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(path+".new", path)
}

func encode(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}

// writeTemp writes and syncs data to a temporary file next to name, and returns its path.
func writeTemp(dir, name string, data []byte) (string, error) {
	f, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// install renames a temporary file to name. If sync is true, it also syncs the directory;
// the caller has already synced the file.
func install(temp, dir, name string, sync bool) error {
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil || !sync {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
