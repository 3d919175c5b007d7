// Package durable replaces files so that a crash leaves either the old content or the
// new: temporary file, fsync, rename, fsync of the directory. Names are slash-separated
// and relative to a root.
package durable

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Replace writes data to the named file with mode 0600, completely or not at all.
func Replace(root *os.Root, name string, data []byte) error {
	temporary, err := Stage(root, name, data)
	if err != nil {
		return err
	}
	if err := root.Rename(temporary, name); err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	return SyncDir(root, path.Dir(name))
}

// Stage writes data to a temporary file next to name, syncs it and returns its
// name. The caller renames, links or removes it.
func Stage(root *os.Root, name string, data []byte) (temporary string, err error) {
	temporary = path.Join(path.Dir(name), "."+path.Base(name)+"."+rand.Text())
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, root.Remove(temporary))
	}
	return temporary, nil
}

// MkdirAll creates a directory and its missing parents, and makes their names durable
// where it has permission to read the parent.
func MkdirAll(dir string, mode os.FileMode) error {
	if isDir(dir) {
		return nil
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := MkdirAll(above, mode); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, mode); err != nil && !isDir(dir) { // another process might have created it
		return err
	}
	root, err := os.OpenRoot(above)
	if err == nil {
		err = errors.Join(SyncDir(root, "."), root.Close())
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// SyncFolder makes the names in the directory at path durable.
func SyncFolder(path string) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	return errors.Join(SyncDir(root, "."), root.Close())
}

// SyncDir makes the names in a directory durable.
func SyncDir(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
