package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// shellFile is an algorithm that runs a script with the requested resources.
const shellFile = `
format = 1
type = "shell"
version = "1"
title = "Run a script"
retries = 1
max_runtime = "1h"
command = ["sh", "-c", "{settings.script}"]

[[parameters]]
name = "script"
type = "string"
required = true

[[parameters]]
name = "cpus"
type = "integer"
minimum = 1
default = 1

[[parameters]]
name = "gpus"
type = "integer"
minimum = 0
default = 0

[[parameters]]
name = "input"
file = [".txt", ".fasta"]

[[parameters]]
name = "other"
file = [".txt"]

[resources]
cpus = "{settings.cpus}"
gpus = "{settings.gpus}"
memory = "64MiB"

[sandbox]
read = ["@DIR@/gates"]

[metrics]
score = { file = "score.txt", pattern = 'score=([0-9.]+)' }

[[failures]]
pattern = 'cannot read (\S+)'
message = "The program could not read $1."
`

func shellServer(t *testing.T, config string, env ...string) *instance {
	t.Helper()
	return startServer(t, serverOptions{config: config, env: env, algorithms: map[string]string{"shell.toml": shellFile}})
}

// script returns settings of the shell algorithm that run a script.
func script(text string, more ...string) string {
	return fmt.Sprintf(`{"script":%q%s}`, text, strings.Join(more, ""))
}

// noSandbox is the start of a configuration without a sandbox, for tests whose programs
// write outside their work directory.
const noSandbox = "[runner]\nsandbox = \"off\"\n"

// gate is a file that scripts can wait for, even in a sandbox.
type gate string

func (s *instance) gate(name string) gate { return gate(filepath.Join(s.dir, "gates", name+s.tenant)) }

func (g gate) wait() string { return fmt.Sprintf("until [ -e '%s' ]; do sleep 0.05; done", string(g)) }

func (g gate) open(t *testing.T) {
	t.Helper()
	must.OK(t, os.WriteFile(string(g), nil, 0o600))
}

func TestJobRunsToItsResult(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	u.upload("in.txt", "hello\n")
	made := u.submit("j", "shell", script(
		`echo to the log; mkdir out/sub; cp in/input.txt out/sub/copy.txt; echo score=7.5 > out/score.txt; echo mine > out/log.txt; echo '{"x":1}' > out/metrics.json; echo molrun:progress 0.5 half`,
		`,"input":"inputs/in.txt"`))
	if made.Created == nil || !*made.Created || made.Status != "QUEUED" {
		t.Errorf("new job: %+v", made)
	}
	j := u.finished("j")
	if j.Status != "COMPLETED" || j.Attempts != 1 || j.Executor != "local" || j.StartedAt == "" || j.CompletedAt == "" {
		t.Fatalf("job: %+v", j)
	}
	if j.Metrics.Results["score"] != 7.5 || j.Metrics.Results["x"] != 1.0 {
		t.Errorf("metrics: %+v", *j.Metrics)
	}
	files := unzip(t, u.result("j", ""))
	if files["sub/copy.txt"] != "hello\n" || files["log.txt"] != "to the log\n" || files["output/log.txt"] != "mine\n" {
		t.Errorf("archive: %q", files)
	}
	must.Contain(t, "job.json", files["job.json"], `"status":"COMPLETED"`)
	u.wantResult("j", "sub/copy.txt", "hello\n")
	if got := u.do("GET", "/jobs/j/logs", nil).want(200); string(got.body) != "to the log\n" || got.header.Get("X-Log-Size") != "11" {
		t.Errorf("log %q, size %s", got.body, got.header.Get("X-Log-Size"))
	}
}

func TestFailureHasAMessageAndTheTailOfTheLog(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	u.submit("exit", "shell", script("echo cannot read a.pdb; exit 3"))
	u.submit("signal", "shell", script("kill -SEGV $$"))
	u.submit("memory", "shell", script("exec tail /dev/zero")) // tail buffers the endless line
	j := u.finished("exit")
	if f := j.Failure; j.Status != "FAILED" || f.Code != "EXIT_STATUS" || *f.ExitCode != 3 || f.Message != "The program could not read a.pdb." || !strings.Contains(f.LogTail, "cannot read") {
		t.Errorf("exit: %+v", j.Failure)
	}
	if f := u.finished("signal").Failure; f.Code != "SIGNAL" || f.Signal != "SIGSEGV" {
		t.Errorf("signal: %+v", f)
	}
	if f := u.finished("memory").Failure; f.Code != "OUT_OF_MEMORY" {
		t.Errorf("memory: %+v", f)
	}
	u.do("POST", "/result", `{"jobName":"exit"}`).code(409, "JOB_NOT_COMPLETED")
}

// alive returns the number of processes that have marker in their arguments or
// environment.
func (s *instance) alive(marker string) int { return len(s.processes(marker)) }

func TestCancelLeavesNoProcessBehind(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\ngrace = \"500ms\"\n")
	u := s.user("lab", "ann@lab.example")
	stubborn := `trap "" TERM; setsid sh -c 'trap "" TERM; (trap "" TERM; sleep 7771) & sleep 7771' & sleep 7771`
	u.submit("j", "shell", script(stubborn+"; sleep 7771"))
	u.running("j")
	s.eventually("the program has forked", func() bool { return s.alive("sleep\x007771") >= 3 })
	u.do("POST", "/jobs/j/cancel", nil).want(200)
	j := u.finished("j")
	if j.Status != "FAILED" || j.Failure.Code != "STOPPED" || !strings.Contains(j.Failure.Message, "ann@lab.example") {
		t.Errorf("after cancel: %+v", j.Failure)
	}
	must.Equal(t, "processes are left after the job is FAILED", s.alive("sleep\x007771"), 0)
}

func TestEveryJobSurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	s := shellServer(t, noSandbox+"cpus = 8\nmemory = \"8GiB\"\n")
	u := s.user("lab", "ann@lab.example")
	open := s.gate("go")
	for i := range 28 {
		mark := filepath.Join(s.dir, fmt.Sprintf("ran-%d", i))
		u.submit(fmt.Sprintf("j%d", i), "shell", script(fmt.Sprintf("echo run >> '%s'; %s; echo done > out/done.txt", mark, open.wait())))
	}
	counts := func() map[string]int {
		var page struct{ Jobs []record }
		u.do("GET", "/jobs?limit=100", nil).want(200).into(&page)
		n := map[string]int{}
		for _, j := range page.Jobs {
			n[j.Status]++
		}
		return n
	}
	s.eventually("8 run and 20 wait", func() bool { n := counts(); return n["RUNNING"] == 8 && n["QUEUED"] == 20 })
	s.kill()
	s.start()
	open.open(t)
	for i := range 28 {
		j := u.finished(fmt.Sprintf("j%d", i))
		marks, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("ran-%d", i)))
		if j.Status != "COMPLETED" || j.Attempts != 1 || err != nil || string(marks) != "run\n" {
			t.Errorf("job %d: %s, attempts %d, ran %q, %v", i, j.Status, j.Attempts, marks, err)
		}
	}
}
