// Package folder reads the folders of algorithms, which contain scripts, force fields and
// example inputs. It lists their files, keeps copies by digest so that a job continues to
// use the files with which it was submitted, and removes copies that no job needs.
//
// It also packs folders and files, such as weights and databases, into a tar archive for
// a machine without a network (WriteArchive, Unpack). Files are read and written once, as
// a stream. The last member of an archive lists them with their SHA-256.
package folder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Main is the name of the file that makes a folder an algorithm.
const Main = "algorithm.toml"

// Examples is the subfolder with the files that an example refers to.
const Examples = "example"

// Limits of a folder. Anything larger should be installed on the machine.
const (
	MaxFiles = 1000
	MaxBytes = 64 << 20
	maxName  = 255 // bytes in a path
)

// File is one file of a folder.
type File struct {
	Path       string // relative to the folder, with slashes
	Executable bool
	Size       int64
	SHA256     string // hex
}

// Folder is the folder of an algorithm.
type Folder struct {
	Files  []File // sorted by path, including Main
	Digest string // of the algorithm: hex SHA-256 of its file's text and the list

	from  fs.FS  // nil if only copies remain
	store *Store // nil if no copies are made
}

// ReadFolder lists a folder. It skips __pycache__ and names that begin with a dot. wrong
// lists errors in the folder.
func ReadFolder(from fs.FS) (f *Folder, wrong []string, err error) {
	f = &Folder{from: from}
	total := int64(0)
	err = fs.WalkDir(from, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case strings.HasPrefix(e.Name(), ".") || e.Name() == "__pycache__":
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			return nil
		case len(f.Files) == MaxFiles:
			wrong = append(wrong, fmt.Sprintf("the folder has more than %d files: keep larger collections elsewhere on the machine", MaxFiles))
			return fs.SkipAll
		}
		file, msg, err := readFile(from, name)
		if err != nil {
			return err
		}
		if msg != "" {
			wrong = append(wrong, msg)
			return nil
		}
		if total += file.Size; total > MaxBytes {
			wrong = append(wrong, fmt.Sprintf("the folder has more than %d MiB: keep large files elsewhere on the machine", MaxBytes>>20))
			return fs.SkipAll
		}
		f.Files = append(f.Files, file)
		return nil
	})
	slices.SortFunc(f.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return f, wrong, err
}

// readFile reads one file. wrong is an error in the file.
func readFile(from fs.FS, name string) (f File, wrong string, err error) {
	switch info, err := fs.Stat(from, name); {
	case len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return f, fmt.Sprintf("the folder has a file %.300q: use at most %d bytes and no control characters in names", name, maxName), nil
	case errors.Is(err, fs.ErrNotExist):
		return f, fmt.Sprintf("%s is a broken link: replace it with a file", name), nil
	case err != nil:
		return f, fmt.Sprintf("%s can't be used (%v): a link must stay within the folder", name, err), nil
	case !info.Mode().IsRegular():
		return f, fmt.Sprintf("%s is not a regular file: remove it from the folder", name), nil
	default:
		f.Executable = info.Mode()&0o111 != 0
	}
	in, err := from.Open(name)
	if err != nil {
		return f, fmt.Sprintf("%s can't be read: %v", name, err), nil
	}
	f.Path = name
	sum := sha256.New()
	var begin [2]byte
	n, err := io.ReadFull(in, begin[:])
	if err == nil {
		f.Executable = f.Executable || string(begin[:]) == "#!" // embedded files have no modes
	}
	sum.Write(begin[:n])
	rest, err := io.Copy(sum, io.LimitReader(in, MaxBytes+1))
	f.Size, f.SHA256 = int64(n)+rest, hex.EncodeToString(sum.Sum(nil))
	return f, "", errors.Join(err, in.Close())
}

// Source returns the files of the folder, or nil if only copies remain.
func (f *Folder) Source() fs.FS { return f.from }

// DigestOrEmpty returns the digest, or "" if there is no folder.
func (f *Folder) DigestOrEmpty() string {
	if f == nil {
		return ""
	}
	return f.Digest
}

// Named returns the file with this path, or nil if there is none.
func (f *Folder) Named(name string) *File {
	if f == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(f.Files, name, func(file File, name string) int { return strings.Compare(file.Path, name) })
	if !found {
		return nil
	}
	return &f.Files[i]
}

// Has reports whether the folder contains a file or folder with this path.
func (f *Folder) Has(name string) bool {
	return f.Named(name) != nil || f != nil && slices.ContainsFunc(f.Files, func(file File) bool { return strings.HasPrefix(file.Path, name+"/") })
}

// Under returns the sorted names of the files directly in a subfolder.
func (f *Folder) Under(dir string) []string {
	var names []string
	if f == nil {
		return nil
	}
	for _, file := range f.Files {
		if path.Dir(file.Path) == dir {
			names = append(names, path.Base(file.Path))
		}
	}
	return names
}

// ReadFile reads a file from the folder's source. It fails if the file has changed since
// the folder was read.
func (f *Folder) ReadFile(name string) ([]byte, error) {
	file := f.Named(name)
	if file == nil || f.from == nil {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	text, err := fs.ReadFile(f.from, name)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != file.SHA256 {
		return nil, fmt.Errorf("%s: %w", name, ErrChanged)
	}
	return text, nil
}
