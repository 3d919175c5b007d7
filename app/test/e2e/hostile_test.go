package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"molrun/app/test/containertest"
	"molrun/app/test/must"
)

// hostileConfig limits what hostile programs can consume to what a test machine can
// afford.
const hostileConfig = `
[runner]
cpus = 8
memory = "8GiB"
grace = "500ms"
log_limit = "1MiB"
processes = 200
file_size = "1GiB"
`

// isolation returns the isolation in effect.
func (s *instance) isolation() string {
	s.t.Helper()
	var ready struct{ Checks struct{ Isolation string } }
	user{instance: s}.do("GET", "/readyz", nil).want(200).into(&ready)
	if ready.Checks.Isolation == "" {
		s.t.Error("/readyz does not report the isolation")
	}
	return ready.Checks.Isolation
}

func (s *instance) sandboxed() bool { return strings.Contains(s.isolation(), "bubblewrap") }

// boxed returns options for a server whose shell algorithm runs in a container.
func boxed(t *testing.T, config string, env ...string) serverOptions {
	t.Helper()
	store := containertest.Podman(t)
	file := shellFile + fmt.Sprintf("\n[container]\nimage = %q\n", containertest.Image)
	return serverOptions{
		config:     config + fmt.Sprintf("[containers]\nenv = [%q, %q]\n", store.Options.Env[0], store.Options.Env[1]),
		env:        append(env, "PATH="+store.Path+":"+os.Getenv("PATH")),
		algorithms: map[string]string{"shell.toml": file},
	}
}

// checkUnharmed checks that another user's job completes and that no process of an
// earlier job is still running.
func (s *instance) checkUnharmed(after string) {
	s.t.Helper()
	other := s.user("lab", "bob@lab.example")
	other.submit("after-"+after, "shell", script("echo fine > out/fine"))
	other.completed("after-" + after)
	jobs := filepath.Join(s.data(), "jobs")
	for _, pid := range s.processes(jobs) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // for the error message only
		s.t.Errorf("after %s: process %d is still running: %q", after, pid, line)
	}
}

// TestHostileProgramsHarmNobody runs hostile programs in a sandbox if available, without
// one, and in a container, while another user's job is running.
func TestHostileProgramsHarmNobody(t *testing.T) {
	t.Parallel()
	for _, sandbox := range []string{"auto", "off", "container"} {
		t.Run("sandbox "+sandbox, func(t *testing.T) {
			t.Parallel()
			o := serverOptions{
				config:     hostileConfig + fmt.Sprintf("sandbox = %q\n", sandbox),
				algorithms: map[string]string{"shell.toml": shellFile},
			}
			if sandbox == "container" {
				o = boxed(t, hostileConfig)
			}
			// Enough for a job with the maximum number of processes.
			o.algorithms["shell.toml"] = strings.Replace(o.algorithms["shell.toml"], "64MiB", "1GiB", 1)
			s := startServer(t, o)
			other := s.user("lab", "carl@lab.example")
			end := s.gate("end")
			other.submit("concurrent", "shell", script("echo begun > out/concurrent; "+end.wait()+"; echo ended >> out/concurrent"))
			other.running("concurrent")
			forkBomb(t, s)
			end.open(t)
			if j := other.finished("concurrent"); j.Status != "COMPLETED" || j.Attempts != 1 {
				t.Fatalf("concurrent job: %d attempts, %+v", j.Attempts, j.Failure)
			}
			other.wantResult("concurrent", "concurrent", "begun\nended\n")
			s.checkUnharmed("the hostile jobs")
		})
	}
}

func forkBomb(t *testing.T, s *instance) {
	u := s.user("lab", "ann@lab.example")
	// Each of the 512 leaves writes a line. The bomb is finite, because an infinite one
	// would take down a machine without limits.
	u.submit("bomb", "shell", script(`
bomb() { if [ $1 = 0 ]; then echo leaf >> out/leaves; sleep 3; else bomb $(($1-1)) & bomb $(($1-1)) & wait; fi; }
bomb 9
[ $(wc -l < out/leaves) = 512 ]`))
	j := u.finished("bomb")
	if j.Status != "FAILED" {
		t.Fatalf("all processes of the bomb ran and the job is %s", j.Status)
	}
	if j.Failure.Code != "SIGNAL" || !regexp.MustCompile(`exceeds? the limit of 200 .*\(runner\.processes\)`).MatchString(j.Failure.Message) {
		t.Errorf("%+v; want the limit and its setting", j.Failure)
	}
}

func TestSandboxHidesTheMachine(t *testing.T) {
	t.Parallel()
	const secret = "SECRET_OF_THE_SERVER=hunter2"
	t.Run("bubblewrap", func(t *testing.T) {
		t.Parallel()
		s := shellServer(t, hostileConfig, secret)
		if !s.sandboxed() {
			must.Skip(t, "bubblewrap is not available")
		}
		hidesTheMachine(t, s)
	})
	t.Run("container", func(t *testing.T) {
		t.Parallel()
		hidesTheMachine(t, startServer(t, boxed(t, hostileConfig, secret)))
	})
}

func hidesTheMachine(t *testing.T, s *instance) {
	u := s.user("lab", "ann@lab.example")
	canary := filepath.Join(s.dir, "canary")
	must.OK(t, os.WriteFile(canary, []byte("secret of the server\n"), 0o666))
	u.upload("in.txt", "hello\n")
	other := s.user("lab", "dora@lab.example")
	of := filepath.Join(s.data(), "jobs", other.submit("other", "shell", script("echo mine > out/mine")).JobID)
	other.completed("other")
	// All of these must fail. Attempts that need no service are tested in package task.
	attempts := []string{
		"cat '" + canary + "'",
		"cat '" + filepath.Join(s.data(), "jobs.db") + "'",
		"cat '" + filepath.Join(s.dir, "config.toml") + "'",
		"cat ../run.json",
		"cat /etc/shadow",
		"echo > /dev/spoilt && test -e '" + filepath.Join(s.dir, "dev-spoilt") + "'",
		"echo spoilt > in/input.txt",
		"cat /proc/1/environ | tr '\\0' '\\n' | grep hunter2",
		"kill -0 " + fmt.Sprint(s.process.Process.Pid),
		"ls '" + filepath.Join(s.data(), "control.sock") + "'",
		"cat '" + filepath.Join(s.data(), "secret") + "'",
		"cat /proc/" + fmt.Sprint(s.process.Process.Pid) + "/environ",
		"curl -s " + s.base + "/healthz",
		"curl -s --unix-socket '" + filepath.Join(s.data(), "control.sock") + "' http://molrun/",
		"ls -d '" + of + "'",
		"find / -path /proc -prune -o -name mine -print | grep .",
		"ls '" + filepath.Join(s.data(), "uploads") + "'",
	}
	text := "export LC_ALL=C\n"
	for i, line := range attempts {
		text += fmt.Sprintf("( %s ) > /dev/null 2>&1 && echo %d >> out/worked\n", line, i)
	}
	// These writes must be lost: other directories are either absent or within the job's
	// own /tmp.
	text += fmt.Sprintf("(echo spoilt > '%s'; echo spoilt > ../task.json) 2> /dev/null\n", canary)
	text += "echo temp > /tmp/temp && echo temp > \"$TMPDIR/temp\" && cat in/input.txt > out/input && touch out/worked"
	u.submit("j", "shell", script(text, `,"input":"inputs/in.txt"`))
	u.completed("j")
	files := unzip(t, u.result("j", ""))
	for line := range strings.FieldsSeq(files["worked"]) {
		var i int
		if _, err := fmt.Sscan(line, &i); err != nil || i >= len(attempts) {
			t.Fatalf("the program wrote %q", line)
		}
		t.Errorf("succeeded inside the sandbox: %s", attempts[i])
	}
	must.Equal(t, "the input inside the sandbox", files["input"], "hello\n")
	if text, err := os.ReadFile(canary); err != nil || string(text) != "secret of the server\n" {
		t.Errorf("the canary is %q, %v", text, err)
	}
	s.checkUnharmed("the sandboxed job")
}
