package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"molrun/app/task/process"
)

// readable returns what a step's program may read beyond the system's own folders:
// what the algorithm lists, this program, and the folder of the step's program.
func readable(program, work string, listed []string) ([]string, error) {
	for _, path := range listed {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s, which [sandbox] read of the algorithm lists, can't be read: %s", path, process.SystemCause(err))
		}
	}
	read := slices.Clone(listed)
	if program == process.Self {
		return read, nil // the first process inside has it open
	}
	if self, err := os.Executable(); err == nil && exists(self) {
		read = append(read, self)
	}
	target, err := filepath.EvalSymlinks(program)
	if err != nil {
		return read, nil // starting the program gives the better error
	}
	for _, path := range []string{program, target} {
		if !isReadable(path, work, read) {
			read = append(read, programFolder(path))
		}
	}
	return read, nil
}

func isReadable(path, work string, read []string) bool {
	covers := func(folder string) bool { return isBelow(path, folder) }
	return covers(work) || slices.ContainsFunc(systemFolders, covers) || slices.ContainsFunc(read, covers)
}

func isBelow(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// programFolder returns what belongs to a program: the whole environment if it is
// in one of conda or Python, else its folder, or the file alone if that folder is
// as wide as /opt or somebody's home.
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
	return exists(filepath.Join(prefix, "conda-meta")) || exists(filepath.Join(prefix, "pyvenv.cfg"))
}
