package task

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// stubborn starts a process in its own session and waits until it ignores signals.
const stubborn = `setsid sh -c 'trap "" TERM HUP INT; echo > out/stubborn; while :; do sleep 1000; done' &
while [ ! -e out/stubborn ]; do sleep 0.02; done
`

// orphan starts a process whose parent exits immediately.
const orphan = `sh -c 'sh -c "trap \"\" TERM; echo > out/orphan; while :; do sleep 1000; done" & exit 0'
while [ ! -e out/orphan ]; do sleep 0.02; done
`

func TestLeftoverProcessesAreKilled(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, script string
		cause        protocol.Cause
	}{
		{"background", "sleep 1000 & exit 0", protocol.CauseDone},
		{"own session", stubborn + "exit 0", protocol.CauseDone},
		{"orphan", orphan + "exit 0", protocol.CauseDone},
		{"after a failure", stubborn + orphan + "exit 9", protocol.CauseExit},
		{"stopped", "sleep 1000 & kill -STOP $!; exit 0", protocol.CauseDone},
	}
	started := make([]*running, len(tests)) // all concurrently, because they mostly wait
	for i, tt := range tests {
		a := newAttempt(t, tt.script)
		a.spec.GraceSeconds = 1
		started[i] = a.start()
	}
	for i, tt := range tests {
		if o := started[i].outcome(); o.Cause != tt.cause { // outcome checks for leftover processes
			t.Errorf("%s: outcome %+v, want %s", tt.name, o, tt.cause)
		}
	}
}

func TestLeftoversAreKilledBeforeTheNextStep(t *testing.T) {
	t.Parallel()
	a := newAttempt(t, stubborn+"echo $! > out/pid", `[ ! -e /proc/$(cat out/pid) ]`)
	a.spec.GraceSeconds = 1
	a.start().ends(protocol.CauseDone)
}

func TestLeftoversMayEndGracefully(t *testing.T) {
	const graceful = `setsid sh -c 'trap "echo ended > out/ended; exit" TERM; echo > out/ready; while :; do sleep 0.05; done' &
		while [ ! -e out/ready ]; do sleep 0.02; done
		`
	tests := []struct {
		name, script string
		signal       bool
		cause        protocol.Cause
	}{
		{"after the program", "exit 0", false, protocol.CauseDone},
		{"after an interrupted program", "sleep 1000", true, protocol.CauseInterrupted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			withAndWithoutSandbox(t, graceful+tt.script, func(t *testing.T, a *attempt) {
				r := a.start()
				a.untilFile(WorkDir, "out", "ready")
				if tt.signal {
					r.signal(syscall.SIGTERM)
				}
				r.ends(tt.cause)
				must.Equal(t, "the leftover wrote", a.read(WorkDir, "out", "ended"), "ended\n")
			})
		})
	}
}

// Slurm signals the processes of a job one after the other, the task's own possibly last.
func TestSignalThatReachesTheProgramFirstInterrupts(t *testing.T) {
	t.Parallel()
	const late = "(sleep 0.3; kill -TERM $PPID) & "
	tests := []struct {
		name, script string
		cause        protocol.Cause
	}{
		{"program", late + "kill -TERM $$", protocol.CauseInterrupted},
		{"program of a shell", late + `sh -c 'kill -TERM $$'; exit $?`, protocol.CauseInterrupted},
		{"program alone", "kill -TERM $$", protocol.CauseSignal},
		{"program of a shell alone", "exit 143", protocol.CauseExit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			newAttempt(t, tt.script).start().ends(tt.cause)
		})
	}
}

func TestTimeLimitEndsTheTask(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, script string }{
		{"by TERM", "sleep 1000"},
		{"by KILL", stubborn + orphan + "trap '' TERM; while :; do sleep 1000; done"},
		{"whatever its exit code", "trap 'exit 0' TERM; while :; do sleep 0.05; done"},
	}
	started := make([]*running, len(tests))
	for i, tt := range tests {
		a := newAttempt(t, tt.script, "echo > out/next")
		a.spec.MaxRuntimeSeconds, a.spec.GraceSeconds = 1, 1
		started[i] = a.start()
	}
	for i, tt := range tests {
		r := started[i]
		o := r.outcome()
		if o.Cause != protocol.CauseTimeout || !strings.Contains(o.Message, "limit of 1s") || o.Step != "1" {
			t.Errorf("%s: outcome %+v, want timeout in step 1", tt.name, o)
		}
		if r.has(WorkDir, "out", "next") {
			t.Errorf("%s: the next step ran", tt.name)
		}
	}
}

func TestSignalsEndTheTask(t *testing.T) {
	t.Parallel()
	const script = stubborn + orphan + "trap 'echo asked >> out/asked' TERM; echo > out/ready; while :; do sleep 0.05; done"
	tests := []struct {
		name    string
		stop    bool
		signals []syscall.Signal
		cause   protocol.Cause
	}{
		{"stopped", true, []syscall.Signal{syscall.SIGTERM}, protocol.CauseStopped},
		{"interrupted", false, []syscall.Signal{syscall.SIGTERM}, protocol.CauseInterrupted},
		{"from a terminal", false, []syscall.Signal{syscall.SIGINT}, protocol.CauseInterrupted},
		{"more than once", true, []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGINT, syscall.SIGTERM}, protocol.CauseStopped},
		{"after a hangup", true, []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM}, protocol.CauseStopped},
	}
	started := make([]*running, len(tests))
	for i := range tests {
		a := newAttempt(t, script)
		a.spec.GraceSeconds = 1
		started[i] = a.start()
	}
	for i, tt := range tests {
		r := started[i]
		r.untilFile(WorkDir, "out", "ready")
		if tt.stop {
			if _, err := RequestStop(r.dir); err != nil {
				t.Fatal(err)
			}
		}
		for _, sig := range tt.signals {
			r.signal(sig)
		}
	}
	for i, tt := range tests {
		r := started[i]
		if o := r.outcome(); o.Cause != tt.cause || o.Signal != "SIGKILL" || o.Step != "1" {
			t.Errorf("%s: outcome %+v, want %s by SIGKILL in step 1", tt.name, o, tt.cause)
		}
		must.Equal(t, tt.name+": the program received", r.read(WorkDir, "out", "asked"), "asked\n")
	}
}

func TestTaskStoppedBeforeItStartsRunsNothing(t *testing.T) {
	a := newAttempt(t, "echo > out/ran")
	if _, err := RequestStop(a.dir); err != nil {
		t.Fatal(err)
	}
	a.start().ends(protocol.CauseStopped)
	if a.has(WorkDir, "out", "ran") {
		t.Error("the program ran")
	}
}

func TestProgramDiesWithItsShim(t *testing.T) {
	t.Parallel()
	a := newAttempt(t, "echo > out/ready; exec sleep 1000")
	r := a.start()
	a.untilFile(WorkDir, "out", "ready")
	r.signal(syscall.SIGKILL)
	r.wait()
	must.Become(t, "end of the program", func() bool {
		left, err := process.Marked(a.spec.Token)
		return err == nil && len(left) == 0
	})
	if locked, err := Locked(a.dir); locked || err != nil {
		t.Errorf("locked = %v, %v; want a free lock", locked, err)
	}
	if _, err := ReadOutcome(a.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("outcome: %v, want none", err)
	}
}

func TestMemoryLimitEndsTheTask(t *testing.T) {
	t.Parallel()
	a := newAttempt(t)
	a.spec.MemoryBytes = 100 << 20
	a.spec.Steps = []protocol.Step{{Argv: []string{"sh", "-c", stubborn + `"$0" use 250 hold; echo survived`, os.Args[0]}}}
	o := a.start().outcome()
	if o.Cause != protocol.CauseMemory || o.MaxRSSBytes < 100<<20 || !strings.Contains(o.Message, "100.0 MiB") {
		t.Errorf("outcome %+v, log %q; want memory", o, a.read(LogFile))
	}
}

// Memory that processes share after a fork counts only once.
func TestSharedMemoryCountsOnce(t *testing.T) {
	const processes, each = 6, 24 << 20
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`x=$(head -c %d /dev/zero | tr '\0' a)
		for i in $(seq %d); do ( echo > ready$i; while [ ! -e go ]; do sleep 0.1; done; echo ${#x} ) & done
		echo > ready; wait`, each, processes))
	cmd.Dir = dir
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		must.OK(t, errors.Join(os.WriteFile(dir+"/go", nil, 0o600), cmd.Wait()))
	})
	for i := range processes {
		must.Become(t, "subshell", func() bool {
			_, err := os.Stat(fmt.Sprintf("%s/ready%d", dir, i+1))
			return err == nil
		})
	}
	m := &memory{limit: 4 * each}
	if naive := process.RSS(process.Descendants()); naive <= m.limit {
		t.Fatalf("the processes have %d bytes in sum: they share no memory that could count twice", naive)
	}
	if m.checkLimit(process.Descendants()) || m.peak < each {
		t.Errorf("peak %d passes the limit %d", m.peak, m.limit)
	}
}
