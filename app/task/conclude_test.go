package task

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

func TestProgramThatEndsWellMayHaveFailed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, script string
		step         protocol.Step
		message      string // "" means that the step succeeds
	}{
		{"made", "echo x > a.pdb; : > b.pdb", protocol.Step{Makes: []string{"a.pdb", "*.pdb"}}, ""},
		{"not made", "true", protocol.Step{Makes: []string{"a.pdb"}}, "exited successfully, but did not create a.pdb"},
		{"empty", ": > out/a.pdb", protocol.Step{Makes: []string{"out/a.pdb"}}, "exited successfully, but a.pdb is empty"},
		{"all empty", ": > a.pdb; : > b.pdb", protocol.Step{Makes: []string{"*.pdb"}}, "exited successfully, but *.pdb is empty"},
		{"a folder", "mkdir a.pdb", protocol.Step{Makes: []string{"a.pdb"}}, "did not create a.pdb"},
		{"a link out", "ln -s /etc/passwd a.pdb", protocol.Step{Makes: []string{"a.pdb"}}, "did not create a.pdb"},
		{"a pipe", "mkfifo a.pdb", protocol.Step{Makes: []string{"a.pdb"}}, "did not create a.pdb"},
		{"printed", "echo 0 molecules converted >&2", protocol.Step{FailsIf: []string{"1 molecule", "0 molecules"}}, `printed "0 molecules"`},
		{"printed to a file", "echo 0 molecules converted", protocol.Step{Stdout: "out/log", FailsIf: []string{"0 molecules"}}, `printed "0 molecules"`},
		{"not printed", "echo 10 molecules converted", protocol.Step{FailsIf: []string{"0 molecules", "10 mol"}}, ""},
		{"at the end of much", "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo no atoms", protocol.Step{FailsIf: []string{"no atoms"}}, `printed "no atoms"`},
		{"a status that is fine", "exit 1", protocol.Step{OK: []int{1}}, ""},
		{"a status that is fine and nothing made", "exit 1", protocol.Step{OK: []int{1}, Makes: []string{"a"}}, "did not create a"},
		{"another status", "exit 2", protocol.Step{OK: []int{1}}, "exit code 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			withAndWithoutSandbox(t, tt.script, func(t *testing.T, a *attempt) {
				step := tt.step // a copy, because subtests run in parallel
				step.Argv, step.Name = a.spec.Steps[0].Argv, "prepare"
				a.spec.Steps = []protocol.Step{step, {Argv: []string{"sh", "-c", "echo > out/next"}}}
				o := a.start().outcome()
				must.Equal(t, "next step ran", Exists(a.path(WorkDir, OutDir), "next"), tt.message == "")
				if tt.message == "" {
					if o.Cause != protocol.CauseDone {
						t.Errorf("outcome %+v, want done", o)
					}
					return
				}
				if o.Cause == protocol.CauseDone || o.Step != "prepare" || !strings.Contains(o.Message, tt.message) {
					t.Errorf("outcome %+v, want %q of the step", o, tt.message)
				}
			})
		})
	}
}

func TestLastStepIsCheckedToo(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{true, false} {
		a := newAttempt(t, "true", "true")
		a.spec.Steps[1].Makes = []string{"out/poses"}
		want := protocol.CauseNoResult
		if made {
			a.spec.Steps[0].Argv[2] = "echo > out/poses"
			want = protocol.CauseDone
		}
		if o := a.start().outcome(); o.Cause != want {
			t.Errorf("made %v: outcome %+v, want %s", made, o, want)
		}
	}
}

func TestStepThatIsStoppedIsNotChecked(t *testing.T) {
	t.Parallel()
	a := newAttempt(t, "trap 'exit 0' TERM; echo > out/ready; while :; do sleep 0.05; done")
	a.spec.Steps[0].Makes = []string{"out/poses"}
	r := a.start()
	a.untilFile(WorkDir, "out", "ready")
	r.signal(syscall.SIGTERM)
	r.ends(protocol.CauseInterrupted)
}

func TestFilesAreKeptFromTheWorkDirectory(t *testing.T) {
	t.Parallel()
	withAndWithoutSandbox(t, "mkdir -p deep; echo a > deep/a.pka; echo b > deep/b.pka; echo c > out/c.pka; echo d > other", func(t *testing.T, a *attempt) {
		a.spec.Steps[0].Keep = []string{"deep/*.pka", "out/c.pka", "absent.*"}
		a.start().ends(protocol.CauseDone)
		entries, err := os.ReadDir(a.path(WorkDir, OutDir))
		must.OK(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		must.Equal(t, "kept", names, []string{"a.pka", "b.pka", "c.pka"})
	})
}

func TestStepReadsAndRunsWhereItsFileSays(t *testing.T) {
	t.Parallel()
	withAndWithoutSandbox(t, "cat; pwd; echo $GREETING $OMP_NUM_THREADS; nproc", func(t *testing.T, a *attempt) {
		must.OK(t, os.WriteFile(a.path(WorkDir, "in", "answer"), []byte("Protein\n"), 0o600))
		step := &a.spec.Steps[0]
		step.Stdin = a.path(WorkDir, "in", "answer")
		step.Folder = a.path(WorkDir, "out", "run")
		step.Stdout = a.path(WorkDir, "out", "said")
		step.Env = map[string]string{"GREETING": "hello"}
		a.start().ends(protocol.CauseDone)
		want := "Protein\n" + a.path(WorkDir, "out", "run") + "\nhello 1\n1\n"
		must.Equal(t, "the program saw", a.read(WorkDir, "out", "said"), want)
	})
}

func TestStdinStaysBelowTheWorkDirectory(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"ln -s /etc/passwd answer", "mkfifo answer", "mkdir answer", "true"} {
		a := newAttempt(t, script, "cat")
		a.spec.Steps[1].Stdin = "answer"
		if o := a.start().outcome(); o.Cause != protocol.CauseCannotStart || !strings.Contains(o.Message, "answer") {
			t.Errorf("%s: outcome %+v, want an error", script, o)
		}
		if log := a.read(LogFile); strings.Contains(log, "root:") {
			t.Errorf("%s: the log has %q", script, log)
		}
	}
}

func TestLogOfAFailedStepHasWhatItWroteToFiles(t *testing.T) {
	t.Parallel()
	a := newAttempt(t, "echo early", "echo said; echo wrote > run.log; ln -s /etc/passwd link.log; mkfifo pipe.log; exit 1")
	a.spec.Steps[0].Stdout = "out/first.txt"
	a.spec.Steps[1].Stdout = "out/second.txt"
	a.spec.Shown = []string{a.path(WorkDir, "*.log")}
	a.start().outcome()
	want := "\n[molrun: the end of second.txt]\nsaid\n\n[molrun: the end of run.log]\nwrote\n"
	must.Equal(t, "log", a.read(LogFile), want)
}
