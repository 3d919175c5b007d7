package runner

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// inode is a file, whatever its names.
type inode struct{ device, number uint64 }

// names tells where a file was found, of all the names that it has.
type names struct {
	all, found uint64
	info       fs.FileInfo
	paths      []string // in the result
}

func linkCount(info fs.FileInfo) (id inode, links uint64) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return inode{}, 0
	}
	return inode{uint64(s.Dev), s.Ino}, uint64(s.Nlink)
}

// count notes a file of the result that has other names as well, and reports
// whether it has.
func (t *tidying) count(path string, info fs.FileInfo) bool {
	id, links := linkCount(info)
	if links < 2 {
		return false
	}
	if t.shared == nil {
		t.shared = map[inode]*names{}
	}
	n := t.shared[id]
	if n == nil {
		n = &names{all: links, info: info}
		t.shared[id] = n
	}
	n.found++
	n.paths = append(n.paths, path)
	return true
}

// settleShared accepts files with several names that are the program's own, and
// removes from the result those with a name outside of it and of the work
// directory, which goes. Such a file is another's: the program may have had no
// right to read it, and who has the other name can change what is kept. A sandbox
// lets programs link their own files only.
func (t *tidying) settleShared(work string) error {
	if len(t.shared) == 0 {
		return nil
	}
	t.countBelow(work, t.limit)
	foreign := map[string]bool{}
	for _, n := range t.shared {
		for _, path := range n.paths {
			settle := t.accept
			if foreign[path] = n.found != n.all; foreign[path] {
				settle = t.disown
			}
			if err := settle(path, n.info); err != nil {
				return err
			}
		}
	}
	t.files = slices.DeleteFunc(t.files, func(path string) bool { return foreign[path] })
	return nil
}

func (t *tidying) disown(path string, _ fs.FileInfo) error {
	t.drop(path)
	return t.root.Remove(path)
}

// countBelow counts further names below a folder, of which it looks at so many
// entries. What it does not see it takes for another's.
func (t *tidying) countBelow(dir string, entries int) (left int) {
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
				entries = t.countBelow(filepath.Join(dir, e.Name()), entries)
			} else {
				t.countEntry(e)
			}
		}
		if err != nil || len(piece) == 0 {
			break
		}
	}
	return entries
}

func (t *tidying) countEntry(e fs.DirEntry) {
	info, err := e.Info()
	if err != nil {
		return
	}
	id, _ := linkCount(info)
	if n := t.shared[id]; n != nil {
		n.found++
	}
}
