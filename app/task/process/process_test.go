package process

import (
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

// init lets the test binary act as a program whose first thread has exited while another
// one is running. In init, the current thread is the first.
func init() {
	if len(os.Args) == 2 && os.Args[1] == "leaderless" {
		runtime.LockOSThread()
		go time.Sleep(time.Hour)
		syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
}

// sleeper starts a process marked with the token.
func sleeper(t *testing.T, token string) (*exec.Cmd, ID) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), TokenVariable + "=" + token}
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	p, err := IDOf(cmd.Process.Pid)
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
	if _, err := IDOf(p.PID); !errors.Is(err, ErrGone) {
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
	must.OK(t, KillMarked(t.Context(), "mark-1"))
	must.Fail(t, "the marked process ended", <-done, "killed")
	if marked, err := Marked("mark-12"); err != nil || !slices.Equal(marked, []int{other.Process.Pid}) {
		t.Errorf("the other process is %v, %v; want it running", marked, err)
	}
	if err := KillMarked(t.Context(), ""); err == nil {
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
	must.Become(t, "the start of the grandchild", func() bool {
		_, err := os.Stat(dir + "/ready")
		return err == nil
	})
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
	must.Become(t, "the end of the first thread", func() bool {
		return strings.Contains(must.Read(t, fmt.Sprintf("/proc/%d/stat", pid)), ") Z ")
	})
	found := Descendants()
	if len(found) != 1 || found[0].PID != pid {
		t.Fatalf("descendants %v, want %d", found, pid)
	}
	if id, err := IDOf(pid); err != nil || !id.running() {
		t.Errorf("process %+v does not run, %v", id, err)
	}
	must.OK(t, found[0].Signal(syscall.SIGKILL))
	must.Fail(t, "it ended", cmd.Wait(), "killed")
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
		if got, err := parseStat([]byte(tt.line)); got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %q is %+v, %v; want %+v", tt.name, tt.line, got, err, tt.want)
		}
	}
}

// TestLimitsThatTheKernelForgotAreSetAgain uses plain files with the text that the kernel
// shows after a controller was off. A limit that was set by another program is kept.
func TestLimitsThatTheKernelForgotAreSetAgain(t *testing.T) {
	parent := t.TempDir()
	dir := cgroupOf(parent, "limits").dir
	must.OK(t, os.Mkdir(dir, 0o700))
	g, err := MakeCgroup(parent, "limits", CgroupLimits{MemoryBytes: 1 << 30, Processes: 100})
	must.OK(t, err)
	must.OK(t, g.KeepLimits()) // without the controller there are no files
	for name, text := range map[string]string{"memory.max": "max\n", "memory.swap.max": "max\n", "memory.oom.group": "0\n", "pids.max": "4096\n"} {
		must.Write(t, filepath.Join(dir, name), text)
	}
	must.OK(t, g.KeepLimits())
	for name, want := range map[string]string{"memory.max": "1073741824", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "4096"} {
		if got := must.Read(t, filepath.Join(dir, name)); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %s", name, got, want)
		}
	}
}

func TestOnlyTheVeryProcessRuns(t *testing.T) {
	self, err := IDOf(os.Getpid())
	must.OK(t, err)
	later, otherBoot, gone := self, self, self
	later.StartTime++
	otherBoot.BootID = "other"
	gone.PID = 1 << 30
	for name, tt := range map[string]struct {
		id   ID
		want bool
	}{
		"itself": {self, true}, "one that has its PID now": {later, false}, "of another boot": {otherBoot, false}, "gone": {gone, false},
	} {
		must.Equal(t, name, tt.id.running(), tt.want)
	}
}

func TestUsageOfChildrenIsCounted(t *testing.T) {
	before := ChildrenSeconds()
	script := `i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done`
	must.OK(t, exec.Command("sh", "-c", script).Run())
	if after := ChildrenSeconds(); after <= before {
		t.Errorf("%g s after a child that computed, %g s before", after, before)
	}
}
