package task

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// The targets of a hostile program's attacks; see attack.
const (
	onVictim, onTask, onFirst = "victim", "task", "first"

	ptraceSeize = 0x4206 // PTRACE_SEIZE, which does not stop a process
)

// target lists what a hostile program tries to reach on the machine.
type target struct {
	victim, task int    // PIDs of a process outside the sandbox and of the process that runs the task
	tcp          string // address of a service on the machine
	abstract     string // name of a socket outside that has no file
	segment      int    // key of a shared memory segment
	setuid       string // program that would run as another user
	folder       string // hidden folder with a socket and a secret
}

func (x target) words() []string {
	return []string{"attack", strconv.Itoa(x.victim), strconv.Itoa(x.task), x.tcp, x.abstract, strconv.Itoa(x.segment), x.setuid, x.folder}
}

// attack is a program that prints a word for everything it could do outside its sandbox,
// and then that it has tried everything.
func attack(words []string) {
	number := func(text string) int { n, _ := strconv.Atoi(text); return n }
	x := target{victim: number(words[0]), task: number(words[1]), tcp: words[2], abstract: words[3], segment: number(words[4]), setuid: words[5], folder: words[6]}
	tried := map[string]func() error{
		"signal-" + onVictim: func() error { return syscall.Kill(x.victim, 0) },
		"signal-" + onTask:   func() error { return syscall.Kill(x.task, 0) },
		"trace-" + onVictim:  func() error { return trace(x.victim) },
		"trace-" + onTask:    func() error { return trace(x.task) },
		"read-environment":   func() error { return reads(fmt.Sprintf("/proc/%d/environ", x.victim)) },
		"read-memory-map":    func() error { return reads(fmt.Sprintf("/proc/%d/maps", x.task)) },
		"see-processes":      func() error { return seesOthers() },
		"network":            func() error { return dials("tcp", x.tcp) },
		"abstract-socket":    func() error { return dials("unix", x.abstract) },
		"control-socket":     func() error { return dials("unix", filepath.Join(x.folder, "socket")) },
		"hidden-file":        func() error { return reads(filepath.Join(x.folder, "secret")) },
		"shared-memory": func() error {
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SHMGET, uintptr(x.segment), 0, 0); errno != 0 {
				return errno
			}
			return nil
		},
		"setuid":           func() error { return changesUser(x.setuid) },
		"keyring":          hasKeyring,
		"io-uring":         func() error { return calls(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(new([120]byte)))) },
		"user-namespace":   makesUserNamespace,
		"user-namespace-3": func() error { return forks3(syscall.CLONE_NEWUSER) },
	}
	if os.Getpid() != 1 && os.Getppid() == 1 { // this process was started by the first process of the sandbox
		tried["trace-"+onFirst] = func() error { return trace(1) }
		tried["read-first"] = func() error { return reads("/proc/1/environ") }
	}
	for name, try := range tried {
		if try() == nil {
			fmt.Println("did", name)
		}
	}
	if err := talksToItself(); err != nil {
		fmt.Println("cannot talk to itself:", err)
	}
	fmt.Println("tried everything")
}

// hasKeyring requests the ID of the session keyring (KEYCTL_GET_KEYRING_ID).
func hasKeyring() error { return calls(unix.SYS_KEYCTL, 0, ^uintptr(2)) }

func makesUserNamespace() error {
	c := exec.Command("true")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	return c.Run()
}

func calls(number, first, second uintptr) error {
	if _, _, errno := syscall.RawSyscall(number, first, second, 0); errno != 0 {
		return errno
	}
	return nil
}

// forks3 uses clone3 to create a process that exits immediately.
func forks3(flags uint64) error {
	arguments := [11]uint64{0: flags, 4: uint64(syscall.SIGCHLD)}
	pid, _, errno := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&arguments)), unsafe.Sizeof(arguments), 0)
	if errno != 0 {
		return errno
	}
	for pid == 0 {
		syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
	return nil
}

func trace(pid int) error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PTRACE, ptraceSeize, uintptr(pid), 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func reads(path string) error {
	text, err := os.ReadFile(path)
	if err == nil && len(text) == 0 {
		err = io.EOF
	}
	return err
}

// seesOthers looks for a process that neither started this one nor was started by the
// first one.
func seesOthers() error {
	own := map[string]bool{"1": true, strconv.Itoa(os.Getpid()): true, strconv.Itoa(os.Getppid()): true}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { _, err := strconv.Atoi(e.Name()); return err == nil && !own[e.Name()] }) {
		return nil
	}
	return errors.New("there are no others")
}

func dials(network, address string) error {
	c, err := net.DialTimeout(network, address, 2*time.Second)
	if err == nil {
		c.Close()
	}
	return err
}

// changesUser runs a setuid program that belongs to another user.
func changesUser(program string) error {
	out, err := exec.Command(program, "whoami").Output()
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(out)) == strconv.Itoa(os.Geteuid()) {
		return errors.New("it is the same")
	}
	return nil
}

func talksToItself() error {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	defer l.Close()
	return dials("tcp", l.Addr().String())
}

// targets creates what a hostile program tries to reach.
func targets(t *testing.T) target {
	t.Helper()
	x := target{abstract: fmt.Sprintf("@molrun-test-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-")), folder: t.TempDir()}
	accept := func(network, address string) net.Addr {
		l, err := net.Listen(network, address)
		must.OK(t, err)
		t.Cleanup(func() { l.Close() })
		return l.Addr()
	}
	x.tcp = accept("tcp", "127.0.0.1:0").String()
	accept("unix", x.abstract)
	accept("unix", filepath.Join(x.folder, "socket"))
	must.OK(t, os.WriteFile(filepath.Join(x.folder, "secret"), []byte("secret\n"), 0o666))

	victim := exec.CommandContext(t.Context(), "sleep", "1000")
	victim.Env = []string{"SECRET=hunter2"}
	must.OK(t, victim.Start())
	t.Cleanup(func() { victim.Process.Kill(); victim.Wait() })
	x.victim = victim.Process.Pid

	x.segment = 0x6d6f0000 | os.Getpid()&0xffff
	const create = 0o1666 // IPC_CREAT, accessible to all users
	id, _, errno := syscall.RawSyscall(syscall.SYS_SHMGET, uintptr(x.segment), 4096, create)
	if errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(func() { syscall.RawSyscall(syscall.SYS_SHMCTL, id, 0, 0) }) // IPC_RMID

	x.setuid = filepath.Join(t.TempDir(), "program")
	text, err := os.ReadFile(os.Args[0])
	must.OK(t, err)
	must.OK(t, os.WriteFile(x.setuid, text, 0o755))
	if os.Geteuid() == 0 {
		must.OK(t, os.Chown(x.setuid, 65534, -1))
		must.OK(t, os.Chmod(x.setuid, 0o755|os.ModeSetuid))
	}
	return x
}

// attacked runs the hostile program in an attempt and returns what it achieved.
func attacked(t *testing.T, a *attempt, x target) string {
	t.Helper()
	a.isolation.Hide = []string{x.folder}
	a.isolation.Sandbox.Read = []string{filepath.Dir(os.Args[0]), filepath.Dir(x.setuid)}
	// The PID of the process that runs the task is known only after it has started.
	a.spec.Steps = []protocol.Step{{Argv: []string{"sh", "-c", `while [ ! -e out/words ]; do sleep 0.02; done; exec "$0" $(cat out/words)`, os.Args[0]}}}
	r := a.start()
	x.task = r.cmd.Process.Pid
	words := a.path(WorkDir, OutDir, "words")
	must.OK(t, os.WriteFile(words+"~", []byte(strings.Join(x.words(), " ")), 0o644))
	must.OK(t, os.Rename(words+"~", words))
	r.ends(protocol.CauseDone)
	did, found := strings.CutSuffix(a.read(LogFile), "tried everything\n")
	if !found {
		t.Fatalf("the program did not try everything: %s", did)
	}
	return did
}

// TestHostileProgramReachesNothingOutside runs the same program with and without a
// sandbox: everything that fails inside succeeds outside.
func TestHostileProgramReachesNothingOutside(t *testing.T) {
	inEachSandbox(t, func(t *testing.T, sandboxed makeAttempt) {
		must.Equal(t, "in the sandbox the program", attacked(t, sandboxed(t), targets(t)), "")
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		did := attacked(t, newAttempt(t), targets(t))
		want := []string{
			"signal-" + onVictim, "signal-" + onTask, "trace-" + onVictim, "trace-" + onTask, "read-environment", "read-memory-map", "see-processes",
			"network", "abstract-socket", "control-socket", "hidden-file", "shared-memory",
		}
		if hasKeyring() == nil { // expected only if the machine allows it
			want = append(want, "keyring")
		}
		if makesUserNamespace() == nil {
			want = append(want, "user-namespace", "user-namespace-3")
		}
		if os.Geteuid() == 0 {
			want = append(want, "setuid")
		}
		for _, name := range want {
			must.Contain(t, fmt.Sprintf("without a sandbox the program could not do %s, so that the test shows nothing", name), did, "did "+name+"\n")
		}
	})
}

// TestProgramsAreKilledBeforeTheService checks the score by which the kernel selects
// processes when memory runs out.
func TestProgramsAreKilledBeforeTheService(t *testing.T) {
	inEachSandbox(t, func(t *testing.T, sandboxed makeAttempt) {
		sandboxed(t, "cat /proc/self/oom_score_adj").succeeds("500\n")
	})
}
