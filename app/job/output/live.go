package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"molrun/app/task"
)

// Limits for listing an output directory before it is inspected. They are the same as for
// a result.
const (
	maxEntries = 100_000
	maxDepth   = 64 // of directories
)

// liveOutput is the output directory of an attempt without a result. Its program might be
// changing it maliciously, replacing files with links, pipes and devices while they are
// being opened. So a path is opened name by name, each relative to the directory before,
// no name may be a symbolic link, and no open blocks.
type liveOutput struct{ dir *os.File }

// openLiveOutput opens the output directory of an attempt. The error is fs.ErrNotExist if
// there is none. If the task runs on other machines, home is a link created by the
// service to the shared directory. A result being collected is in jobDir.
func openLiveOutput(jobDir, home string) (*liveOutput, error) {
	if target, err := os.Readlink(home); err == nil {
		home = target
	}
	out, err := openBelow(home, path.Join(task.WorkDir, task.OutDir))
	if errors.Is(err, fs.ErrNotExist) {
		out, err = openBelow(jobDir, resultDir)
	}
	if err != nil {
		return nil, err
	}
	return &liveOutput{out}, nil
}

// resultDir is the directory of the result within a job's directory.
const resultDir = "result"

// openBelow opens a directory below another. Neither may be a symbolic link.
func openBelow(dir, below string) (*os.File, error) {
	fd, err := openAt(unix.AT_FDCWD, dir, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	top := liveOutput{os.NewFile(uintptr(fd), dir)}
	defer top.Close()
	return top.openFile(below, unix.O_DIRECTORY)
}

func (l *liveOutput) Close() error { return l.dir.Close() }

// openFile opens a path below the directory.
func (l *liveOutput) openFile(name string, flags int) (*os.File, error) {
	if !fs.ValidPath(name) || strings.IndexByte(name, 0) >= 0 {
		return nil, fs.ErrNotExist
	}
	at := int(l.dir.Fd())
	names := strings.Split(name, "/")
	for i, n := range names {
		more := unix.O_DIRECTORY
		if i == len(names)-1 {
			more = flags
		}
		fd, err := openAt(at, n, more)
		if i > 0 {
			unix.Close(at) // was only read
		}
		if err != nil {
			return nil, err
		}
		at = fd
	}
	runtime.KeepAlive(l.dir)
	return os.NewFile(uintptr(at), name), nil
}

// openAt opens one name. A link counts as missing.
func openAt(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|flags, 0)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err == nil:
			return fd, nil
		case refusedByName(err):
			return 0, fs.ErrNotExist
		}
		return 0, fmt.Errorf("open %s: %w", filepath.Base(name), err)
	}
}

// refusedByName reports whether an open failed because of what a program has created
// there: a link, a socket, a file instead of a directory, missing permission.
func refusedByName(err error) bool {
	for _, e := range []error{unix.ELOOP, unix.ENOTDIR, unix.ENXIO, unix.ENODEV, unix.EACCES, unix.EPERM, unix.ENAMETOOLONG, unix.ENOENT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// file opens a file that belongs to the program.
func (l *liveOutput) file(name string) (*os.File, *unix.Stat_t, error) {
	f, err := l.openFile(name, 0)
	if err != nil {
		return nil, nil, err
	}
	var info unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &info)
	if err == nil && !isOwn(&info) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, &info, nil
}

// isOwn reports whether info is a regular file with only one name. A file with several
// names might belong to another user if the program created a hard link to it. A result
// includes it if all names are the program's, which is checked when the program has
// ended.
func isOwn(info *unix.Stat_t) bool {
	return info.Mode&unix.S_IFMT == unix.S_IFREG && info.Nlink == 1
}

// visitFiles calls visit with the path and size of every file, sorted by directory. It
// reports whether it has visited all files.
func (l *liveOutput) visitFiles(visit func(name string, size int64)) (all bool, err error) {
	w := liveWalk{l, visit, maxEntries}
	if err := w.dir("", 0); err != nil {
		return false, err
	}
	return w.left > 0, nil
}

type liveWalk struct {
	*liveOutput
	visit func(name string, size int64)
	left  int // entries that can still be examined
}

func (w *liveWalk) dir(dir string, depth int) error {
	f, err := w.openFile(path.Join(".", dir), unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrNotExist) || depth > maxDepth {
		return nil // deleted, or no longer a directory
	}
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := w.names(f)
	if err != nil {
		return err
	}
	for _, name := range names {
		var info unix.Stat_t
		switch err := unix.Fstatat(int(f.Fd()), name, &info, unix.AT_SYMLINK_NOFOLLOW); {
		case err != nil: // deleted
		case info.Mode&unix.S_IFMT == unix.S_IFDIR:
			if err := w.dir(path.Join(dir, name), depth+1); err != nil {
				return err
			}
		case isOwn(&info):
			w.visit(path.Join(dir, name), info.Size)
		}
	}
	return nil
}

// names lists a directory in chunks, so that a directory with millions of names is not
// read completely.
func (w *liveWalk) names(f *os.File) (names []string, err error) {
	for w.left > 0 {
		piece, err := f.Readdirnames(min(w.left, 1024))
		w.left -= len(piece)
		for _, name := range piece {
			if showable(name) {
				names = append(names, name)
			}
		}
		if len(piece) == 0 || err != nil {
			break
		}
	}
	sort.Strings(names)
	return names, nil
}

// showable reports whether clients can request a name. Any other name is changed in the
// result.
func showable(name string) bool {
	return utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == '\\' }) < 0
}
