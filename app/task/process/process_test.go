package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app/test/must"
)

// init lets the test binary act as a program whose first thread has ended while
// another one is running. In init, the current thread is the first.
func init() {
	if len(os.Args) == 2 && os.Args[1] == "leaderless" {
		runtime.LockOSThread()
		go time.Sleep(time.Hour)
		syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
}

// sleeper starts a process that is marked with the token.
func sleeper(t *testing.T, token string) (*exec.Cmd, ID) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), TokenVariable + "=" + token}
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	p, err := Find(cmd.Process.Pid)
	must.OK(t, err)
	return cmd, p
}

func TestSignalReachesNoOtherProcess(t *testing.T) {
	cmd, p := sleeper(t, "signal")
	otherBoot, otherStart, group := p, p, p
	otherBoot.BootID = "another"
	otherStart.StartTime++
	group.PID = -p.PID
	for _, other := range []ID{otherBoot, otherStart, group, {BootID: p.BootID}} {
		if err := other.Signal(syscall.SIGKILL); !errors.Is(err, ErrGone) {
			t.Errorf("signal to %+v: %v, want %v", other, err, ErrGone)
		}
	}
	must.OK(t, p.Signal(syscall.SIGUSR1))
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGUSR1 {
		t.Errorf("process ended with %v, want SIGUSR1 alone", err)
	}
	if err := p.Signal(syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signal to an ended process: %v, want %v", err, ErrGone)
	}
	if _, err := Find(p.PID); !errors.Is(err, ErrGone) {
		t.Errorf("find an ended process: %v, want %v", err, ErrGone)
	}
}

func TestKillMarkedKillsNoOthers(t *testing.T) {
	one, _ := sleeper(t, "mark-1")
	other, _ := sleeper(t, "mark-12")
	marked, err := Marked("mark-1")
	if err != nil || !slices.Equal(marked, []int{one.Process.Pid}) {
		t.Errorf("marked %v, %v; want %d", marked, err, one.Process.Pid)
	}
	done := make(chan error, 1)
	go func() { done <- one.Wait() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	must.OK(t, KillMarked(ctx, "mark-1"))
	if err := <-done; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the marked process ended with %v", err)
	}
	if marked, err := Marked("mark-12"); err != nil || !slices.Equal(marked, []int{other.Process.Pid}) {
		t.Errorf("the other process is %v, %v; want it running", marked, err)
	}
	if err := KillMarked(ctx, ""); err == nil {
		t.Error("an empty token is accepted")
	}
}

func TestDescendantsAreFoundBothWays(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", `setsid sh -c 'sleep 1000 & echo > ready; wait' & wait`)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		for _, p := range Descendants() {
			p.Signal(syscall.SIGKILL)
		}
		cmd.Wait()
	})
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(dir + "/ready"); err == nil {
			break
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatal("the grandchild does not start within 30 s")
		}
	}
	listed := descendantsBy(os.Getpid(), childrenListed)
	searched := descendantsBy(os.Getpid(), childrenSearched())
	if len(listed) != 3 {
		t.Errorf("listed %v, want three processes", listed)
	}
	if !slices.Equal(listed, searched) {
		t.Errorf("listed %v, searched %v; want the same", listed, searched)
	}
}

func TestProcessLivesUntilItsLastThreadHasEnded(t *testing.T) {
	cmd := exec.Command(os.Args[0], "leaderless")
	must.OK(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	pid := cmd.Process.Pid
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		must.OK(t, err)
		if strings.Contains(string(status), ") Z ") {
			break
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("the first thread does not end within 30 s: %s", status)
		}
	}
	found := Descendants()
	if len(found) != 1 || found[0].PID != pid {
		t.Fatalf("descendants %v, want %d", found, pid)
	}
	if id, err := Find(pid); err != nil || !id.running() {
		t.Errorf("process %+v does not run, %v", id, err)
	}
	must.OK(t, found[0].Signal(syscall.SIGKILL))
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ended with %v, want killed", err)
	}
}

func TestParseStat(t *testing.T) {
	const rest = " 42 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 200"
	tests := []struct {
		name, line string
		want       stat
		fails      bool
	}{
		{"plain", "7 (sleep) S" + rest, stat{parent: 42, start: 987654}, false},
		{"a name like a status", "7 (a) Z 1 (x) R) S" + rest, stat{parent: 42, start: 987654}, false},
		{"zombie", "7 (sh) Z" + rest, stat{parent: 42, start: 987654, zombie: true}, false},
		{"zombie with a living thread", "7 (sh) Z" + strings.Replace(rest, "20 0 1 0", "20 0 2 0", 1), stat{parent: 42, start: 987654}, false},
		{"short", "7 (sh) S 42 7", stat{}, true},
		{"empty", "", stat{}, true},
		{"no number", "7 (sh) S" + strings.Replace(rest, "987654", "x", 1), stat{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseStat([]byte(tt.line))
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("%q is %+v, %v; want %+v", tt.line, got, err, tt.want)
			}
		})
	}
}

// TestLimitsThatTheKernelForgotAreSetAgain uses plain files: their text is what the kernel
// shows after a controller was off. A limit that somebody else has set stays.
func TestLimitsThatTheKernelForgotAreSetAgain(t *testing.T) {
	parent := t.TempDir()
	dir := cgroupOf(parent, "limits").dir
	must.OK(t, os.Mkdir(dir, 0o700))
	g, err := MakeCgroup(parent, "limits", CgroupLimits{MemoryBytes: 1 << 30, Processes: 100})
	must.OK(t, err)
	must.OK(t, g.KeepLimits()) // no controller, no files
	want := map[string]string{"memory.max": "1073741824", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "4096"}
	for name, text := range map[string]string{"memory.max": "max\n", "memory.swap.max": "max\n", "memory.oom.group": "0\n", "pids.max": "4096\n"} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	must.OK(t, g.KeepLimits())
	for name, value := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.HasPrefix(string(got), value) {
			t.Errorf("%s is %q, %v; want %s", name, got, err, value)
		}
	}
}
