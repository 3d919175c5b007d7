package folder

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"molrun/app/base/digest"
	"molrun/app/base/durable"
)

// stagePrefix begins the names of staging folders.
const stagePrefix = ".molrun-unpack-"

// Unpack unpacks an archive into a new folder, which must not exist. The folder appears
// only once the whole archive has been read and matches its manifest.
func Unpack(ctx context.Context, r io.Reader, dir string) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s already exists; choose a new folder", dir))
	}
	s, err := stageFor(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir), s.lock.Close()) }()
	u := &unpacking{ctx: ctx, digester: digest.New(), content: filepath.Join(s.dir, "content"), found: map[string]entry{}}
	m, err := u.extract(r)
	if err != nil {
		return err
	}
	if err := u.compare(m); err != nil {
		return err
	}
	if err := syncAll(u.content); err != nil {
		return err
	}
	if err := os.Rename(u.content, dir); err != nil {
		return err
	}
	return durable.SyncFolder(filepath.Dir(dir))
}

// unpacking is the state of Unpack.
type unpacking struct {
	ctx      context.Context
	digester *digest.Digester
	content  string // staging folder for the files
	found    map[string]entry
}

// staged is a folder next to the target that holds the files until they are complete.
type staged struct {
	dir  string
	lock *os.File // held while this process uses the folder
}

// extract writes all files, and returns the manifest at the end.
func (u *unpacking) extract(r io.Reader) (m manifest, err error) {
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return m, errNoManifest
		}
		if err != nil {
			return m, fmt.Errorf("the archive can't be read: %w", err)
		}
		if isSparse(h) {
			return m, fmt.Errorf("the archive has the sparse file %q, which molrun pack never creates: create the archive with `molrun pack`", h.Name)
		}
		if h.Name == manifestName {
			return readManifest(t)
		}
		if h.Typeflag != tar.TypeReg {
			return m, fmt.Errorf("the archive has %q, which is not a regular file", h.Name)
		}
		if err := u.file(h, t); err != nil {
			return m, err
		}
	}
}

// isSparse reports whether a file has holes, which take no space in the archive but can
// fill the disk. Any other file is no longer than the archive.
func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
}

// file writes one file.
func (u *unpacking) file(h *tar.Header, content io.Reader) error {
	if err := checkName(h.Name); err != nil {
		return err
	}
	if _, twice := u.found[h.Name]; twice {
		return fmt.Errorf("the archive has %q twice", h.Name)
	}
	target := filepath.Join(u.content, filepath.FromSlash(h.Name))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	e, err := u.writeFile(target, mode, content)
	e.Name, e.Executable = h.Name, mode&0o111 != 0
	u.found[h.Name] = e
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errNoManifest
	}
	return err
}

// writeFile writes and syncs a new file.
func (u *unpacking) writeFile(target string, mode fs.FileMode, content io.Reader) (e entry, err error) {
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return e, err
	}
	e.SHA256, e.Size, err = u.digester.Stream(u.ctx, f, content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return e, errors.Join(err, f.Close())
}

// stageFor creates the staging folder next to the target. It first removes the staging
// folders of killed processes.
func stageFor(target string) (s staged, err error) {
	above := filepath.Dir(target)
	if err := os.MkdirAll(above, 0o755); err != nil {
		return s, err
	}
	if err := removeStale(above); err != nil {
		return s, err
	}
	s.dir = filepath.Join(above, stagePrefix+rand.Text())
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return s, err
	}
	s.lock, err = lock(s.dir)
	return s, err
}

// lock locks a folder. It fails if another process has locked it.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// removeStale removes the staging folders that interrupted calls of Unpack left behind.
func removeStale(above string) error {
	left, err := filepath.Glob(filepath.Join(above, stagePrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		f, err := lock(dir)
		if err != nil {
			continue // in use by another process
		}
		if err := errors.Join(os.RemoveAll(dir), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// compare checks the files against the manifest.
func (u *unpacking) compare(m manifest) error {
	if len(m.Files) != len(u.found) {
		return fmt.Errorf("the archive has %d files, but its manifest lists %d: copy it again", len(u.found), len(m.Files))
	}
	for _, want := range m.Files {
		if got, ok := u.found[want.Name]; !ok || got != want {
			return fmt.Errorf("%s does not match the archive's manifest (size or SHA-256): copy the archive again", want.Name)
		}
	}
	return nil
}

// syncAll syncs all directories below root.
func syncAll(root string) error {
	return filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return durable.SyncFolder(name)
	})
}
