package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// script returns settings of the shell algorithm.
func script(text string, more ...string) string {
	return fmt.Sprintf(`{"script":%q%s}`, text, strings.Join(more, ""))
}

// noSandbox is the start of the configuration for tests whose programs write outside
// their work directory, which a sandbox forbids.
const noSandbox = "[runner]\nsandbox = \"off\"\n"

// gate is a file that scripts wait for, even in a sandbox.
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
	if !strings.Contains(files["job.json"], `"status":"COMPLETED"`) {
		t.Errorf("job.json: %s", files["job.json"])
	}
	if got := string(u.result("j", "sub/copy.txt")); got != "hello\n" {
		t.Errorf("one file: %q", got)
	}
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

// alive counts the processes whose arguments contain a marker.
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
	if n := s.alive("sleep\x007771"); n != 0 {
		t.Errorf("%d processes are left after the job is FAILED", n)
	}
}

func TestTimeLimitEndsTheProgram(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\ngrace = \"500ms\"\n")
	u := s.user("lab", "ann@lab.example")
	u.do("POST", "/submit-job", `{"jobName":"j","type":"shell","maxRuntimeSeconds":1,"settings":`+script(`trap "" TERM; sleep 7772; sleep 7772`)+`}`).want(200)
	j := u.finished("j")
	if j.Failure == nil || j.Failure.Code != "TIMEOUT" || s.alive("sleep\x007772") != 0 {
		t.Errorf("after the time limit: %+v, %d processes left", j.Failure, s.alive("sleep\x007772"))
	}
	u.do("POST", "/submit-job", `{"jobName":"k","type":"shell","maxRuntimeSeconds":3601,"settings":`+script("true")+`}`).detail("body.maxRuntimeSeconds")
}

func TestEnvironmentIsBuiltFromNothing(t *testing.T) {
	t.Parallel()
	u := shellServer(t, "", "SECRET_OF_THE_SERVER=hunter2").user("lab", "ann@lab.example")
	u.submit("j", "shell", script("env; umask; tr '\\0' '\\n' < /proc/$PPID/environ; ls -l /proc/self/fd"))
	u.finished("j")
	log := string(u.do("GET", "/jobs/j/logs", nil).want(200).body)
	for _, secret := range []string{"hunter2", "MOLRUN_CONFIG", "jobs.db"} {
		if strings.Contains(log, secret) {
			t.Errorf("the program can see %q: %s", secret, log)
		}
	}
	if !strings.Contains(log, "CUDA_VISIBLE_DEVICES=\n") || !strings.Contains(log, "0077\n") {
		t.Errorf("want umask 0077 and no GPU: %s", log)
	}
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

func TestJobsThatEndWhileTheServerIsDownAreCollected(t *testing.T) {
	t.Parallel()
	s := shellServer(t, noSandbox)
	u := s.user("lab", "ann@lab.example")
	open, over := s.gate("go"), s.gate("over")
	u.submit("good", "shell", script(open.wait()+"; echo yes > out/a; touch '"+string(over)+"'"))
	u.running("good")
	s.stop()
	if !strings.Contains(s.log.String(), "stopping") {
		t.Error("the log does not mention the stop")
	}
	open.open(t)
	s.eventually("the program ends by itself", func() bool { _, err := os.Stat(string(over)); return err == nil })
	s.start()
	if j := u.finished("good"); j.Status != "COMPLETED" || j.Attempts != 1 || string(u.result("good", "a")) != "yes\n" {
		t.Errorf("%+v", j)
	}
}

func TestOneUsersThousandJobsDoNotDelayAnother(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\ncpus = 1\n")
	a, b := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example")
	first, rest := s.gate("first"), s.gate("rest")
	rows := slices.Repeat([]string{script(rest.wait())}, 1000)
	rows[0] = script(first.wait())
	a.do("POST", "/submit-batch", `{"batchName":"many","type":"shell","settings":[`+strings.Join(rows, ",")+`]}`).want(200)
	a.running("many-1")
	b.submit("one", "shell", script(rest.wait()))
	first.open(t)
	a.finished("many-1")
	b.running("one")
	if counts := a.job("many").SubjobCounts; counts["RUNNING"] != 0 || counts["QUEUED"] != 999 {
		t.Errorf("while the other user's job is running: %v", counts)
	}
	a.do("POST", "/jobs/many/cancel", nil).want(200)
	rest.open(t)
	b.finished("one")
	if counts := a.finished("many").SubjobCounts; counts["FAILED"] != 999 || counts["COMPLETED"] != 1 {
		t.Errorf("after cancel: %v", counts)
	}
}

// standInSMI lists two GPUs like nvidia-smi.
const standInSMI = "#!/bin/sh\necho '0, GPU-aaaa'\necho '1, GPU-bbbb'\n"

func TestFiveGPUJobsNeverShareAGPU(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(standInSMI), 0o700))
	s := shellServer(t, noSandbox+"cpus = 8\n", "PATH="+bin+":"+os.Getenv("PATH"))
	u := s.user("lab", "ann@lab.example")
	// mkdir fails if another job uses the same device.
	use := fmt.Sprintf(`echo "$CUDA_VISIBLE_DEVICES" > out/device; mkdir '%s'/"$CUDA_VISIBLE_DEVICES" || exit 9; sleep 0.3; rmdir '%s'/"$CUDA_VISIBLE_DEVICES"`, s.dir, s.dir)
	for i := range 5 {
		u.submit(fmt.Sprintf("g%d", i), "shell", script(use, `,"gpus":1`))
	}
	seen := map[string]int{}
	for i := range 5 {
		if j := u.finished(fmt.Sprintf("g%d", i)); j.Status != "COMPLETED" {
			t.Fatalf("%+v", j.Failure)
		}
		seen[strings.TrimSpace(string(u.result(fmt.Sprintf("g%d", i), "device")))]++
	}
	if len(seen) != 2 || seen[""] != 0 {
		t.Errorf("devices used: %v, want both GPUs, one at a time", seen)
	}
	u.do("POST", "/submit-job", `{"jobName":"g9","type":"shell","settings":`+script("true", `,"gpus":3`)+`}`).detail("body.settings.gpus")
}

func TestJobThatNeedsAllCPUsIsNotStarved(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\ncpus = 2\nreserve_after = \"300ms\"\n")
	u, v := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example")
	first, second := s.gate("first"), s.gate("second")
	u.submit("first", "shell", script(first.wait()))
	u.running("first")
	u.submit("big", "shell", script("true", `,"cpus":2`))
	u.submit("second", "shell", script(second.wait()))
	u.running("second")                            // overtakes the big job
	later := map[string]user{"late": u, "bobs": v} // each user has a turn
	for name, by := range later {
		by.submit(name, "shell", script("true"))
	}
	u.until("big", "reserving its CPUs", func(r record) bool { return strings.Contains(r.StatusReason, "reserved") })
	first.open(t)
	u.finished("first")
	second.open(t)
	began := u.finished("big").StartedAt
	for name, by := range later {
		if j := by.finished(name); j.StartedAt < began {
			t.Errorf("%s started at %s, want after the big job at %s", name, j.StartedAt, began)
		}
	}
}

func TestProgressIsShownWhileTheJobRuns(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	open := s.gate("go")
	u.submit("j", "shell", script("echo molrun:progress 0.42 step 42 of 100; "+open.wait()))
	j := u.until("j", "in progress", func(r record) bool { return r.Progress != nil })
	if j.Progress.Fraction != 0.42 || j.Progress.Text != "step 42 of 100" {
		t.Errorf("progress: %+v", *j.Progress)
	}
	open.open(t)
	if j = u.finished("j"); j.Progress != nil {
		t.Errorf("a finished job has progress %+v", *j.Progress)
	}
}

func TestDeleteFreesTheDiskAtOnce(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	open := s.gate("go")
	id := u.submit("j", "shell", script("echo a > out/a; "+open.wait())).JobID
	u.running("j")
	u.do("DELETE", "/jobs/j", nil).code(409, "JOB_NOT_FINISHED")
	open.open(t)
	u.finished("j")
	dir := filepath.Join(s.data(), "jobs", id)
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	u.do("DELETE", "/jobs/j", nil)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("after delete: %v", err)
	}
	u.do("GET", "/jobs/j", nil).code(404, "NOT_FOUND")
}

func TestQueuedJobsShowWhyTheyWait(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\ncpus = 2\n")
	u := s.user("lab", "ann@lab.example")
	open := s.gate("go")
	u.submit("first", "shell", script(open.wait(), `,"cpus":2`))
	u.running("first")
	u.submit("second", "shell", script("true"))
	j := u.until("second", "waiting with a reason", func(r record) bool { return r.StatusReason != "" })
	if !strings.Contains(j.StatusReason, "CPU") {
		t.Errorf("reason %q", j.StatusReason)
	}
	open.open(t)
	u.finished("second")
}

func TestLostAttemptIsRetried(t *testing.T) {
	t.Parallel()
	s := shellServer(t, noSandbox)
	u := s.user("lab", "ann@lab.example")
	mark := filepath.Join(s.dir, "ran")
	open := s.gate("go")
	u.submit("j", "shell", script(fmt.Sprintf("echo run >> '%s'; %s", mark, open.wait())))
	ran := func(times int) func() bool {
		return func() bool {
			text, _ := os.ReadFile(mark)
			return string(text) == strings.Repeat("run\n", times)
		}
	}
	s.eventually("the first attempt has begun", ran(1))
	s.kill()
	s.killTasks() // like a crash of the machine
	s.start()
	s.eventually("the second attempt has begun", ran(2))
	open.open(t)
	if j := u.finished("j"); j.Status != "COMPLETED" || j.Attempts != 2 {
		t.Errorf("%+v", j)
	}
}
