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
	"molrun/app/base/durable"
	"molrun/blobs/link"
	"molrun/blobs/result"
)

// Tree gives backup and check access to the files of a data directory, even while a
// service runs on it. Opening a Tree creates and removes nothing.
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
	Path   string // slash-separated
	Size   int64  // -1 if unknown
	SHA256 string // in hex, "" if unknown

	// Changing files can grow or be removed while the service runs.
	Changing bool

	Owner string // user-facing name of its owner, or "" if it has none
}

// String describes the file for humans.
func (f File) String() string {
	if f.Owner == "" {
		return f.Path
	}
	return fmt.Sprintf("%s of %s", f.Path, f.Owner)
}

// SecretFile returns the key ring that signs links.
func SecretFile() File { return File{Path: link.SecretName, Size: -1} }

// UploadFile returns the file of an upload, or false if no bytes were received.
func UploadFile(u *app.Upload) (File, bool) {
	return File{Path: uploadName(u.ID, u.Generation), Size: u.Size, SHA256: u.SHA256}, u.Generation > 0
}

// Result returns the files of a completed job: its manifest and the files it lists.
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

// Attempt returns the files next to the work directory of a finished attempt: its task,
// outcome and log, as far as they exist.
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

// Open opens a regular file for reading. It rejects symbolic links and pipes.
func (t *Tree) Open(name string) (*os.File, fs.FileInfo, error) {
	before, err := t.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", name)
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

// Orphan describes a generation of an upload, a partial file or a job's directory that no
// record names, or a foreign file.
type Orphan struct {
	Path    string    `json:"path"`
	Bytes   int64     `json:"bytes"`   // total size of all files in it
	Changed time.Time `json:"changed"` // zero if it has disappeared
}

// Orphans returns the orphans, uploads before jobs, each sorted by path, and foreign files
// and directories: those with names that this package never creates.
func (t *Tree) Orphans(uploadKnown func(id app.UploadID, generation int) bool, jobKnown func(id app.JobID) bool) (orphans, foreign []Orphan, err error) {
	var uploads, jobs []Orphan
	upload := func(name string, _ fs.DirEntry, id app.UploadID, generation int) error {
		if !uploadKnown(id, generation) {
			uploads = append(uploads, t.stray(name))
		}
		return nil
	}
	visits := visitor{
		upload: upload, partial: upload,
		job: func(name string, _ fs.DirEntry, id app.JobID) error {
			if !jobKnown(id) {
				jobs = append(jobs, t.stray(name))
			}
			return nil
		},
		other: func(name string) { foreign = append(foreign, t.stray(name)) },
	}
	if err := visits.walk(context.Background(), t.root); err != nil {
		return nil, nil, fmt.Errorf("find unreferenced files: %w", err)
	}
	for _, found := range [][]Orphan{uploads, jobs, foreign} {
		slices.SortFunc(found, func(a, b Orphan) int { return strings.Compare(a.Path, b.Path) })
	}
	return append(uploads, jobs...), foreign, nil
}

// Unknown returns the entries of the data directory whose names match none of the
// patterns of path.Match.
func (t *Tree) Unknown(patterns []string) (found []Orphan, err error) {
	entries, err := fs.ReadDir(t.root.FS(), ".")
	for _, e := range entries {
		known := slices.ContainsFunc(patterns, func(pattern string) bool {
			matches, err := path.Match(pattern, e.Name())
			return matches && err == nil
		})
		if !known {
			found = append(found, t.stray(e.Name()))
		}
	}
	return found, err
}

// stray measures a file or directory as far as it can be read.
func (t *Tree) stray(name string) Orphan {
	s := Orphan{Path: name}
	if info, err := t.Stat(name); err == nil {
		s.Changed = info.ModTime()
	}
	_ = fs.WalkDir(t.root.FS(), name, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				s.Bytes += info.Size()
			}
		}
		return nil // unreadable files are not counted
	})
	return s
}

// SetAside moves a stray file or directory to the same relative path below aside, which
// is a directory in the data directory. The service must not be running.
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
