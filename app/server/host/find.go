package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
	"molrun/storage/kv/boltfile"
)

// FindData returns an error if a path is not a data directory. The error suggests nearby
// ones, because the path might be mistyped.
func FindData(data string) error {
	what, err := inspectPath(data)
	switch {
	case err != nil:
		return err
	case what == used:
		return nil
	case what == absent:
		return fault.Errorf(fault.NotFound, "there is no data directory %s%s", absolute(data), suggestion(data, makeIt))
	case what == empty:
		return fault.Errorf(fault.NotFound, "%s is empty and not yet a data directory%s", absolute(data), suggestion(data, makeIt))
	}
	return fault.Errorf(fault.NotFound, "%s is not a data directory: %s is missing%s", absolute(data), Database, suggestion(data, makeIt))
}

// makeIt explains how to create a data directory.
const makeIt = "molrun serve --init makes a new one"

// contents classifies what exists at a path.
type contents int

const (
	absent contents = iota
	empty
	foreign // unrelated files
	remains // a data directory without its database
	used    // a data directory
)

// inspectPath classifies what exists at a path.
func inspectPath(data string) (contents, error) {
	dir, err := os.Open(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent, nil
	case err != nil:
		return absent, accessError(data, err)
	}
	defer dir.Close()
	if isData(data) {
		return used, nil
	}
	names, err := dir.Readdirnames(maxEntries)
	if err != nil && len(names) > 0 || errors.Is(err, fs.ErrPermission) {
		return absent, accessError(data, err)
	}
	what := empty
	for _, name := range names {
		switch {
		case name == "lost+found": // in the root of a file system
		case slices.Contains([]string{"jobs", "uploads", "secret"}, name):
			return remains, nil
		default:
			what = foreign
		}
	}
	if info, err := dir.Stat(); err == nil && !info.IsDir() {
		return absent, fault.Errorf(fault.Invalid, "%s is not a directory", absolute(data))
	}
	return what, nil
}

// isData reports whether a directory has or had a database.
func isData(dir string) bool {
	for _, name := range []string{Database, Database + boltfile.MarkerSuffix} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// accessError returns an error that names the directory's owner if that is another user,
// and otherwise wraps err.
func accessError(data string, err error) error {
	if info, stat := os.Stat(data); stat == nil {
		if text := OtherOwner(data, info); text != "" {
			return fault.Errorf(fault.Forbidden, "%s", text)
		}
	}
	return fmt.Errorf("the data directory: %w", err)
}

// maxEntries limits the number of directory entries examined.
const maxEntries = 1000

// suggestion names the data directories that the user might have meant, and says what to
// do otherwise.
func suggestion(data, otherwise string) string {
	found := DataNearby(data)
	if len(found) == 0 {
		return "; " + otherwise
	}
	last := len(found) - 1
	names := strings.Join(found[:last], ", ")
	if last > 0 {
		names += " or "
	}
	return fmt.Sprintf("; did you mean %s%s? Otherwise, %s", names, found[last], otherwise)
}

// DataNearby returns at most three data directories near a path, most likely first: its
// children, its siblings (even if the mistyped part is one of its parents), its parents,
// and directories of the same name in them.
func DataNearby(data string) (found []string) {
	add := func(dirs ...string) {
		for _, dir := range dirs {
			if len(found) < 3 && !slices.Contains(found, dir) && isData(dir) {
				found = append(found, dir)
			}
		}
	}
	data = absolute(data)
	rest := ""
	parent, name := filepath.Dir(data), filepath.Base(data)
	for parent != filepath.Dir(parent) {
		if _, err := os.Stat(parent); err == nil {
			break
		}
		rest = filepath.Join(name, rest)
		parent, name = filepath.Dir(parent), filepath.Base(parent)
	}
	siblings := namesIn(parent)
	for near := plaintext.Nearest(name, siblings); near != ""; near = plaintext.Nearest(name, siblings) {
		add(filepath.Join(parent, near, rest), filepath.Join(parent, near))
		siblings = slices.DeleteFunc(siblings, func(s string) bool { return s == near })
	}
	for _, child := range namesIn(data) {
		add(filepath.Join(data, child))
	}
	for _, sibling := range siblings {
		add(filepath.Join(parent, sibling))
	}
	for dir := parent; ; dir = filepath.Dir(dir) {
		add(dir, filepath.Join(dir, filepath.Base(data)))
		if dir == filepath.Dir(dir) {
			return found
		}
	}
}

// namesIn lists a directory in order, or returns nil if it cannot be read.
func namesIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxEntries)
	slices.Sort(names)
	return names
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
