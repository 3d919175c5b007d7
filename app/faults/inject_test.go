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
	"strings"
	"syscall"
	"testing"
)

// injection makes one system call of a program and of all that it starts fail:
// the n-th of some kinds that concerns some files. strace can inject faults,
// too, but counts each thread's calls apart and knows files by full names alone.
//
// The program is started by this test binary under another flag, which begins a
// second one as its tracer (tracer_linux_amd64_test.go) and then becomes the
// program.
type injection struct {
	Calls []string // names of system calls
	Files string   // expression that finds the path, from Dir on
	Dir   string
	When  int           // 1 is the first
	Error syscall.Errno // what the call says; 0: its process is killed before it
	Lasts bool          // so do all that follow
	Hold  bool          // instead, the call never returns
	Armed string        // file that has to be there for calls to count; "": they count from the start
	Trace string        // file that tells of it
}

var (
	inject = flag.String("inject", "", "of the tests' own processes: an injection; the arguments are the program")
	trace  = flag.Int("trace", 0, "of the tests' own processes: the thread to trace")
)

// injected reports whether this process is one of the tests' own, and does
// what that has to.
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

// prefix gives the command that starts a program under the injection.
func (in injection) prefix(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	text, err := json.Marshal(in)
	must(t, err)
	return []string{self, "-inject=" + string(text), "--"}
}

// made reports whether the call was made.
func (in injection) made() bool {
	info, err := os.Stat(in.Trace)
	return err == nil && info.Size() > 0
}

// becomeTraced starts the tracer of this thread and becomes the program.
func becomeTraced(argv []string, in injection) error {
	runtime.LockOSThread() // the filter is this thread's, and it alone lives on
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
	_, err = ready.Read(make([]byte, 1)) // its end says that the tracer is gone
	if err != nil {
		return fmt.Errorf("the tracer does not begin: %w", err)
	}
	if err := stopAt(in.Calls); err != nil {
		return err
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

// describe says what a call of the thread does: which and to what path, as
// far as that lies in the directory; "" is none of the injection's concern.
func (in injection) describe(thread int, name string, args [6]uint64) string {
	path := ""
	switch name {
	case "openat":
		if args[2]&syscall.O_CREAT == 0 {
			return ""
		}
		path = pathAt(thread, args[0], args[1])
	case "mkdirat", "unlinkat":
		path = pathAt(thread, args[0], args[1])
	case "mkdir", "unlink", "rmdir":
		path = pathAt(thread, fromHere, args[0])
	case "renameat", "renameat2", "linkat":
		path = pathAt(thread, args[2], args[3]) // the new name
	case "rename", "link":
		path = pathAt(thread, fromHere, args[1])
	default:
		path = pathOf(thread, args[0])
	}
	if inside, ok := strings.CutPrefix(path, in.Dir+"/"); ok {
		return inside
	}
	return ""
}

// pathOf gives what a descriptor of the thread is open for.
func pathOf(thread int, fd uint64) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", thread, int32(fd))) // "": there is none
	return path
}

// fromHere stands for the current directory: AT_FDCWD, -100.
const fromHere = ^uint64(99)

// pathAt gives the path of a name that the thread has in its memory, from a
// descriptor on.
func pathAt(thread int, fd, address uint64) string {
	name := textAt(thread, address)
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	from := pathOf(thread, fd)
	if int32(fd) == -100 {
		from, _ = os.Readlink(fmt.Sprintf("/proc/%d/cwd", thread))
	}
	return filepath.Join(from, name)
}

// textAt reads a text that ends with a zero.
func textAt(thread int, address uint64) string {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", thread))
	if err != nil {
		return ""
	}
	defer memory.Close()
	text := make([]byte, 4096)
	n, _ := memory.ReadAt(text, int64(address)) // less where the memory ends
	text, _, _ = bytes.Cut(text[:n], []byte{0})
	return string(text)
}
