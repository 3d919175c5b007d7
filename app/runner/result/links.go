package result

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// resolveLinks accepts files with several names that are the program's own. It
// removes from the result those with a name outside of it and of the work
// directory, which will be removed. Such a file belongs to somebody else: the
// program may have had no right to read it, and its owner can change it. A sandbox
// lets programs link their own files only.
func (i *inspection) resolveLinks(work string) error {
	if len(i.linked) == 0 {
		return nil
	}
	i.countBelow(work, i.limit)
	foreign := map[string]bool{}
	for _, l := range i.linked {
		for _, path := range l.paths {
			resolve := i.accept
			if foreign[path] = l.found != l.links; foreign[path] {
				resolve = func(path string, _ fs.FileInfo) error { return i.drop(path) }
			}
			if err := resolve(path, l.info); err != nil {
				return err
			}
		}
	}
	i.files = slices.DeleteFunc(i.files, func(path string) bool { return foreign[path] })
	return nil
}

// countBelow counts further names of linked files below a directory. It looks at
// no more than so many entries; a name that it does not see counts as foreign.
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
