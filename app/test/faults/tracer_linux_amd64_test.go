package faults

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"
)

// callNumbers has the system calls that the tracer can make fail or record.
var callNumbers = map[string]uint32{
	"write": syscall.SYS_WRITE, "pwrite64": syscall.SYS_PWRITE64,
	"fsync": syscall.SYS_FSYNC, "fdatasync": syscall.SYS_FDATASYNC, "syncfs": 306,
	"ftruncate": syscall.SYS_FTRUNCATE, "fallocate": syscall.SYS_FALLOCATE,
	"openat": syscall.SYS_OPENAT, "mkdirat": syscall.SYS_MKDIRAT, "unlinkat": syscall.SYS_UNLINKAT,
	"renameat": syscall.SYS_RENAMEAT, "renameat2": 316, "linkat": syscall.SYS_LINKAT,
	"mkdir": syscall.SYS_MKDIR, "unlink": syscall.SYS_UNLINK, "rmdir": syscall.SYS_RMDIR,
	"rename": syscall.SYS_RENAME, "link": syscall.SYS_LINK,
	"writev": syscall.SYS_WRITEV, "pwritev": syscall.SYS_PWRITEV, "copy_file_range": 326, "sendfile": syscall.SYS_SENDFILE,
	"fchmod": syscall.SYS_FCHMOD, "fchmodat": syscall.SYS_FCHMODAT, "fchmodat2": 452,
	"symlink": syscall.SYS_SYMLINK, "symlinkat": syscall.SYS_SYMLINKAT,
}

// Constants of ptrace(2), prctl(2) and seccomp(2) that are missing from package syscall.
const (
	ptraceSeize        = 0x4206
	ptraceListen       = 0x4208
	ptraceTraceSeccomp = 0x80
	eventSeccomp       = 7
	eventStop          = 128

	prSetNoNewPrivs = 38
	prSetPtracer    = 0x59616d61
	prSetSeccomp    = 22
	filterMode      = 2
	filterAllow     = 0x7fff0000
	filterTrace     = 0x7ff00000
)

// canInject returns an error on platforms where injections do not work.
func canInject() error { return nil }

// allowTracer lets any process trace this one, even if Yama restricts tracing.
func allowTracer() {
	syscall.RawSyscall(syscall.SYS_PRCTL, prSetPtracer, ^uintptr(0), 0) // fails without Yama, which is fine
}

// stopAt makes this thread and its descendants stop for the tracer at the given system
// calls. All other calls run at full speed.
func stopAt(calls []string) error {
	filter := []syscall.SockFilter{{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS}} // loads the number of the call
	for i, name := range calls {
		number, ok := callNumbers[name]
		if !ok {
			return fmt.Errorf("unknown call %s", name)
		}
		filter = append(filter, syscall.SockFilter{
			Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, K: number, Jt: uint8(len(calls) - i),
		})
	}
	filter = append(filter,
		syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K, K: filterAllow},
		syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K, K: filterTrace})
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("set no_new_privs: %w", errno)
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetSeccomp, filterMode, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}

// tracer traces a program and its descendants.
type tracer struct {
	injection
	files   *regexp.Regexp
	trace   *os.File
	matches int
}

// traceThread traces the thread until it and all its descendants have exited.
func traceThread(thread int, in injection, ready *os.File) error {
	runtime.LockOSThread() // ptrace requests must come from the tracing thread
	files, err := regexp.Compile(in.Files)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(in.Trace, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	const options = syscall.PTRACE_O_TRACECLONE | syscall.PTRACE_O_TRACEFORK | syscall.PTRACE_O_TRACEVFORK |
		syscall.PTRACE_O_TRACEEXEC | ptraceTraceSeccomp
	if err := ptrace(ptraceSeize, thread, options); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	if _, err := ready.Write([]byte{1}); err != nil {
		return err
	}
	if err := ready.Close(); err != nil {
		return err
	}
	t := &tracer{injection: in, files: files, trace: out}
	for {
		var status syscall.WaitStatus
		thread, err := syscall.Wait4(-1, &status, syscall.WALL, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ECHILD):
			return nil
		case err != nil:
			return err
		case status.Stopped():
			t.resume(thread, status)
		}
	}
}

// resume resumes a stopped thread. Errors are ignored, because all requests fail if the
// thread has been killed.
func (t *tracer) resume(thread int, status syscall.WaitStatus) {
	signal := status.StopSignal()
	switch event := int(status) >> 16; {
	case event == eventSeccomp:
		if t.judge(thread) {
			_ = syscall.PtraceCont(thread, 0)
		}
	case event == eventStop && slices.Contains([]syscall.Signal{syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}, signal):
		_ = ptrace(ptraceListen, thread, 0) // an ordinary group stop
	case event != 0:
		_ = syscall.PtraceCont(thread, 0)
	default:
		_ = syscall.PtraceCont(thread, int(signal))
	}
}

// judge injects the fault if the thread's call is the one that should fail. It reports
// whether the thread may continue.
func (t *tracer) judge(thread int) bool {
	var regs syscall.PtraceRegs
	if syscall.PtraceGetRegs(thread, &regs) != nil {
		return true // the thread was killed
	}
	name := callName(uint32(regs.Orig_rax))
	path := t.describe(thread, name, [6]uint64{regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8, regs.R9})
	if path == "" || !t.files.MatchString(path) || !t.armed() {
		return true
	}
	if t.Watch {
		t.record(thread, name, path, &regs)
		return true
	}
	if t.matches++; t.matches < t.When || t.matches > t.When && !t.Lasts {
		return true
	}
	switch {
	case t.Hang:
		fmt.Fprintf(t.trace, "%s %s: hangs\n", name, path)
		return false
	case t.Error == 0:
		fmt.Fprintf(t.trace, "%s %s: killed\n", name, path)
		_ = syscall.Kill(thread, syscall.SIGKILL)
	default:
		fmt.Fprintf(t.trace, "%s %s: %v\n", name, path, t.Error)
		regs.Orig_rax, regs.Rax = ^uint64(0), uint64(-int64(t.Error)) // skip the call and return the error
		_ = syscall.PtraceSetRegs(thread, &regs)
	}
	return true
}

// record writes a call to the trace: its name, the path, and the old path of a
// rename or link.
func (t *tracer) record(thread int, name, path string, regs *syscall.PtraceRegs) {
	from := ""
	switch name {
	case "renameat", "renameat2", "linkat":
		from = pathAt(thread, regs.Rdi, regs.Rsi)
	case "rename", "link":
		from = pathAt(thread, fromHere, regs.Rdi)
	}
	fmt.Fprintf(t.trace, "%s\t%s\t%s\n", name, path, strings.TrimPrefix(from, t.Dir+"/"))
}

func (t *tracer) armed() bool {
	if t.Armed == "" {
		return true
	}
	_, err := os.Stat(t.Armed)
	return err == nil
}

func callName(number uint32) string {
	for name, n := range callNumbers {
		if n == number {
			return name
		}
	}
	return ""
}

func ptrace(request, thread int, data uintptr) error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PTRACE, uintptr(request), uintptr(thread), 0, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
