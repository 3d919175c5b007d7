package pack

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
	"slices"
	"strings"
	"syscall"

	"molrun/app/base/digest"
	"molrun/app/base/durable"
)

// stagePrefix begins the names of what is not complete yet.
const stagePrefix = ".molrun-unpack-"

// Placed is a part in its place.
type Placed struct {
	Name, Path string
	Already    bool // it was there before, with the same files
}

// Place says where a part goes. folder is where the files of the algorithm lie for now.
// It is asked twice for the algorithm: without a folder, for a path next to its place, and
// when it has arrived.
type Place func(name, folder string) (path string, err error)

// Read unpacks an archive. Nothing appears at its place before all of it has arrived and
// is what the archive's list says; the algorithm itself comes last. What is in a place
// already stays if it has the same files, and is an error otherwise, unless replace.
func Read(ctx context.Context, r io.Reader, typ func(folder string) error, place Place, replace bool) (placed []Placed, err error) {
	u := &unpacking{ctx: ctx, digester: digest.New(), place: place, check: typ, found: map[string]entry{}}
	defer func() { err = errors.Join(err, u.clear()) }()
	m, err := u.extract(r)
	if err != nil {
		return nil, err
	}
	if err := u.compare(m); err != nil {
		return nil, err
	}
	return u.publish(replace)
}

// ReadTree unpacks an archive of any parts into one folder, which must not be there yet.
// Nothing appears before all of it has arrived and is what the archive's list says.
func ReadTree(ctx context.Context, r io.Reader, dir string) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if there, err := exists(dir); err != nil || there {
		return errors.Join(err, fmt.Errorf("%s is there already; name a new folder", dir))
	}
	u := &unpacking{ctx: ctx, digester: digest.New(), found: map[string]entry{}}
	defer func() { err = errors.Join(err, u.clear()) }()
	if u.tree, err = stageFor("", dir); err != nil {
		return err
	}
	u.parts = []*staged{u.tree}
	m, err := u.extract(r)
	if err != nil {
		return err
	}
	if err := u.compareFiles(m); err != nil {
		return err
	}
	_, err = u.publish(false)
	return err
}

// unpacking is the state of Read and ReadTree.
type unpacking struct {
	tree     *staged // to which all files belong; nil: they belong to parts
	ctx      context.Context
	digester *digest.Digester
	place    Place
	check    func(folder string) error // called when the algorithm has arrived
	parts    []*staged
	found    map[string]entry
}

// staged is a part on its way.
type staged struct {
	name, target string
	dir          string   // where it lies for now, next to its target
	lock         *os.File // as long as this process works on it
	folder       bool
}

// content is where the files of the part lie for now.
func (s *staged) content() string { return filepath.Join(s.dir, "content") }

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

// file writes one file.
func (u *unpacking) file(h *tar.Header, content io.Reader) error {
	if err := checkName(h.Name); err != nil {
		return err
	}
	if _, twice := u.found[h.Name]; twice {
		return fmt.Errorf("the archive has %q twice", h.Name)
	}
	s, below, err := u.part(h.Name)
	if err != nil {
		return err
	}
	target := s.content()
	if below != "" {
		target = filepath.Join(target, filepath.FromSlash(below))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
	}
	mode := fs.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	e, err := u.write(target, mode, content)
	e.Name, e.Executable = h.Name, mode&0o111 != 0
	u.found[h.Name] = e
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errNoManifest
	}
	return err
}

// write writes and syncs a file that is not there.
func (u *unpacking) write(target string, mode fs.FileMode, content io.Reader) (e entry, err error) {
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

// part returns the part that a file belongs to, and where in it the file is.
func (u *unpacking) part(name string) (s *staged, below string, err error) {
	if u.tree != nil {
		return u.tree, name, nil
	}
	first, below, _ := strings.Cut(name, "/")
	part := first
	if first == "assets" {
		second, rest, _ := strings.Cut(below, "/")
		part, below = first+"/"+second, rest
	}
	if part != Algorithm && first != "assets" || part == Algorithm && below == "" {
		return nil, "", fmt.Errorf("the archive has %q, which belongs to no part of an algorithm", name)
	}
	if i := slices.IndexFunc(u.parts, func(s *staged) bool { return s.name == part }); i >= 0 {
		return u.parts[i], below, nil
	}
	s, err = u.stage(part)
	if err == nil {
		s.folder = below != ""
		u.parts = append(u.parts, s)
	}
	return s, below, err
}

// stage makes the folder where a part lies until it is complete. What earlier unpackings
// that were killed have left there is removed.
func (u *unpacking) stage(name string) (*staged, error) {
	folder := ""
	if len(u.parts) == 0 {
		if name != Algorithm {
			return nil, errors.New("the archive does not begin with the algorithm")
		}
	} else {
		folder = u.parts[0].content()
		if len(u.parts) == 1 {
			if err := u.check(folder); err != nil {
				return nil, err
			}
		}
	}
	target, err := u.place(name, folder)
	if err != nil {
		return nil, err
	}
	return stageFor(name, target)
}

// stageFor makes the folder for a part whose place is known.
func stageFor(name, target string) (*staged, error) {
	above := filepath.Dir(target)
	if err := os.MkdirAll(above, 0o755); err != nil {
		return nil, err
	}
	if err := sweep(above); err != nil {
		return nil, err
	}
	s := &staged{name: name, target: target, dir: filepath.Join(above, stagePrefix+rand.Text())}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
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

// sweep removes what unpackings have left in a folder that do not run any more.
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

// compare holds what has arrived to the list.
func (u *unpacking) compare(m manifest) error {
	if len(u.parts) == 0 {
		return errors.New("the archive has no algorithm")
	}
	if len(u.parts) == 1 {
		if err := u.check(u.parts[0].content()); err != nil {
			return err
		}
	}
	var err error
	if u.parts[0].target, err = u.place(Algorithm, u.parts[0].content()); err != nil {
		return err
	}
	if err := u.compareFiles(m); err != nil {
		return err
	}
	for _, p := range m.Parts {
		if !slices.ContainsFunc(u.parts, func(s *staged) bool { return s.name == p.Name && s.folder == p.Folder }) {
			return fmt.Errorf("the archive's list has %s, and the archive has not", p.Name)
		}
	}
	return nil
}

// compareFiles holds the files that have arrived to the list.
func (u *unpacking) compareFiles(m manifest) error {
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

// publish moves all parts to their places, the algorithm last.
func (u *unpacking) publish(replace bool) (placed []Placed, err error) {
	same := make([]bool, len(u.parts))
	for i, s := range u.parts { // before anything moves
		there, err := exists(s.target)
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		if same[i], err = equal(u.ctx, s.content(), s.target); err != nil {
			return nil, err
		}
		if !same[i] && !replace {
			return nil, fmt.Errorf("%s is there already, with other content; move it away, or replace it with --force", s.target)
		}
	}
	for i := len(u.parts) - 1; i >= 0; i-- {
		s := u.parts[i]
		if !same[i] {
			if err := s.move(); err != nil {
				return placed, err
			}
		}
		placed = append(placed, Placed{s.name, s.target, same[i]})
	}
	slices.Reverse(placed)
	return placed, nil
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// move puts a part in its place. What was there before is gone then.
func (s *staged) move() error {
	old := filepath.Join(s.dir, "old")
	there, err := exists(s.target)
	if err == nil && there {
		err = os.Rename(s.target, old)
	}
	if err == nil {
		err = syncAll(s.content())
	}
	if err == nil {
		err = os.Rename(s.content(), s.target)
	}
	if err != nil {
		return err
	}
	return durable.SyncFolder(filepath.Dir(s.target))
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

// clear removes what was staged and did not get to its place.
func (u *unpacking) clear() error {
	var errs []error
	for _, s := range u.parts {
		errs = append(errs, os.RemoveAll(s.dir), s.lock.Close())
	}
	return errors.Join(errs...)
}
