package result

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"molrun/app/base/durable"
	"molrun/app/base/unit"
)

// IsDir reports whether path is a directory and not a link to one.
func IsDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

type amount struct {
	files int
	bytes int64
}

// survey counts a program's output before it is copied: output that can't be kept must
// not fill the disk.
func survey(dir string, maxFiles int, check func() error) (n amount, err error) {
	entries, holes := -1, int64(0) // do not count dir itself
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && errors.Is(err, fs.ErrPermission) {
			return fs.SkipDir // copyTree makes it readable
		}
		if err != nil {
			return err
		}
		if entries++; entries > maxFiles {
			return InvalidOutputError(fmt.Sprintf(tooMany, maxFiles))
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return errors.Join(err, check())
		}
		n.files++
		n.bytes += info.Size()
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			holes += max(0, info.Size()-s.Blocks*512)
		}
		return nil
	})
	if err == nil && holes > maxHoles && n.bytes > maxHoles {
		err = InvalidOutputError(fmt.Sprintf(tooManyHoles, unit.Bytes(maxHoles)))
	}
	return n, err
}

// copyPiece is the number of bytes copied between two calls of check.
const copyPiece = 64 << 20

// CopyFile copies a whole file: by sharing its blocks if the file system supports it,
// otherwise within the kernel. An error of check aborts it.
func CopyFile(to, from *os.File, check func() error) error {
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

// CopyOutput copies the output directory of an attempt, if there is one, into another
// directory. It does not follow a link at the attempt's path.
func CopyOutput(to, attemptDir string, check func() error) error {
	from, err := openOutput(attemptDir)
	if errors.As(err, new(InvalidOutputError)) {
		return nil
	}
	if from == "" || err != nil {
		return err
	}
	return copyTree(to, from, check)
}

// copyTree copies directories, regular files, and links as they are: a program's link can
// lead anywhere. A special file is replaced by a socket or pipe, so that the result can
// name it. Names can contain any bytes, and directories that the program made
// inaccessible are made accessible.
func copyTree(to, from string, check func() error) error {
	if _, err := openDir(from); err != nil {
		return err
	}
	return withRoots(to, from, func(target, source *os.Root) error {
		return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
			if err == nil {
				path, err = filepath.Rel(from, path)
			}
			switch {
			case err != nil || path == ".":
				return err
			case d.IsDir(): // WalkDir reads it after this returns
				return errors.Join(source.Chmod(path, 0o700), target.Mkdir(path, 0o700))
			case d.Type().IsRegular():
				return copyBetween(target, source, path, check)
			case d.Type() == fs.ModeSymlink:
				return copyLink(target, source, path)
			}
			return makeSpecial(filepath.Join(to, path), d.Type())
		})
	})
}

func copyLink(target, source *os.Root, path string) error {
	to, err := source.Readlink(path)
	if err != nil {
		return err
	}
	return target.Symlink(to, path)
}

// makeSpecial creates a socket for a socket, and a pipe for anything else.
func makeSpecial(path string, mode fs.FileMode) error {
	if mode == fs.ModeSocket {
		return syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0)
	}
	return syscall.Mkfifo(path, 0o600)
}

// copyFiles copies the regular files of a directory, without subdirectories.
func copyFiles(to, from string, check func() error) error {
	return withRoots(to, from, func(target, source *os.Root) error {
		entries, err := fs.ReadDir(source.FS(), ".")
		for _, e := range entries {
			if e.Type().IsRegular() && err == nil {
				err = copyBetween(target, source, e.Name(), check)
			}
		}
		return err
	})
}

func withRoots(to, from string, do func(target, source *os.Root) error) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	return errors.Join(do(target, source), target.Close())
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
	if err := errors.Join(CopyFile(out, in, check), out.Close()); err != nil {
		return err
	}
	return target.Chtimes(path, time.Time{}, info.ModTime()) // archives contain the time
}

// Sync makes all files of a job durable, one by one.
func Sync(jobDir string) error {
	return errors.Join(syncTree(jobDir), durable.SyncFolder(filepath.Dir(jobDir)))
}

// syncTree makes a directory durable with everything in it.
func syncTree(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			path, err = filepath.Rel(dir, path)
		}
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		return durable.SyncDir(root, path) // works for files as well
	})
	return errors.Join(err, root.Close())
}

// RemoveTree removes a directory, regardless of the modes that a program set in it.
func RemoveTree(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700) // if this does not help, RemoveAll fails
		}
		return nil
	})
	return os.RemoveAll(dir)
}
