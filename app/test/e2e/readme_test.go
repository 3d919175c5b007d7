package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app/server/config"
	"molrun/app/test/must"
)

// root is the root of the repository, relative to this package.
const root = "../../.."

// readme returns the code block after a marker such as <!-- run: name --> in README.md or
// a page in web/docs.
func readme(t *testing.T, mark string) string {
	t.Helper()
	var found []string
	for _, page := range documentation(t) {
		for _, b := range page.blocks {
			if b.mark == mark {
				found = append(found, b.text)
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d blocks of README.md and web/docs are marked %q, want one", len(found), mark)
	}
	return found[0]
}

func TestReadmeWalkthroughRunsAsWritten(t *testing.T) {
	t.Parallel()
	must.Installed(t, "curl")
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	dir := t.TempDir()
	shell := exec.Command("sh", "-c", readme(t, "run: walkthrough"))
	shell.Dir = dir
	shell.Env = []string{"PATH=" + os.Getenv("PATH"), "BASE=" + s.base, "KEY=" + u.key}
	out, err := shell.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the job is COMPLETED") {
		t.Fatalf("%v\n%s", err, out)
	}
	archive, err := os.ReadFile(filepath.Join(dir, "first.zip"))
	must.OK(t, err)
	if files := unzip(t, archive); files["job.json"] == "" || files["metrics.json"] == "" {
		t.Errorf("first.zip does not contain job.json or metrics.json")
	}
}

// TestReadmeStartCommandsRunAsWritten runs the commands in a directory where molrun is
// the binary under test and make does nothing. Only the port differs.
func TestReadmeStartCommandsRunAsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.OK(t, os.Symlink(molrun, filepath.Join(dir, "molrun")))
	must.OK(t, os.WriteFile(filepath.Join(dir, "make"), []byte("#!/bin/sh\n"), 0o700))
	must.OK(t, os.WriteFile(filepath.Join(dir, "word-count.toml"), []byte(readme(t, "file: word-count.toml")), 0o600))
	example, err := os.ReadFile(filepath.Join(root, "config.example.toml"))
	must.OK(t, err)
	must.OK(t, os.WriteFile(filepath.Join(dir, "config.example.toml"), example, 0o600))
	shell := func(mark string, env ...string) *exec.Cmd {
		c := exec.Command("sh", "-ec", strings.ReplaceAll(readme(t, mark), "127.0.0.1:8080", "127.0.0.1:0"))
		c.Dir = dir
		c.Env = append([]string{"PATH=" + dir + ":" + os.Getenv("PATH")}, env...)
		return c
	}
	out, err := shell("run: check").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "word-count 1 is valid and ready") {
		t.Errorf("algorithms check: %v, %s", err, out)
	}
	add := shell("run: add", "MOLRUN_LISTEN=127.0.0.1:0")
	for _, serve := range []*exec.Cmd{shell("run: serve"), shell("run: config", "MOLRUN_LISTEN=127.0.0.1:0"), add} {
		serve.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		stderr, err := serve.StderrPipe()
		must.OK(t, err)
		must.OK(t, serve.Start())
		stop := time.AfterFunc(patience, func() { _ = syscall.Kill(-serve.Process.Pid, syscall.SIGKILL) })
		lines, started := bufio.NewScanner(stderr), false
		for lines.Scan() {
			if strings.Contains(lines.Text(), `"message":"started"`) {
				started = true
				if serve == add {
					countWords(t, dir)
				}
				must.OK(t, syscall.Kill(-serve.Process.Pid, syscall.SIGTERM))
			}
		}
		_ = serve.Wait() // the shell is killed by the same signal
		stop.Stop()
		if !started {
			t.Errorf("%s did not start", serve.Args[2])
		}
	}
	out, err = shell("run: key").Output()
	if err != nil || !strings.HasPrefix(string(out), "molrun_") {
		t.Errorf("key create: %v, %s", err, out)
	}
}

// countWords logs in as README.md shows, and runs the command from web/docs/algorithms.md
// that uses the added algorithm.
func countWords(t *testing.T, dir string) {
	t.Helper()
	must.OK(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte(must.Read(t, filepath.Join(root, "README.md"))), 0o600))
	const command = "./molrun run word-count --file text=README.md"
	if !strings.Contains(must.Read(t, filepath.Join(root, "web/docs/algorithms.md")), "`"+command+"`") {
		t.Errorf("algorithms.md does not show %s", command)
	}
	shell := exec.Command("sh", "-ec", "./molrun login --local --data molrun-data; "+command)
	shell.Dir = dir
	shell.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	out, err := shell.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"results":{"words":`) {
		t.Errorf("%s: %v: %s", command, err, out)
	}
}

func TestReadmeAlgorithmWrapsAnInstalledProgram(t *testing.T) {
	t.Parallel()
	text := readme(t, "file: word-count.toml")
	if n := strings.Count(text, "\n"); n > 30 {
		t.Errorf("the example has %d lines, want at most 30", n)
	}
	u := startServer(t, serverOptions{algorithms: map[string]string{"word-count.toml": text}}).user("lab", "ann@lab.example")
	u.upload("poem.txt", "one two three\nfour five\n")
	u.submit("count", "word-count", `{"text":"inputs/poem.txt"}`)
	j := u.finished("count")
	if j.Status != "COMPLETED" || j.Metrics.Results["words"] != 5.0 {
		t.Errorf("%s: %+v", j.Status, j)
	}
}

func TestExampleConfigurationListsAllDefaults(t *testing.T) {
	t.Parallel()
	file := filepath.Join(root, "config.example.toml")
	c, err := config.Load(file, false, nil)
	must.OK(t, err)
	must.OK(t, c.Check())
	example, err := os.ReadFile(file)
	must.OK(t, err)
	for _, name := range c.Names() {
		_, setting, _ := strings.Cut("."+name, ".")
		setting = setting[strings.LastIndex(setting, ".")+1:]
		if !regexp.MustCompile(`(?m)^` + setting + ` +?= `).Match(example) {
			t.Errorf("config.example.toml lacks %s", name)
		}
	}
	defaults := config.Default()
	if got, want := c.Text(), defaults.Text(); got != want {
		t.Errorf("config.example.toml says\n%s\nthe defaults are\n%s", got, want)
	}
}
