package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Self is the file of this program. Unlike the path that the program was started by, it
// stays the same when another version is installed there or the file is deleted.
const Self = "/proc/self/exe"

// LookUp finds a program as execvp would with this environment, but never in the current
// directory, which holds user files.
func LookUp(argv, env []string, dir string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", errors.New("the step has no program; correct the algorithm's command")
	}
	name := argv[0]
	if strings.Contains(name, "/") {
		if filepath.IsAbs(name) {
			return name, nil
		}
		return filepath.Join(dir, name), nil
	}
	for _, folder := range filepath.SplitList(Variable(env, "PATH")) {
		path := filepath.Join(folder, name)
		info, err := os.Stat(path)
		if filepath.IsAbs(folder) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("the program %q was not found; install it or add its folder to PATH", name)
}

// Variable returns the value of a variable, or "" if it is not set.
func Variable(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// StartError turns the kernel's error for a program that did not start into a message for
// users.
func StartError(program string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("the program %q or its interpreter was not found; install it", program)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("no permission to execute the program %q; check its permissions", program)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("the program %q is for another kind of machine, or is a script without #! in its first line", program)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("the arguments of %q are too long; pass them in a file", program)
	}
	return fmt.Errorf("the program %q could not be started: %w", program, err)
}

// SystemCause returns the operating system's error without the path, which users should
// not see.
func SystemCause(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}
