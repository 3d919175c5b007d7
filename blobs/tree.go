package blobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"molrun/app"
)

// Tree is the files of a data directory as a backup and a check see them, also
// beside a service that runs. It makes and removes nothing.
type Tree struct{ root *os.Root }

// OpenTree takes hold of the data directory.
func OpenTree(dir string) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	return &Tree{root}, nil
}

// Close gives the directory back.
func (t *Tree) Close() error { return t.root.Close() }

// File is a file below the data directory that something relies on.
type File struct {
	Path   string // with slashes
	Size   int64  // -1: as it is
	SHA256 string // in hex, "" where nothing tells

	// Changing files may grow, and go, while the service runs.
	Changing bool
}

// SecretFile is the key ring that signs links.
func SecretFile() File { return File{Path: secretName, Size: -1} }

// CheckSecret says what keeps the service from using the secret of the data
// directory, and makes none.
func CheckSecret(dir string) error {
	_, err := readSecret(filepath.Join(dir, secretName))
	return err
}

// UploadFile gives the bytes of an upload, false where none were received.
func UploadFile(u *app.Upload) (File, bool) {
	return File{Path: uploadName(u.ID, u.Generation), Size: u.Size, SHA256: u.SHA256}, u.Generation > 0
}

// Result gives the files of a completed job: its manifest and what that lists.
func (t *Tree) Result(id app.JobID) ([]File, error) {
	name := path.Join(jobsDir, string(id), manifestName)
	data, err := t.root.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read manifest of job %s: %w", id, err)
	}
	var m app.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("read manifest of job %s: %w", id, err)
	}
	if err := checkManifest(&m); err != nil {
		return nil, fmt.Errorf("manifest of job %s: %w", id, err)
	}
	files := []File{{Path: name, Size: int64(len(data))}}
	for _, f := range m.Files {
		files = append(files, File{Path: path.Join(jobsDir, string(id), f.Path), Size: f.Size, SHA256: f.SHA256})
	}
	return files, nil
}

// Attempt gives what an attempt that is over has left beside its work
// directory: how it was run, how it ended, its log. There may be nothing.
func (t *Tree) Attempt(id app.JobID, number int) ([]File, error) {
	dir := path.Join(jobsDir, string(id), strconv.Itoa(number))
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

// Changing gives the files whose paths match a pattern of path.Match.
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

// Open opens a regular file to be read. A link or a pipe in its place is an
// error.
func (t *Tree) Open(name string) (*os.File, fs.FileInfo, error) {
	there, err := t.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !there.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no regular file", name)
	}
	f, err := t.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(there, info) {
		err = fmt.Errorf("%s was replaced while it was opened", name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// Stat looks at a file without opening it.
func (t *Tree) Stat(name string) (fs.FileInfo, error) { return t.root.Lstat(filepath.FromSlash(name)) }

// Stray is an upload's bytes or a job's directory, by its path.
type Stray struct {
	Path    string
	Changed time.Time
}

// Strays gives what no record names: generations of uploads and directories of
// jobs. Names that this package never makes are none of its business.
func (t *Tree) Strays(uploadKnown func(id app.UploadID, generation int) bool, jobKnown func(id app.JobID) bool) ([]Stray, error) {
	var found []Stray
	err := t.each(uploadsDir, func(shard fs.DirEntry) error {
		dir := path.Join(uploadsDir, shard.Name())
		if dir == tmpDir || !shard.IsDir() {
			return nil
		}
		return t.each(dir, func(e fs.DirEntry) error {
			id, generation, ok := parseUploadName(e.Name())
			if ok && !uploadKnown(id, generation) {
				found = append(found, stray(dir, e))
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("look for files that no record names: %w", err)
	}
	err = t.each(jobsDir, func(e fs.DirEntry) error {
		if _, err := app.ParseID(e.Name()); err == nil && !jobKnown(app.JobID(e.Name())) {
			found = append(found, stray(jobsDir, e))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for directories that no record names: %w", err)
	}
	return found, nil
}

func stray(dir string, e fs.DirEntry) Stray {
	s := Stray{Path: path.Join(dir, e.Name())}
	if info, err := e.Info(); err == nil { // what has vanished is old
		s.Changed = info.ModTime()
	}
	return s
}

// each visits the entries of a directory, which may be absent.
func (t *Tree) each(dir string, visit func(fs.DirEntry) error) error {
	entries, err := fs.ReadDir(t.root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, visit(e))
	}
	return err
}

// SetAside moves a stray below the directory aside of the data directory,
// under its own path. The service must not run.
func (t *Tree) SetAside(name, aside string) error {
	to := path.Join(aside, name)
	err := t.root.MkdirAll(filepath.FromSlash(path.Dir(to)), 0o700)
	if err == nil {
		err = t.root.Rename(filepath.FromSlash(name), filepath.FromSlash(to))
	}
	if err == nil {
		err = errors.Join(syncDir(t.root, path.Dir(to)), syncDir(t.root, path.Dir(name)))
	}
	if err != nil {
		return fmt.Errorf("set %s aside: %w", name, err)
	}
	return nil
}
