package sandbox

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	lookAgain  = time.Second // after which a change of /etc is noticed
	tryAgain   = time.Minute // after a copy could not be made
	mostCopied = 64 << 20    // bytes of a copy
)

// Copies keeps a copy of what programs see of /etc. It is bound into a sandbox as one mount, where the
// entries themselves would be a hundred, and what is replaced outside never appears inside. When what
// programs see has changed, the next sandbox gets a new copy; the old one stays as long as it is used.
type Copies struct {
	dir  string // each copy is a folder below
	from string // /etc, except in tests
	hide []string

	mu    sync.Mutex
	path  string // of the newest; "": there is none
	state string // of /etc when it was made
	look  time.Time
}

// NewCopies keeps copies below dir, which it makes in a folder that exists when it needs it. What hide lists is not copied.
func NewCopies(dir string, hide []string) *Copies { return &Copies{dir: dir, from: etc, hide: hide} }

// Use returns the newest copy and a file: as long as that, or a duplicate of it, is open in any process,
// the copy stays. Without a copy, path is "", and a sandbox shows the entries of /etc themselves.
func (c *Copies) Use() (path string, keep *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); !now.Before(c.look) {
		c.look = now.Add(lookAgain)
		c.refresh()
	}
	if c.path == "" {
		return "", nil
	}
	keep, err := os.Open(c.path)
	if err == nil {
		err = syscall.Flock(int(keep.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	}
	if err != nil { // somebody has removed it
		c.path, c.look = "", time.Time{}
		keep.Close()
		return "", nil
	}
	return c.path, keep
}

// refresh makes a new copy if something has changed, and removes those that nobody uses.
func (c *Copies) refresh() {
	s := settingsOf(nil, c.hide)
	s.state = sha256.New()
	all := s.all(c.from)
	texts := map[string]string{"hosts": hosts(), "resolv.conf": ""}
	texts["passwd"], texts["group"] = accounts()
	for _, name := range []string{"hosts", "passwd", "group"} {
		s.note(texts[name])
	}
	state := string(s.state.Sum(nil))
	if c.path != "" && state == c.state {
		return
	}
	path := filepath.Join(c.dir, rand.Text())
	err := os.Mkdir(c.dir, 0o700) // not the data directory, whose loss must be seen
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = os.Mkdir(path, 0o755)
	}
	if err == nil {
		err = fill(path, c.from, all, texts)
	}
	if err != nil {
		path, c.look = "", time.Now().Add(tryAgain)
	}
	c.path, c.state = path, state
	c.sweep()
}

// sweep removes the copies that nobody uses, but the newest.
func (c *Copies) sweep() {
	entries, _ := os.ReadDir(c.dir) // what can't be listed is not removed
	for _, e := range entries {
		path := filepath.Join(c.dir, e.Name())
		if path == c.path {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(path) // else next time
		}
		f.Close()
	}
}

// fill copies what programs see of a folder to a new one, and writes texts to files there.
func fill(to, from string, all []seen, texts map[string]string) error {
	rest := int64(mostCopied)
	for _, each := range all {
		at := filepath.Join(to, strings.TrimPrefix(each.path, from+"/"))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if each.target != "" {
			if err := os.Symlink(each.target, at); err != nil {
				return err
			}
			continue
		}
		err := filepath.WalkDir(each.path, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return ignoreGone(err)
			}
			n, err := copyEntry(path, at+strings.TrimPrefix(path, each.path), e.Type(), rest)
			rest -= n
			return ignoreGone(err)
		})
		if err != nil {
			return err
		}
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ignoreGone lets what was removed or closed to others meanwhile be left out: the next look notices that.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ELOOP) || errors.Is(err, errNotPublic) {
		return nil
	}
	return err
}

var (
	errNotPublic = errors.New("it is no longer open to everybody")
	errTooMuch   = errors.New("too much to be copied")
)

// copyEntry copies a link, makes a folder, or copies a file of at most so many bytes.
func copyEntry(from, to string, kind fs.FileMode, most int64) (n int64, err error) {
	switch {
	case kind&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return 0, err
		}
		return 0, os.Symlink(target, to)
	case kind.IsDir():
		return 0, os.Mkdir(to, 0o755)
	}
	return copyFile(from, to, most)
}

func copyFile(from, to string, most int64) (n int64, err error) {
	source, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return 0, err
	}
	if !isPublic(info) { // it has changed since it was looked at
		return 0, errNotPublic
	}
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(target, io.LimitReader(source, most+1))
	if err == nil && n > most {
		err = errTooMuch
	}
	if err == nil {
		err = errors.Join(target.Chmod(0o444|info.Mode()&0o111), os.Chtimes(to, time.Time{}, info.ModTime()))
	}
	return n, errors.Join(err, target.Close())
}
