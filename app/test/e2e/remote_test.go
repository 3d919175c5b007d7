package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"molrun/app/cli/remote"
	"molrun/app/test/must"
	"molrun/app/test/whole"
)

// person is a user of the command line.
type person struct {
	t         *testing.T
	s         *instance
	home, dir string
	env       []string
}

// person returns a command line, with its own home directory, at which the user is signed
// in.
func (u user) person() *person {
	u.t.Helper()
	p := &person{t: u.t, s: u.instance, home: u.t.TempDir(), dir: u.t.TempDir()}
	must.OK(u.t, os.WriteFile(filepath.Join(p.dir, "key.txt"), []byte(u.key+"\n"), 0o600))
	p.login(u.base, u.key)
	return p
}

func (p *person) login(base, key string, flags ...string) {
	p.t.Helper()
	c := p.command(append([]string{"login", "--server", base}, flags...)...)
	c.Stdin = strings.NewReader(key + "\n")
	if out, err := c.CombinedOutput(); err != nil {
		p.t.Fatalf("login: %v: %s", err, out)
	}
}

func (p *person) command(args ...string) *exec.Cmd {
	c := exec.Command(molrun, args...)
	c.Dir = p.dir
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "TERM=xterm"}, p.env...)
	return c
}

// run runs a command whose output is a pipe.
func (p *person) run(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	var out, errs bytes.Buffer
	c := p.command(args...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); c.ProcessState == nil {
		p.t.Fatal(err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// ok runs a command that must succeed.
func (p *person) ok(args ...string) (stdout string) {
	p.t.Helper()
	out, errs, code := p.run(args...)
	if code != 0 {
		p.t.Fatalf("molrun %s: exit code %d: %s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// onTerminal runs a command on an 80-column terminal and returns its output.
func (p *person) onTerminal(args ...string) (shown string, code int) {
	p.t.Helper()
	ours, theirs := terminalPair(p.t)
	c := p.command(args...)
	c.Stdin, c.Stdout, c.Stderr = theirs, theirs, theirs
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.OK(p.t, c.Start())
	must.OK(p.t, theirs.Close())
	var all bytes.Buffer
	_, _ = io.Copy(&all, ours) // ends with an error when the last writer closes
	_ = c.Wait()               // the exit code is checked below
	return all.String(), c.ProcessState.ExitCode()
}

func terminalPair(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { ours.Close() })
	must.OK(t, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	must.OK(t, err)
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	must.OK(t, err)
	must.OK(t, unix.IoctlSetWinsize(int(theirs.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 80}))
	return ours, theirs
}

// scene creates the objects that users' commands need: a finished job, a finished batch,
// a failed job and an upload.
func scene(t *testing.T) (p *person, s *instance) {
	t.Helper()
	s = plain(t)
	return s.scene(), s
}

func (s *instance) scene() *person {
	t := s.t
	t.Helper()
	p := s.user("lab", "ann@lab.example").person()
	must.OK(t, os.WriteFile(filepath.Join(p.dir, "proteins.fasta"), []byte(">a\nMDVFMKGLSKAKEG\n>b\nDSHAKRHHGYKRK\n"), 0o600))
	p.ok("submit", "cg-idp", "-n", "hst5", "--set", `sequences=["DSHAKRHHGY"]`, "--set", "steps=20000", "--wait")
	p.ok("batch", "sequence-properties", "-i", "proteins.fasta", "-n", "screen", "--wait")
	if _, errs, code := p.run("submit", "shell", "-n", "broken", "--set", "script=echo no such luck; exit 3", "--wait"); code != exitJob {
		t.Fatalf("a job that fails: exit code %d: %s", code, errs)
	}
	return p
}

// TestExitCodesOfUsersCommands runs each command on a terminal and with --json in five
// cases: it succeeds, the object does not exist, the service rejects the request, the
// service is unreachable, and the key is unknown.
func TestExitCodesOfUsersCommands(t *testing.T) {
	t.Parallel()
	p, s := scene(t)
	p.ok("files", "put", "proteins.fasta")
	stopped := &person{t: t, s: s, home: t.TempDir(), dir: p.dir, env: []string{"MOLRUN_SERVER=http://127.0.0.1:1", "MOLRUN_KEY=molrun_x"}}
	stranger := &person{t: t, s: s, home: t.TempDir(), dir: p.dir, env: []string{"MOLRUN_SERVER=" + s.base, "MOLRUN_KEY=molrun_wrong"}}
	unknown := &person{t: t, s: s, home: t.TempDir(), dir: p.dir}
	s.user("lab", "bob@lab.example").person().fails(exitKey, "was submitted by ann@lab.example", "rm", "hst5", "--yes")
	for _, tt := range []struct {
		ok, missing, refused string
		code                 int // exit code of refused
	}{
		{"whoami", "", "submit shell -n hst5 --set script=true", exitInvalid}, // the job name is taken
		{"open hst5", "", "", 0},
		{"algorithms", "", "", 0},
		{"algorithm show cg-idp", "algorithm show absent", "", 0},
		{"algorithm schema cg-idp", "algorithm schema absent", "", 0},
		{"submit sequence-properties --example --wait", "", "submit cg-idp --set steps=-1", exitInvalid},
		{"submit cg-idp --example --dry-run", "submit absent --example", "submit cg-idp --dry-run --set steps=-1", exitInvalid},
		{"batch sequence-properties -i proteins.fasta --wait", "", "batch sequence-properties -i proteins.fasta --set nonsense=1", exitInvalid},
		{"estimate cg-idp --example", "estimate absent --example", "estimate cg-idp --set steps=-1", exitInvalid},
		{"jobs", "", "jobs --status NONSENSE", exitInvalid},
		{"status hst5", "status absent", "", 0},
		{"wait hst5", "wait absent", "wait broken", exitJob},
		{"logs hst5", "logs absent", "", 0},
		{"logs -f hst5", "logs -f absent", "", 0},
		{"events hst5", "events absent", "", 0},
		{"results hst5 --list", "results absent --list", "results broken", exitInvalid},
		{"results hst5 --file metrics.json", "results hst5 --file absent", "", 0},
		{"table screen", "table absent", "table screen --sort nonsense", exitInvalid},
		{"plot hst5 size", "plot hst5 absent", "", 0},
		{"share hst5", "share absent", "share broken", exitInvalid},
		{"share --list", "share --revoke absent", "", 0},
		{"retry broken", "retry absent", "retry hst5", exitInvalid},
		{"files ls", "files get absent", "", 0},
		{"cancel hst5", "cancel absent", "", 0},
		{"rm absent-batch-of-none --filter", "", "", exitUsage},
	} {
		for _, mode := range []string{"terminal", "json"} {
			try := func(p *person, line string, want int) {
				t.Helper()
				if line == "" {
					return
				}
				args := strings.Fields(line)
				if mode == "json" {
					args = append(args, "--json")
				}
				out, errs, code := "", "", 0
				if mode == "terminal" {
					errs, code = p.onTerminal(args...)
				} else {
					out, errs, code = p.run(args...)
				}
				if code != want {
					t.Errorf("molrun %s (%s): exit code %d, want %d: %s%s", line, mode, code, want, out, errs)
				}
				if want != 0 && !strings.Contains(errs, "molrun: ") {
					t.Errorf("molrun %s (%s) does not say what is wrong: %q", line, mode, errs)
				}
				if want == 0 && mode == "json" && !strings.HasPrefix(line, "logs") && !json.Valid([]byte(strings.Split(out, "\n{")[0])) {
					t.Errorf("molrun %s prints no JSON: %s", line, out)
				}
			}
			if tt.code == exitUsage {
				try(p, tt.ok, exitUsage)
				continue
			}
			if tt.ok == "retry broken" {
				p.run("wait", "broken") // the previous retry can still be running
			}
			try(p, tt.ok, 0)
			try(p, tt.missing, exitMissing)
			try(p, tt.refused, tt.code)
			if mode == "json" || tt.ok == "jobs" {
				try(stranger, tt.ok, exitKey)
				try(unknown, tt.ok, exitKey)
				if !strings.HasPrefix(tt.ok, "logs -f") && !strings.HasPrefix(tt.ok, "events") && !strings.HasPrefix(tt.ok, "wait") {
					try(stopped, tt.ok, exitFailed)
				}
			}
		}
	}
}

// seriesView declares a view of a file that a script can write.
const seriesView = `
[[outputs]]
name = "energy"
file = "energy.csv"

[[views]]
name = "energy"
kind = "series"
file = "energy.csv"
x = "time"
y = ["potential"]
`

// TestASeriesThatIsNotWrittenYetIsCalledSo plots a series, and has a model read it,
// before its file exists, before the file has a row, and after the job has ended without
// a row.
func TestASeriesThatIsNotWrittenYetIsCalledSo(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	p, model := u.person(), overHTTP(t, u)
	begin, end := s.gate("begin"), s.gate("end")
	u.submit("slow", "drawn", script(begin.wait()+"; echo 'time,potential' > out/energy.csv; echo begun; "+end.wait()))
	u.running("slow")
	const noFile = "is RUNNING and has written no file of the view"
	s.eventually("the series has no file", func() bool {
		shown, code := p.onTerminal("plot", "slow", "energy")
		return code == exitMissing && strings.Contains(shown, noFile)
	})
	if _, refusal := use(t, model, "read_series", map[string]any{"jobName": "slow", "view": "energy"}); !strings.Contains(refusal, noFile) {
		t.Errorf("a model is told %q", refusal)
	}
	begin.open(t)
	s.eventually("the series has no row", func() bool {
		shown, code := p.onTerminal("plot", "slow", "energy")
		return code == 0 && strings.Contains(shown, "not written yet")
	})
	for tool, arguments := range map[string]map[string]any{"read_series": {"jobName": "slow", "view": "energy"}, "list_results": {"jobName": "slow"}} {
		if answer, refusal := use(t, model, tool, arguments); answer["incomplete"] != true {
			t.Errorf("%s while the job runs: %v %s", tool, answer, refusal)
		}
	}
	end.open(t)
	u.completed("slow")
	if shown, code := p.onTerminal("plot", "slow", "energy"); code != 0 || !strings.Contains(shown, "the series has no numbers") {
		t.Errorf("once it has ended: exit code %d: %s", code, shown)
	}
	if answer, _ := use(t, model, "list_results", map[string]any{"jobName": "slow"}); answer["incomplete"] != false {
		t.Errorf("list_results once it has ended: %v", answer)
	}
}

// commands calls do for every user command.
func commands(do func(c *cobra.Command)) {
	var below func(c *cobra.Command)
	below = func(c *cobra.Command) {
		if c.Runnable() || c.Example != "" {
			do(c)
		}
		for _, sub := range c.Commands() {
			below(sub)
		}
	}
	algorithms := &cobra.Command{Use: "algorithms"}
	remote.SearchAlgorithms(algorithms)
	for _, c := range append(remote.Commands(""), remote.LoginCommand(func(*cobra.Command) remote.LocalKey { return nil }), algorithms) {
		below(c)
	}
}

// TestExamplesInHelpRun runs the examples of every user command as a user would type
// them, in one directory.
func TestExamplesInHelpRun(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "")
	p := s.scene()
	prepareExamples(t, p)
	first := regexp.MustCompile(`^molrun files put`)
	last := regexp.MustCompile(`^molrun (cancel|retry|rm|files rm|logout)`) // commands that delete something run last
	var lines [3][]string
	commands(func(c *cobra.Command) {
		examples := strings.Split(strings.TrimSpace(c.Example), "\n")
		if len(examples) < 2 {
			t.Errorf("%s --help has fewer than two examples", c.CommandPath())
		}
		for _, line := range examples {
			line = strings.TrimSpace(line)
			when := 1
			switch {
			case first.MatchString(line):
				when = 0
			case last.MatchString(line):
				when = 2
			}
			lines[when] = append(lines[when], line)
		}
	})
	key := strings.TrimSpace(must.Read(t, filepath.Join(p.dir, "key.txt")))
	for _, line := range slices.Concat(lines[0], lines[1], lines[2]) {
		switch {
		case strings.HasPrefix(line, "molrun top"), strings.HasPrefix(line, "molrun events --organization"):
			continue // these run until Ctrl-C and have their own tests
		case strings.HasPrefix(line, "molrun retry"):
			p.run("wait", "ubq") // the previous retry can still be running
		case strings.HasPrefix(line, "molrun logout"):
			p.login(s.base, key, "--profile", "default")
			p.login(s.base, key, "--profile", "lab")
		case strings.HasPrefix(line, "molrun login --server") && !strings.Contains(line, "<"):
			p.env = []string{"MOLRUN_KEY=" + key}
		}
		if out, err := p.shell(line); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		p.env = nil
	}
}

// Two algorithms can have example files with the same name and different content.
func TestFilesOfAnExampleAreInAFolderOfItsAlgorithm(t *testing.T) {
	t.Parallel()
	p := plain(t).user("lab", "ann@lab.example").person()
	p.ok("estimate", "structure-summary", "--example")
	if out := p.ok("files", "ls"); !strings.Contains(out, `"folder":"examples/structure-summary"`) || strings.Contains(out, `"inputs"`) {
		t.Errorf("the uploads are %s", out)
	}
}

// prepareExamples creates the files and jobs that the examples refer to.
func prepareExamples(t *testing.T, p *person) {
	t.Helper()
	write := func(name, text string) {
		must.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(p.dir, name)), 0o700))
		must.OK(t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
	}
	structure := must.Read(t, filepath.Join(root, "app/algorithm/builtin/examples/lysozyme.pdb"))
	write("model.pdb", structure)
	write("models/a.pdb", structure)
	write("models/b.pdb", "REMARK\n"+structure)
	write("hst5.fasta", ">Hst5\nDSHAKRHHGYKRKFHEKHHSHRGY\n")
	write("conditions.csv", "temperature_K,steps\n290,2000\n300,2000\n")
	write("job.toml", "type = \"cg-idp\"\njobName = \"from-file\"\n\n[settings]\nsteps = 2000\n\n[files]\nfasta = \"hst5.fasta\"\n")
	write("binodal.yaml", smallBinodal(t))
	write("scripts.csv", "script\ntrue\nexit 1\n")
	if _, errs, code := p.run("batch", "shell", "-i", "scripts.csv", "-n", "ubq", "--wait"); code != exitJob {
		t.Fatalf("a batch with a row that fails: exit code %d: %s", code, errs)
	}
	p.ok("results", "hst5")
}

// shell runs a shell command line in which molrun is the binary under test.
func (p *person) shell(line string) (string, error) {
	bin := filepath.Join(p.home, "bin")
	_ = os.Mkdir(bin, 0o700) // it might exist
	_ = os.Symlink(cmp.Or(p.s.binary, molrun), filepath.Join(bin, "molrun"))
	for from, to := range map[string]string{"http://lab.example:8080": p.s.base, "https://lab.example": p.s.base, "molrun-data": p.s.data()} {
		line = strings.ReplaceAll(line, from, to)
	}
	c := p.command()
	c.Path, c.Args = "/bin/sh", []string{"sh", "-c", line}
	c.Env = append(c.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	return string(out), err
}

func TestOutputIsForPeopleOnATerminalAndForProgramsElsewhere(t *testing.T) {
	t.Parallel()
	p, _ := scene(t)
	shown, _ := p.onTerminal("jobs")
	if !strings.Contains(shown, "✔ completed") || !strings.Contains(shown, "✘ failed") || !strings.Contains(shown, "\x1b[32m") {
		t.Errorf("a terminal shows %q, want states with colours", shown)
	}
	for line := range strings.Lines(regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(shown, "")) {
		if n := len([]rune(strings.TrimRight(line, "\r\n"))); n > 80 {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
	p.env = []string{"NO_COLOR=1"}
	if shown, _ := p.onTerminal("jobs"); strings.Contains(shown, "\x1b") {
		t.Errorf("NO_COLOR, and yet %q", shown)
	}
	p.env = nil
	if out := p.ok("jobs"); !json.Valid([]byte(out)) {
		t.Errorf("a pipe gets %q, want JSON", out)
	}
	if out := p.ok("jobs", "--json=false"); json.Valid([]byte(out)) || strings.Contains(out, "\x1b") {
		t.Errorf("--json=false prints %q", out)
	}
}

func TestTextOfOthersCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	p, _ := scene(t)
	p.ok("submit", "shell", "-n", "rude", "--set", `script=printf '\033]0;owned\007\033[2Jhello\n'; exit 1`)
	_, _, code := p.run("wait", "rude")
	if code != exitJob {
		t.Fatalf("exit code %d", code)
	}
	for _, args := range [][]string{{"logs", "rude"}, {"logs", "-f", "rude"}, {"status", "rude"}, {"jobs"}, {"wait", "rude"}} {
		shown, _ := p.onTerminal(args...)
		if strings.Contains(shown, "\x1b]0;") || strings.Contains(shown, "\x1b[2Jhello") {
			t.Errorf("molrun %v shows %q", args, shown)
		}
	}
}

func TestKeysOfProfilesStayPrivate(t *testing.T) {
	t.Parallel()
	p, s := scene(t)
	file := filepath.Join(p.home, ".config", "molrun", "profiles.json")
	info, err := os.Stat(file)
	must.OK(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v of the profiles", info.Mode())
	}
	p.fails(exitKey, "no API key is saved for http://127.0.0.1:1", "whoami", "--server", "http://127.0.0.1:1")
	must.OK(t, os.Chmod(file, 0o644))
	if _, errs, code := p.run("whoami"); code == 0 || !strings.Contains(errs, "chmod 600") {
		t.Errorf("profiles that others can read: exit code %d: %s", code, errs)
	}
	must.OK(t, os.Chmod(file, 0o600))
	c := p.command("login", "--server", s.base)
	c.Stdin = strings.NewReader("molrun_wrong\n")
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "nothing was saved") {
		t.Errorf("a wrong key: %v: %s", err, out)
	}
	must.Contain(t, "after a login that failed", p.ok("whoami"), "ann@lab.example")
	p.ok("logout")
	p.fails(exitKey, "", "whoami")
}

// TestWhiteSpaceAroundKeysDoesNotCount gives a key in every possible way, surrounded by
// white space as in files and pasted text.
func TestWhiteSpaceAroundKeysDoesNotCount(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	// try runs a command with the key in the environment, on standard input or in a profile.
	try := func(given, how string, args ...string) (said string, err error) {
		p := &person{t: t, s: s, home: t.TempDir(), dir: t.TempDir()}
		if how == "variable" {
			p.env = []string{"MOLRUN_KEY=" + given, "MOLRUN_SERVER=" + s.base}
		}
		if how == "profile" {
			file := filepath.Join(p.home, ".config", "molrun", "profiles.json")
			must.OK(t, remote.ProfileFile{Current: "lab", Profiles: map[string]remote.Profile{"lab": {Server: s.base, Key: given}}}.Write(file))
		}
		c := p.command(args...)
		c.Stdin = strings.NewReader("")
		if how == "input" {
			c.Stdin = strings.NewReader(given)
		}
		out, err := c.CombinedOutput()
		return string(out), err
	}
	for _, way := range [][]string{
		{"variable", "whoami"},
		{"variable", "mcp"},
		{"variable", "login"},
		{"variable", "events", "--json", "absent"},
		{"profile", "whoami"},
		{"profile", "mcp"},
		{"input", "login", "--server", s.base},
	} {
		for _, around := range []string{"\n", " \t\r\n"} {
			said, err := try(around+u.key+around, way[0], way[1:]...)
			if way[1] != "events" && err != nil || way[1] == "events" && !strings.Contains(said, "absent") || strings.Contains(said, u.key) {
				t.Errorf("%q, %q around the key: %v: %s", way, around, err, said)
			}
		}
		for _, inside := range []string{"\n", "\u200b"} {
			if way[0] == "input" && inside == "\n" {
				continue // a key is always on one line
			}
			said, err := try(u.key+inside+u.key, way[0], way[1:]...)
			if err == nil || !strings.Contains(said, "characters other than letters, digits and underscores") || strings.Contains(said, u.key) {
				t.Errorf("%q, %q inside the key: %v: %s", way, inside, err, said)
			}
		}
	}
}

func TestWaitingSurvivesARestartAndLeavesTheJobToCtrlC(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{algorithms: map[string]string{"shell.toml": shellFile}, flags: []string{"--listen", freeAddress(t)}})
	p := s.user("lab", "ann@lab.example").person()
	gate := filepath.Join(s.dir, "gates", "open")
	p.ok("submit", "shell", "-n", "long", "--set", "script=until [ -e "+gate+" ]; do sleep 0.1; done; echo released")
	var errs whole.Log
	c := p.command("wait", "long")
	c.Stderr = &errs
	must.OK(t, c.Start())
	s.eventually("the wait shows the job", func() bool { return strings.Contains(errs.String(), "running") })
	must.OK(t, c.Process.Signal(syscall.SIGINT))
	_ = c.Wait() // the exit code is checked below
	if code := c.ProcessState.ExitCode(); code != exitLeft || !strings.Contains(errs.String(), "Resume: molrun wait long.") {
		t.Errorf("Ctrl-C: exit code %d: %s", code, errs.String())
	}
	p.fails(exitWaited, "timed out; long is still running", "wait", "long", "--timeout", "200ms")
	if out := p.ok("status", "long"); !strings.Contains(out, `"status":"RUNNING"`) {
		t.Fatalf("after both: %s", out)
	}
	follow := p.command("logs", "-f", "long")
	var log, said whole.Log
	follow.Stdout, follow.Stderr = &log, &said
	must.OK(t, follow.Start())
	s.eventually("the log is followed", func() bool { return strings.Contains(said.String(), "running") })
	s.kill()
	s.start()
	must.OK(t, os.WriteFile(gate, nil, 0o600))
	must.OK(t, follow.Wait())
	must.Equal(t, "the log over a restart", log.String(), "released\n")
}

func TestTopDrawsAndStopsJobs(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{algorithms: map[string]string{"shell.toml": shellFile}})
	p := s.user("lab", "ann@lab.example", "--role", "admin").person()
	p.ok("submit", "shell", "-n", "long", "--set", "script=echo hello; sleep 600")
	s.eventually("it runs", func() bool { return strings.Contains(p.ok("status", "long"), `"status":"RUNNING"`) })
	ours, theirs := terminalPair(t)
	c := p.command("top")
	c.Stdin, c.Stdout, c.Stderr = theirs, theirs, theirs
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.OK(t, c.Start())
	must.OK(t, theirs.Close())
	var shown whole.Log
	ended := make(chan struct{})
	go func() { // ends when the command exits
		defer close(ended)
		_, _ = io.Copy(&shown, ours) // ends with an error when the last writer closes
	}()
	press := func(key, shows string) {
		t.Helper()
		from := len(shown.String())
		_, err := ours.Write([]byte(key))
		must.OK(t, err)
		s.eventually("top shows "+shows, func() bool { return strings.Contains(shown.String()[from:], shows) })
	}
	s.eventually("top shows the job", func() bool { return strings.Contains(shown.String(), "▸ long") })
	must.Contain(t, "an admin does not see the machine", shown.String(), "CPUs 1/")
	press("f", "hello")
	press("x", "▸ long")
	press("c", "cancel long?")
	press("y", "is being cancelled")
	_, err := ours.Write([]byte("q"))
	must.OK(t, err)
	_ = c.Wait() // the exit code is checked below
	<-ended
	if code := c.ProcessState.ExitCode(); code != 0 || !strings.HasSuffix(shown.String(), "\x1b[?25h\x1b[?1049l") {
		t.Errorf("exit code %d, the screen ends with %q", code, shown.String()[max(0, len(shown.String())-40):])
	}
	if out, _, code := p.run("wait", "long"); code != exitJob {
		t.Errorf("after y: exit code %d: %s", code, out)
	}
}

// bareFile is an algorithm without settings.
const bareFile = `
format = 1
type = "bare"
version = "1"
title = "Print a word"
max_runtime = "1m"
command = ["echo", "word"]

[resources]
memory = "16MiB"
`

func TestJobsWithoutSettingsAreSent(t *testing.T) {
	t.Parallel()
	p := plain(t).user("lab", "ann@lab.example").person()
	p.ok("submit", "bare", "-n", "bare", "--wait")
	must.Equal(t, "the job logs", p.ok("logs", "bare"), "word\n")
}
