package runner

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// copyPiece is how much is copied between two looks at whether to go on.
const copyPiece = 64 << 20

// copyFile copies a whole file: without touching its bytes where the file
// system can share them, within the kernel where it can't.
func copyFile(to, from *os.File, check func() error) error {
	if err := check(); err != nil {
		return err
	}
	if reflink(to, from) == nil {
		return nil
	}
	for {
		n, err := io.CopyN(to, from, copyPiece)
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return nil
		}
		if err == nil {
			err = check()
		}
		if err != nil {
			return err
		}
	}
}

// copyTree copies folders and regular files below from, and nothing else: a
// link that a program left could lead anywhere. Names may be any bytes, and
// what the program has closed is opened.
func copyTree(to, from string, check func() error) (err error) {
	if _, err := openFolder(from); err != nil {
		return err
	}
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			path, err = filepath.Rel(from, path)
		}
		switch {
		case err != nil || path == ".":
			return err
		case d.IsDir(): // it is read when this has returned
			return errors.Join(source.Chmod(path, 0o700), target.Mkdir(path, 0o700))
		case d.Type().IsRegular():
			return copyBetween(target, source, path, check)
		}
		return nil
	})
}

func copyBetween(target, source *os.Root, path string, check func() error) error {
	info, err := source.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o400 == 0 {
		if err := source.Chmod(path, info.Mode().Perm()|0o600); err != nil {
			return err
		}
	}
	in, err := source.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := target.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	return errors.Join(copyFile(out, in, check), out.Close())
}
