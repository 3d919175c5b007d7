package result

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"molrun/app/base/unit"
	"molrun/app/task"
)

const (
	maxDepth = 64   // nesting of directories in a result
	maxPath  = 4032 // bytes of a file's path in a result; 64 less than the system's limit
	maxName  = 255  // bytes of a file name; the limit of common file systems

	// maxHoles limits the total size of holes in sparse files. Holes need no disk space,
	// but every byte is read for the digests and sent with every download.
	maxHoles = 16 << 30
	// fewHoles is the size below which holes are not checked.
	fewHoles = 64 << 10

	tooMany      = "The program wrote more than %d files and folders; write fewer, or pack them into an archive."
	tooManyHoles = "The program wrote sparse files with more than %s of holes; write only the data."
)

// inspect finds the files of the result, and removes everything else from it.
func (c *Collection) inspect() error {
	root, err := os.OpenRoot(c.resultDir())
	if err != nil {
		return err
	}
	defer root.Close()
	i := inspection{root: root, limit: c.MaxFiles}
	if err := i.dir(".", 0); err != nil {
		return err
	}
	if err := i.resolveHardLinks(filepath.Join(c.attemptDir(), task.WorkDir)); err != nil {
		return err
	}
	if err := i.resolveSymlinks(c.Dir, outputPaths(cmp.Or(c.Ran, c.attemptDir()))); err != nil {
		return err
	}
	slices.Sort(i.files)
	c.files = i.files
	if err := c.keepLeftOut(i.left); err != nil {
		return err
	}
	return i.remove()
}

// inspection walks a result. It finds files, links, and special files, and renames
// entries whose names are not safe in an archive.
type inspection struct {
	root  *os.Root
	limit int

	entries int
	files   []string
	links   []string          // symbolic links
	renamed map[string]string // new paths by original path, to resolve links
	linked  map[inode]*linked // files with several names
	holes   int64             // bytes
	left    map[string]string // reasons by path
}

func (i *inspection) dir(dir string, depth int) error {
	if depth > maxDepth {
		return InvalidOutputError(fmt.Sprintf("The program's folders are nested more than %d levels deep.", maxDepth))
	}
	entries, err := i.readDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		i.leaveOut(dir, unreadable)
		return nil
	}
	if err != nil {
		return err
	}
	names := make(map[string]bool, len(entries))
	for _, e := range entries {
		names[e.Name()] = true
	}
	for _, e := range entries {
		if err := i.entry(dir, e, names, depth); err != nil {
			return err
		}
	}
	return nil
}

// readDir lists a directory in chunks, so that one with millions of entries is rejected
// before all of them are in memory.
func (i *inspection) readDir(dir string) ([]fs.DirEntry, error) {
	f, err := i.root.Open(dir)
	if err != nil {
		return nil, err
	}
	var entries []fs.DirEntry
	for {
		piece, err := f.ReadDir(1024)
		entries = append(entries, piece...)
		if i.entries+len(entries) > i.limit {
			return nil, errors.Join(InvalidOutputError(fmt.Sprintf(tooMany, i.limit)), f.Close())
		}
		if len(piece) == 0 || err != nil {
			break
		}
	}
	i.entries += len(entries)
	sort.Slice(entries, func(a, b int) bool { return entries[a].Name() < entries[b].Name() })
	return entries, f.Close()
}

func (i *inspection) entry(dir string, e fs.DirEntry, names map[string]bool, depth int) error {
	path := filepath.Join(dir, e.Name())
	switch {
	case len(path) > maxPath:
		return InvalidOutputError(fmt.Sprintf("The program wrote files with paths longer than %d bytes.", maxPath))
	case !e.IsDir() && !e.Type().IsRegular() && e.Type() != fs.ModeSymlink:
		i.leaveOut(path, kindOf(e.Type()))
		return nil
	}
	path, err := i.rename(dir, e.Name(), names)
	if err != nil {
		return err
	}
	info, err := i.root.Lstat(path)
	if err != nil {
		return err
	}
	if e.IsDir() {
		if err := i.makeReadable(path, info); err != nil {
			return err
		}
		return i.dir(path, depth+1)
	}
	if e.Type() == fs.ModeSymlink {
		i.links = append(i.links, path)
		return nil
	}
	if i.addLinked(path, info) {
		return nil // left as it is until its owner is known
	}
	return i.accept(path, info)
}

// leaveOut records an entry that can't be part of the result.
func (i *inspection) leaveOut(path, reason string) {
	if i.left == nil {
		i.left = map[string]string{}
	}
	i.left[path] = reason
}

// remove removes the entries that can't be part of the result, after these have been
// recorded durably.
func (i *inspection) remove() error {
	for path, reason := range i.left {
		if reason == unreadable {
			continue // may be a folder with files
		}
		if err := i.root.Remove(path); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// rename gives an entry a portable name unless it has one.
func (i *inspection) rename(dir, name string, names map[string]bool) (string, error) {
	safe := safeName(name)
	if safe == name {
		return filepath.Join(dir, name), nil
	}
	free := safe
	for n := 2; names[free]; n++ {
		free = fmt.Sprintf("%s~%d", safe, n)
	}
	names[free] = true
	path := filepath.Join(dir, free)
	if i.renamed == nil {
		i.renamed = map[string]string{}
	}
	i.renamed[filepath.Join(dir, name)] = path
	return path, i.root.Rename(filepath.Join(dir, name), path)
}

// safeName returns the name under which a file is kept, in Unicode normal form C. Bytes
// that are not UTF-8, control characters and backslashes are written as %XX; a name that
// becomes too long is truncated.
func safeName(name string) string {
	var b strings.Builder
	for rest := norm.NFC.String(name); rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) || r == '\\' {
			for i := range size {
				fmt.Fprintf(&b, "%%%02X", rest[i])
			}
		} else {
			b.WriteString(rest[:size])
		}
		rest = rest[size:]
	}
	safe := b.String()
	if safe == name || len(safe) <= maxName-8 {
		return safe
	}
	cut := maxName - 8 // leaves space for ~N
	for !utf8.RuneStart(safe[cut]) {
		cut--
	}
	return safe[:cut]
}

// inode identifies a file independently of its names.
type inode struct{ device, number uint64 }

// linked is a file of the result that has several names.
type linked struct {
	links, found uint64 // number of names that the file has, and of those found so far
	info         fs.FileInfo
	paths        []string // in the result
}

func linkCount(info fs.FileInfo) (id inode, links uint64) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return inode{}, 0
	}
	return inode{uint64(s.Dev), s.Ino}, uint64(s.Nlink)
}

// addLinked records a file that has several names, and reports whether it does.
func (i *inspection) addLinked(path string, info fs.FileInfo) bool {
	id, links := linkCount(info)
	if links < 2 {
		return false
	}
	if i.linked == nil {
		i.linked = map[inode]*linked{}
	}
	l := i.linked[id]
	if l == nil {
		l = &linked{links: links, info: info}
		i.linked[id] = l
	}
	l.found++
	l.paths = append(l.paths, path)
	return true
}

// resolveHardLinks accepts files with several names if these are the program's own. It
// removes from the result those that also have a name outside the result and the work
// directory, which will be removed. Such a file may belong to another user: the program
// might have had no right to read it, and its owner can change it. In a sandbox, programs
// can link only their own files.
func (i *inspection) resolveHardLinks(work string) error {
	if len(i.linked) == 0 {
		return nil
	}
	i.countBelow(work, i.limit)
	for _, l := range i.linked {
		for _, path := range l.paths {
			if l.found != l.links {
				i.leaveOut(path, "a hard link to a file outside the output folder")
			} else if err := i.accept(path, l.info); err != nil {
				return err
			}
		}
	}
	return nil
}

// countBelow counts further names of linked files below a directory. It visits at most
// the given number of entries and returns the unused rest; names it does not see count as
// foreign.
func (i *inspection) countBelow(dir string, entries int) (left int) {
	f, err := os.Open(dir)
	if err != nil {
		return entries
	}
	defer f.Close()
	for entries > 0 {
		piece, err := f.ReadDir(min(entries, 1024))
		entries -= len(piece)
		for _, e := range piece {
			if e.IsDir() {
				entries = i.countBelow(filepath.Join(dir, e.Name()), entries)
			} else if info, err := e.Info(); err == nil {
				id, _ := linkCount(info)
				if l := i.linked[id]; l != nil {
					l.found++
				}
			}
		}
		if err != nil || len(piece) == 0 {
			break
		}
	}
	return entries
}

// makeReadable makes an entry readable for the service, if the service owns it.
func (i *inspection) makeReadable(path string, info fs.FileInfo) error {
	want := fs.FileMode(0o600)
	if info.IsDir() {
		want = 0o700
	}
	if info.Mode().Perm()&want == want {
		return nil
	}
	if err := i.root.Chmod(path, info.Mode().Perm()|want); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// readable reports whether a file can be read. A container may have left files owned by
// other users.
func (i *inspection) readable(path string, info fs.FileInfo) (bool, error) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) == os.Geteuid() {
		return true, nil
	}
	f, err := i.root.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// accept adds a file to the result, unless the result contains too many holes.
func (i *inspection) accept(path string, info fs.FileInfo) error {
	if err := i.makeReadable(path, info); err != nil {
		return err
	}
	if ok, err := i.readable(path, info); !ok || err != nil {
		i.leaveOut(path, unreadable)
		return err
	}
	i.files = append(i.files, path)
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Size()-s.Blocks*512 < fewHoles {
		return nil
	}
	f, err := i.root.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	// The number of blocks is not conclusive: some file systems compress data.
	holes, err := holesOf(f, info.Size())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if i.holes += holes; i.holes > maxHoles {
		return InvalidOutputError(fmt.Sprintf(tooManyHoles, unit.Bytes(maxHoles)))
	}
	return nil
}

// holesOf returns the size of the holes in a file.
func holesOf(f *os.File, size int64) (holes int64, err error) {
	const seekData, seekHole = 3, 4 // of lseek(2)
	for at := int64(0); at < size; {
		data, err := f.Seek(at, seekData)
		if errors.Is(err, syscall.ENXIO) { // the rest is a hole
			return holes + size - at, nil
		}
		if err != nil {
			return 0, err
		}
		holes += data - at
		if at, err = f.Seek(data, seekHole); err != nil {
			return 0, err
		}
	}
	return holes, nil
}
