package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxDepth   = 64   // of folders in a result
	maxPath    = 4096 // bytes of a file's path in a result
	maxName    = 255  // bytes of one name, as file systems have it
	shownPaths = 20   // of what is left out, in the log
)

// unfit says that a result can't be kept, in words for the job's user.
type unfit string

func (u unfit) Error() string { return string(u) }

// tidying goes through a result: it finds the files, removes links, devices
// and whatever else is neither file nor folder, and gives names that can't
// stand in an archive ones that can.
type tidying struct {
	root  *os.Root
	limit int

	entries int
	files   []string         // sorted within each folder
	shared  map[inode]*names // of files that have several names
	holes   int64            // bytes
	dropped []string
	more    int // dropped and not listed
}

func (t *tidying) folder(dir string, depth int) error {
	if depth > maxDepth {
		return unfit(fmt.Sprintf("The program left folders within folders, more than %d deep.", maxDepth))
	}
	entries, err := t.read(dir)
	if err != nil {
		return err
	}
	names := make(map[string]bool, len(entries))
	for _, e := range entries {
		names[e.Name()] = true
	}
	for _, e := range entries {
		if err := t.entry(dir, e, names, depth); err != nil {
			return err
		}
	}
	return nil
}

// read lists a folder in pieces, so that one with millions of names is refused
// before all of them are in memory.
func (t *tidying) read(dir string) ([]fs.DirEntry, error) {
	f, err := t.root.Open(dir)
	if err != nil {
		return nil, err
	}
	var entries []fs.DirEntry
	for {
		piece, err := f.ReadDir(1024)
		entries = append(entries, piece...)
		if t.entries+len(entries) > t.limit {
			return nil, errors.Join(t.tooMany(), f.Close())
		}
		if len(piece) == 0 || err != nil {
			break
		}
	}
	t.entries += len(entries)
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	return entries, f.Close()
}

func (t *tidying) tooMany() error {
	return unfit(fmt.Sprintf("The program left more than %d files and folders; let it write fewer, or pack them.", t.limit))
}

func (t *tidying) entry(dir string, e fs.DirEntry, names map[string]bool, depth int) error {
	path := filepath.Join(dir, e.Name())
	switch {
	case len(path) > maxPath-64:
		return unfit(fmt.Sprintf("The program left files whose paths are longer than %d bytes.", maxPath-64))
	case !e.IsDir() && !e.Type().IsRegular():
		t.drop(path)
		return t.root.Remove(path)
	}
	path, err := t.rename(dir, e.Name(), names)
	if err != nil {
		return err
	}
	info, err := t.root.Lstat(path)
	if err != nil {
		return err
	}
	if e.IsDir() {
		if err := t.open(path, info); err != nil {
			return err
		}
		return t.folder(path, depth+1)
	}
	t.files = append(t.files, path)
	if t.count(path, info) {
		return nil // until it is known whose it is, it is not touched
	}
	return t.accept(path, info)
}

// accept takes a file for one of the result.
func (t *tidying) accept(path string, info fs.FileInfo) error {
	if err := t.open(path, info); err != nil {
		return err
	}
	return t.sound(path, info)
}

func (t *tidying) drop(path string) {
	if len(t.dropped) == shownPaths {
		t.more++
		return
	}
	t.dropped = append(t.dropped, path)
}

// rename gives an entry a name that means the same everywhere, if it has none.
func (t *tidying) rename(dir, name string, names map[string]bool) (string, error) {
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
	return path, t.root.Rename(filepath.Join(dir, name), path)
}

// open makes sure that the service itself may read the entry.
func (t *tidying) open(path string, info fs.FileInfo) error {
	want := fs.FileMode(0o600)
	if info.IsDir() {
		want = 0o700
	}
	if info.Mode().Perm()&want == want {
		return nil
	}
	return t.root.Chmod(path, info.Mode().Perm()|want)
}

// safeName gives the name under which a file is kept: as it is, but for bytes
// that are no UTF-8, control characters and backslashes, which are written as
// %XX. A name that gets too long by that is cut.
func safeName(name string) string {
	var b strings.Builder
	for rest := name; rest != ""; {
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
	cut := maxName - 8 // leaves room for ~N
	for !utf8.RuneStart(safe[cut]) {
		cut--
	}
	return safe[:cut]
}
