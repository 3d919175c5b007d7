package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app/cli/trial"
	"molrun/app/test/must"
)

// triedFile is a template of an algorithm file with an example. The program runs a
// script.
const triedFile = `format = 1
type = "%s"
version = "1"
title = "Tried"
command = ["sh", "-c", "cd out; {settings.script}"]

[[parameters]]
name = "script"
type = "string"
required = true

[metrics]
energy = { file = "energy.txt", pattern = '(\S+)' }
never = { file = "energy.txt", pattern = 'x=(.)' }

[[outputs]]
name = "energy"
title = "The energy"
file = "energy.txt"
%s

[[outputs]]
name = "rows"
file = "*.csv"

[[outputs]]
name = "fold"
kind = "structure"
file = "*.pdb"

[[views]]
name = "rows"
kind = "table"
file = "*.csv"

[[views]]
name = "fold"
output = "fold"

[example]
settings = { script = "%s" }

[example.expect]
files = ["energy.txt"]
metrics = { energy = [-2, -1] }
`

// tried writes an algorithm file and returns its path.
func tried(t *testing.T, dir, typ, outputs, script string) string {
	t.Helper()
	file := filepath.Join(dir, typ+".toml")
	must.OK(t, os.WriteFile(file, fmt.Appendf(nil, triedFile, typ, outputs, script), 0o600))
	return file
}

func TestExamplesAreRunAndChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.toml")
	must.OK(t, os.WriteFile(config, []byte("listen = \"192.0.2.1:1\"\n[database]\nfile_system = \"any\"\n[user_quota]\nstorage = \"1KiB\"\n"), 0o600))
	good := tried(t, dir, "good", "required = true", `echo -1.5 > energy.txt; printf 'a,b\n1,2\n' > t.csv; echo 'ATOM  1' > x.pdb`)
	wrong := tried(t, dir, "wrong", "", `echo 3 > energy.txt; printf 'a,b\n' > t.csv; echo nothing > x.pdb`)
	without := tried(t, dir, "without", "", `true`)
	lacking := tried(t, dir, "lacking", "required = true", `echo -1.5 > other.txt`)
	failing := tried(t, dir, "failing", "", `echo the end is near >&2; exit 3`)
	slow := tried(t, dir, "slow", "", `sleep 1000`)
	far := filepath.Join(dir, "far.toml")
	must.OK(t, os.WriteFile(far, []byte(missingProgram), 0o600))
	run := func(code int, args ...string) string {
		t.Helper()
		out, errs, got := outside(t, append([]string{"algorithms", "test", "--config", config}, args...)...)
		if got != code {
			t.Errorf("%q: exit code %d, want %d: %s%s", args, got, code, out, errs)
		}
		return out + errs
	}
	says := func(out string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			must.Contain(t, "the text", out, want)
		}
	}
	says(run(0, good), "COMPLETED  energy -1.5 [-2, -1], not found: never, 2 of 2 views\n1 passed, 0 failed, 0 not ready\n")
	says(run(1, good, wrong, without, lacking, failing, far),
		"the metric energy 3 [-2, -1] is outside its stated range",
		"not found: never, 0 of 2 views, nothing in rows fold\n",
		"the view fold can't show x.pdb: it has no atoms",
		"the result has no energy.txt", "the metric energy absent [-2, -1]",
		"The program finished, but did not create The energy (energy.txt).",
		"    | the end is near\n", "not ready  the program no-such-program",
		"1 passed, 4 failed, 1 not ready\n")
	says(run(exitFailed, good, far), "1 passed, 0 failed, 1 not ready")
	says(run(exitUntested, far), "0 passed, 0 failed, 1 not ready")
	says(run(exitFailed, "--limit", "2s", slow), "FAILED", "it did not finish in time")
	says(run(exitMissing, "nowhere"), "there is no algorithm or file named")
	says(run(exitUsage), "requires types, files or folders, or --all")
	says(run(exitUsage, "--all", good), "requires types, files or folders, or --all")
	must.OK(t, os.WriteFile(far, []byte("format = 1\n"), 0o600))
	says(run(exitInvalid, far), "far.toml:1: ", " errors")

	var outcomes []trial.Outcome
	kept := filepath.Join(dir, "kept")
	out := run(1, "--json", "--data", kept, good, wrong)
	if err := json.Unmarshal([]byte(out), &outcomes); err != nil || len(outcomes) != 2 || !outcomes[0].Passed() || outcomes[1].Passed() {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(kept, "jobs.db")); err != nil {
		t.Error(err)
	}
}

// An interrupted test run cancels its job and leaves no files.
func TestInterruptedTestOfAnExampleLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, temp := t.TempDir(), t.TempDir()
	begun := filepath.Join(dir, "begun")
	file := tried(t, dir, "slow", "", "echo > "+begun+"; exec sleep 1000")
	c := exec.Command(molrun, "algorithms", "test", file)
	c.Dir = dir
	c.Env = append(os.Environ(), "TMPDIR="+temp, "MOLRUN_RUNNER_SANDBOX=off", "MOLRUN_DATABASE_FILE_SYSTEM=any")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	must.OK(t, c.Start())
	s := &instance{t: t}
	s.eventually("the example runs", func() bool { _, err := os.Stat(begun); return err == nil })
	must.OK(t, c.Process.Signal(syscall.SIGINT))
	ended := time.AfterFunc(patience, func() { _ = c.Process.Kill() })
	err := c.Wait()
	ended.Stop()
	if c.ProcessState.ExitCode() != exitFailed || !strings.Contains(out.String(), "molrun: interrupted") {
		t.Errorf("%v: %s", err, out.String())
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
	if left := s.processes(temp); len(left) > 0 {
		t.Errorf("processes still running: %v", left)
	}
}
