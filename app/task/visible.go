package task

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readable gives what a step's program gets to read beyond the system's own
// folders: what the algorithm lists, this program, and where the step's program
// lies if that is elsewhere.
func readable(program, work string, listed []string) ([]string, error) {
	for _, path := range listed {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s, which [sandbox] read of the algorithm lists, can't be read: %s", path, systemCause(err))
		}
	}
	read := slices.Clone(listed)
	self, err := os.Executable()
	if _, there := os.Stat(self); err == nil && there == nil {
		read = append(read, self)
	}
	target, err := filepath.EvalSymlinks(program)
	if err != nil {
		return read, nil // the start tells
	}
	for _, path := range []string{program, target} {
		if !visible(path, work, read) {
			read = append(read, programFolder(path))
		}
	}
	return read, nil
}

// visible reports whether a path can be reached inside.
func visible(path, work string, read []string) bool {
	seen := func(folder string) bool { return below(path, folder) }
	return seen(work) || slices.ContainsFunc(systemFolders, seen) || slices.ContainsFunc(read, seen)
}

func below(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// programFolder gives what belongs to a program: its environment, where it is
// one of conda or Python, else its folder, else, where that is as wide as /opt
// or somebody's home, the file alone.
func programFolder(program string) string {
	folder := filepath.Dir(program)
	prefix := filepath.Dir(folder)
	switch {
	case filepath.Base(folder) == "bin" && isEnvironment(prefix):
		return prefix
	case strings.Count(folder, "/") < 2 || prefix == "/home":
		return program
	}
	return folder
}

func isEnvironment(prefix string) bool {
	for _, mark := range []string{"conda-meta", "pyvenv.cfg"} {
		if _, err := os.Stat(filepath.Join(prefix, mark)); err == nil {
			return true
		}
	}
	return false
}
