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

// stagePrefix begins the names of what is not complete yet.
const stagePrefix = ".molrun-unpack-"

// Unpack unpacks an archive into a folder, which must not be there yet. It appears when all of
// the archive has arrived and is what its list says.
func Unpack(ctx context.Context, r io.Reader, dir string) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s is there already; name a new folder", dir))
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
	content  string // folder where the files lie for now
	found    map[string]entry
}

// staged is a folder next to the target, where files lie until they are complete.
type staged struct {
	dir  string
	lock *os.File // as long as this process works on it
}

// extract writes all files, and returns the list at the end.
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
			return m, fmt.Errorf("the archive has the sparse file %q, which molrun never packs: make it with `molrun pack`", h.Name)
		}
		if h.Name == manifestName {
			return readManifest(t)
		}
		if h.Typeflag != tar.TypeReg {
			return m, fmt.Errorf("the archive has %q, which is no regular file", h.Name)
		}
		if err := u.file(h, t); err != nil {
			return m, err
		}
	}
}

// isSparse reports whether a file has holes, which take no bytes of the archive and all of the
// disk. What is written of any other file is no longer than the archive.
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

// writeFile writes and syncs a file that is not there.
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

// stageFor makes the folder where files lie until they are complete. What earlier unpackings
// that were killed have left beside the target is removed.
func stageFor(target string) (s staged, err error) {
	above := filepath.Dir(target)
	if err := os.MkdirAll(above, 0o755); err != nil {
		return s, err
	}
	if err := sweep(above); err != nil {
		return s, err
	}
	s.dir = filepath.Join(above, stagePrefix+rand.Text())
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return s, err
	}
	s.lock, err = lock(s.dir)
	return s, err
}

// lock locks a folder, unless another process has.
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

// sweep removes what interrupted unpackings have left in a folder.
func sweep(above string) error {
	left, err := filepath.Glob(filepath.Join(above, stagePrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		f, err := lock(dir)
		if err != nil {
			continue // another process is at work
		}
		if err := errors.Join(os.RemoveAll(dir), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// compare holds the files that have arrived to the list.
func (u *unpacking) compare(m manifest) error {
	if len(m.Files) != len(u.found) {
		return fmt.Errorf("the archive has %d files, and its list %d: copy it again", len(u.found), len(m.Files))
	}
	for _, want := range m.Files {
		if got, ok := u.found[want.Name]; !ok || got != want {
			return fmt.Errorf("%s is not what the archive's list says (size or SHA-256): copy the archive again", want.Name)
		}
	}
	return nil
}

// syncAll makes the names below a folder durable.
func syncAll(root string) error {
	return filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return durable.SyncFolder(name)
	})
}
