package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"molrun/app/test/must"
)

// injection makes one system call of a program or its descendants fail: the n-th of the
// given calls that affects a matching file. strace can also inject faults, but it counts
// the calls of each thread separately and matches only full paths.
//
// If the test binary is run with -inject, it starts a second copy of itself as the tracer
// (tracer_linux_amd64_test.go) and then executes the program.
type injection struct {
	Calls []string // names of system calls
	Files string   // regular expression for the path relative to Dir
	Dir   string
	When  int           // number of the call that fails, from 1
	Error syscall.Errno // error to return; 0 kills the process before the call
	Lasts bool          // all later calls also fail
	Hang  bool          // the call never returns
	Watch bool          // no call fails; Trace records all of them
	Armed string        // calls are counted only while this file exists; "" means always
	Trace string        // file that records the injected faults, or with Watch all calls
}

var (
	inject = flag.String("inject", "", "internal: run the command in the arguments under this injection")
	trace  = flag.Int("trace", 0, "internal: trace this thread")
)

// needInjection skips the test if injections do not work on this platform.
func needInjection(t *testing.T) {
	t.Helper()
	if err := canInject(); err != nil {
		must.Skip(t, "%v", err)
	}
}

// injected runs this process as a tracer, or as a program to be traced, if it was started
// as one. It reports whether it was.
func injected() (yes bool, err error) {
	if *inject == "" {
		return false, nil
	}
	var in injection
	if err := json.Unmarshal([]byte(*inject), &in); err != nil {
		return true, err
	}
	if *trace != 0 {
		return true, traceThread(*trace, in, os.NewFile(3, "ready"))
	}
	return true, becomeTraced(flag.Args(), in)
}

// prefix returns the command line that runs a program under the injection.
func (in injection) prefix(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	must.OK(t, err)
	text, err := json.Marshal(in)
	must.OK(t, err)
	return []string{self, "-inject=" + string(text), "--"}
}

// made reports whether the call that should fail was made.
func (in injection) made() bool {
	info, err := os.Stat(in.Trace)
	return err == nil && info.Size() > 0
}

// becomeTraced starts a tracer for this thread and executes the program.
func becomeTraced(argv []string, in injection) error {
	runtime.LockOSThread() // the filter applies to this thread, the only one that survives exec
	allowTracer()
	ready, begun, err := os.Pipe()
	if err != nil {
		return err
	}
	tracer := exec.Command("/proc/self/exe", "-inject="+*inject, fmt.Sprintf("-trace=%d", syscall.Gettid()))
	tracer.ExtraFiles = []*os.File{begun}
	tracer.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := errors.Join(tracer.Start(), begun.Close()); err != nil {
		return err
	}
	_, err = ready.Read(make([]byte, 1)) // EOF means that the tracer has exited
	if err != nil {
		return fmt.Errorf("start the tracer: %w", err)
	}
	if err := stopAt(in.Calls); err != nil {
		return err
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

// describe returns the path, relative to Dir, that a call of the thread affects. The path
// is "." for Dir itself, and "" for a call that the injection ignores.
func (in injection) describe(thread int, name string, args [6]uint64) string {
	path := ""
	switch name {
	case "openat":
		if args[2]&syscall.O_CREAT == 0 {
			return ""
		}
		path = pathAt(thread, args[0], args[1])
	case "mkdirat", "unlinkat", "fchmodat", "fchmodat2":
		path = pathAt(thread, args[0], args[1])
	case "mkdir", "unlink", "rmdir":
		path = pathAt(thread, fromHere, args[0])
	case "renameat", "renameat2", "linkat":
		path = pathAt(thread, args[2], args[3]) // the new path
	case "rename", "link", "symlink":
		path = pathAt(thread, fromHere, args[1])
	case "symlinkat":
		path = pathAt(thread, args[1], args[2])
	case "copy_file_range":
		path = pathOf(thread, args[2])
	default:
		path = pathOf(thread, args[0])
	}
	if inside, ok := strings.CutPrefix(path, in.Dir+"/"); ok {
		return inside
	}
	if path == in.Dir {
		return "."
	}
	return ""
}

// pathOf returns the path of a file descriptor of the thread.
func pathOf(thread int, fd uint64) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", thread, int32(fd))) // "" if the descriptor is not open
	return path
}

// fromHere is the descriptor that stands for the current directory, AT_FDCWD (-100).
const fromHere = ^uint64(99)

// pathAt returns the path given by a string in the thread's memory, relative to a
// directory descriptor.
func pathAt(thread int, fd, address uint64) string {
	name := textAt(thread, address)
	if own, ok := strings.CutPrefix(name, "/proc/self/fd/"); ok { // the form in which package os refers to an open file
		if fd, err := strconv.ParseUint(own, 10, 32); err == nil {
			return pathOf(thread, fd)
		}
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	from := pathOf(thread, fd)
	if int32(fd) == -100 {
		from, _ = os.Readlink(fmt.Sprintf("/proc/%d/cwd", thread))
	}
	return filepath.Join(from, name)
}

// textAt reads a NUL-terminated string from the thread's memory.
func textAt(thread int, address uint64) string {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", thread))
	if err != nil {
		return ""
	}
	defer memory.Close()
	text := make([]byte, 4096)
	n, _ := memory.ReadAt(text, int64(address)) // at the end of a mapping, it reads fewer bytes
	text, _, _ = bytes.Cut(text[:n], []byte{0})
	return string(text)
}
