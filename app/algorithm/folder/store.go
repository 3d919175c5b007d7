package folder

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"molrun/app/base/durable"
)

// Errors for folders that can't be used.
var (
	ErrGone    = errors.New("that version of the algorithm's files is no longer stored")
	ErrChanged = errors.New("the file has changed since the service read it: restart the service")
)

// keptAtLeast is how long an unused copy is kept, because a job that needs it might be
// about to be queued.
const keptAtLeast = 24 * time.Hour

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Store keeps copies of folders, each in a directory named after its digest. Directories
// and files are read-only, so that programs do not change them.
type Store struct {
	dir string
	mu  sync.Mutex // held while looking up or removing a copy
}

// NewStore returns the store in a directory, which is created when needed.
func NewStore(dir string) *Store { return &Store{dir: dir} }

// KeepIn sets the store in which Path keeps copies.
func (f *Folder) KeepIn(s *Store) {
	if f != nil {
		f.store = s
	}
}

// Path returns the path of the folder's copy, creating it if necessary. It is "" for an
// algorithm without a folder.
func (f *Folder) Path() (string, error) {
	switch {
	case f == nil:
		return "", nil
	case f.store == nil:
		return "", errors.New("no store for the algorithm's folder")
	}
	return f.store.KeepCopy(f)
}

// original returns the source for a copy in store s: the copy in the folder's own store
// or, for that copy, the files that were originally read.
func (f *Folder) original(s *Store) (fs.FS, error) {
	if f.store == s {
		if f.from == nil {
			return nil, ErrGone
		}
		return f.from, nil
	}
	dir, err := f.Path()
	if err != nil {
		return nil, err
	}
	return os.DirFS(dir), nil
}

// KeepCopy returns the path of a copy of the folder. It creates the copy if necessary,
// and completes one that is incomplete, as after a restore. The error is ErrGone if there
// is no source to copy from, and ErrChanged if the source has changed.
func (s *Store) KeepCopy(f *Folder) (string, error) {
	dir := filepath.Join(s.dir, f.Digest)
	if s.touch(dir) && f.isComplete(dir) {
		return dir, nil
	}
	from, err := f.original(s)
	if err == nil {
		err = durable.MkdirAll(s.dir, 0o700)
	}
	if err != nil {
		return "", err
	}
	made := filepath.Join(s.dir, ".new-"+rand.Text())
	if err := f.copy(made, from); err != nil {
		return "", errors.Join(fmt.Errorf("keep the algorithm's folder: %w", err), removeTree(made))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.isComplete(dir) { // created by another call
		return dir, removeTree(made)
	}
	if err := errors.Join(removeTree(dir), os.Rename(made, dir)); err != nil {
		return "", fmt.Errorf("keep the algorithm's folder: %w", err)
	}
	return dir, durable.SyncFolder(s.dir)
}

// touch marks a copy as needed now, and reports whether it exists.
func (s *Store) touch(dir string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return os.Chtimes(dir, now, now) == nil
}

// isComplete reports whether a copy has all files. It fixes modes that were lost when
// restoring a backup.
func (f *Folder) isComplete(dir string) bool {
	for _, file := range f.Files {
		name := filepath.Join(dir, filepath.FromSlash(file.Path))
		info, err := os.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() != file.Size {
			return false
		}
		if info.Mode().Perm() != file.mode() && os.Chmod(name, file.mode()) != nil {
			return false
		}
	}
	return true
}

func (f *File) mode() fs.FileMode {
	if f.Executable {
		return 0o555
	}
	return 0o444
}

// copy makes a durable copy.
func (f *Folder) copy(to string, from fs.FS) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	dirs := []string{to}
	for _, file := range f.Files {
		name := filepath.Join(to, filepath.FromSlash(file.Path))
		if !filepath.IsLocal(filepath.FromSlash(file.Path)) {
			return fmt.Errorf("%q is not a path below the folder", file.Path)
		}
		if dir := filepath.Dir(name); dir != dirs[len(dirs)-1] {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			dirs = append(dirs, dir)
		}
		if err := file.copy(name, from); err != nil {
			return fmt.Errorf("%s: %w", file.Path, err)
		}
	}
	for _, dir := range dirs {
		if err := errors.Join(durable.SyncFolder(dir), os.Chmod(dir, 0o555)); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) copy(to string, from fs.FS) error {
	in, err := from.Open(f.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), io.LimitReader(in, f.Size+1))
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		err = ErrChanged
	}
	if err == nil {
		err = errors.Join(out.Chmod(f.mode()), out.Sync())
	}
	return errors.Join(err, out.Close())
}

// CollectGarbage removes copies that are unused and were not requested in the last day,
// and incomplete copies left by a crash. A copy is kept if used returns an error.
func (s *Store) CollectGarbage(used func(digest string) (bool, error)) (removed int, err error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, e := range entries {
		if !s.isOld(e.Name()) {
			continue
		}
		if digestPattern.MatchString(e.Name()) {
			if needed, unknown := used(e.Name()); needed || unknown != nil {
				err = errors.Join(err, unknown)
				continue
			}
		} else if e.Name()[0] != '.' {
			continue // not created by Store
		}
		done, failed := s.remove(e.Name())
		if err = errors.Join(err, failed); done {
			removed++
		}
	}
	return removed, err
}

func (s *Store) isOld(name string) bool {
	info, err := os.Lstat(filepath.Join(s.dir, name))
	return err == nil && info.IsDir() && time.Since(info.ModTime()) > keptAtLeast
}

// remove removes a directory unless it was requested in the meantime.
func (s *Store) remove(name string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isOld(name) {
		return false, nil
	}
	return true, removeTree(filepath.Join(s.dir, name))
}

// removeTree removes a directory even if it is read-only.
func removeTree(dir string) error {
	_ = filepath.WalkDir(dir, func(name string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			return os.Chmod(name, 0o700)
		}
		return nil
	}) // RemoveAll returns the error
	return os.RemoveAll(dir)
}
