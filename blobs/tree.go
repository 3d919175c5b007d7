package blobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/durable"
	"molrun/blobs/link"
	"molrun/blobs/result"
)

// Tree is the files of a data directory as backup and check see them, even
// while a service runs on it. Opening one creates and removes nothing.
type Tree struct{ root *os.Root }

// OpenTree opens the data directory.
func OpenTree(dir string) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	return &Tree{root}, nil
}

// Close closes the directory.
func (t *Tree) Close() error { return t.root.Close() }

// File is a file in the data directory that the service depends on.
type File struct {
	Path   string // with slashes
	Size   int64  // -1 if unknown
	SHA256 string // in hex, "" if unknown

	// Changing files may grow or be removed while the service runs.
	Changing bool
}

// SecretFile returns the key ring that signs links.
func SecretFile() File { return File{Path: link.SecretName, Size: -1} }

// UploadFile returns the bytes of an upload, false if none were received.
func UploadFile(u *app.Upload) (File, bool) {
	return File{Path: uploadName(u.ID, u.Generation), Size: u.Size, SHA256: u.SHA256}, u.Generation > 0
}

// Result returns the files of a completed job: its manifest and what that lists.
func (t *Tree) Result(id app.JobID) ([]File, error) {
	m, data, err := result.ReadManifest(t.root, id)
	if err != nil {
		return nil, err
	}
	if err := result.CheckManifest(m); err != nil {
		return nil, fmt.Errorf("manifest of job %s: %w", id, err)
	}
	files := []File{{Path: result.ManifestName(id), Size: int64(len(data))}}
	for _, f := range m.Files {
		files = append(files, File{Path: path.Join(result.JobDir(id), f.Path), Size: f.Size, SHA256: f.SHA256})
	}
	return files, nil
}

// Attempt returns the files next to the work directory of a finished attempt:
// its task, outcome and log, as far as they exist.
func (t *Tree) Attempt(id app.JobID, number int) ([]File, error) {
	dir := path.Join(result.JobDir(id), strconv.Itoa(number))
	entries, err := fs.ReadDir(t.root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var files []File
	for _, e := range entries {
		if e.Type().IsRegular() {
			files = append(files, File{Path: path.Join(dir, e.Name()), Size: -1})
		}
	}
	return files, err
}

// Changing returns the files whose paths match a pattern of path.Match.
func (t *Tree) Changing(pattern string) ([]File, error) {
	names, err := fs.Glob(t.root.FS(), pattern)
	var files []File
	for _, name := range names {
		if info, err := t.Stat(name); err == nil && info.Mode().IsRegular() {
			files = append(files, File{Path: name, Size: -1, Changing: true})
		}
	}
	return files, err
}

// Open opens a regular file for reading. It refuses a symbolic link or a pipe.
func (t *Tree) Open(name string) (*os.File, fs.FileInfo, error) {
	before, err := t.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no regular file", name)
	}
	f, err := t.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = fmt.Errorf("%s was replaced while it was opened", name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// Stat describes a file without opening it.
func (t *Tree) Stat(name string) (fs.FileInfo, error) { return t.root.Lstat(filepath.FromSlash(name)) }

// Stray is an orphan: a generation of an upload or a job's directory that no
// record names.
type Stray struct {
	Path    string
	Changed time.Time // zero if it has vanished
}

// Strays returns the orphans, uploads before jobs, each sorted by path. It skips
// names that this package never makes.
func (t *Tree) Strays(uploadKnown func(id app.UploadID, generation int) bool, jobKnown func(id app.JobID) bool) ([]Stray, error) {
	stray := func(name string, e fs.DirEntry) Stray {
		s := Stray{Path: name}
		if info, err := e.Info(); err == nil {
			s.Changed = info.ModTime()
		}
		return s
	}
	var uploads, jobs []Stray
	orphans := visitor{
		upload: func(name string, e fs.DirEntry, id app.UploadID, generation int) error {
			if !uploadKnown(id, generation) {
				uploads = append(uploads, stray(name, e))
			}
			return nil
		},
		job: func(name string, e fs.DirEntry, id app.JobID) error {
			if !jobKnown(id) {
				jobs = append(jobs, stray(name, e))
			}
			return nil
		},
	}
	if err := orphans.walk(context.Background(), t.root); err != nil {
		return nil, fmt.Errorf("look for files that no record names: %w", err)
	}
	for _, found := range [][]Stray{uploads, jobs} {
		slices.SortFunc(found, func(a, b Stray) int { return strings.Compare(a.Path, b.Path) })
	}
	return append(uploads, jobs...), nil
}

// SetAside moves a stray into the directory aside of the data directory, under
// its own path. No service may run.
func (t *Tree) SetAside(name, aside string) error {
	to := path.Join(aside, name)
	err := t.root.MkdirAll(filepath.FromSlash(path.Dir(to)), 0o700)
	if err == nil {
		err = t.root.Rename(filepath.FromSlash(name), filepath.FromSlash(to))
	}
	if err == nil {
		err = errors.Join(durable.SyncDir(t.root, path.Dir(to)), durable.SyncDir(t.root, path.Dir(name)))
	}
	if err != nil {
		return fmt.Errorf("set %s aside: %w", name, err)
	}
	return nil
}
