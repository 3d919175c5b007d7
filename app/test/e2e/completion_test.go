package e2e

import (
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"molrun/app/test/must"
	"molrun/app/test/whole"
)

// bashCompletion is the file with the functions that completion in bash needs.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

// Real shells complete commands, flags, job names, algorithm types and settings with the
// scripts that molrun generates.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	p, s := scene(t)
	p.ok("submit", "sequence-properties", "-n", "hstz", "--set", "sequence=DSHAKRHHGY", "--wait")
	if _, err := p.shell("true"); err != nil { // creates the directory that is on PATH
		t.Fatal(err)
	}
	for name, complete := range map[string]func(p *person, line string) string{"bash": inBash, "zsh": inZsh, "fish": inFish} {
		t.Run(name, func(t *testing.T) {
			must.Installed(t, name)
			if name == "bash" {
				must.InstalledFile(t, bashCompletion, "bash-completion")
			}
			in := &person{t: t, s: s, home: p.home, dir: p.dir, env: append(p.env, "PATH="+filepath.Join(p.home, "bin")+":/usr/bin:/bin")}
			for line, want := range map[string][]string{
				"molrun algor":                       {"algorithm", "algorithms"},
				"molrun status hst":                  {"hst5", "hstz"},
				"molrun submit sequence-prop":        {"sequence-properties"},
				"molrun jobs --st":                   {"--status"},
				"molrun submit cg-idp --set temper":  {"temperature_K="},
				"molrun results scr":                 {"screen"},
				"molrun algorithm show structure-su": {"structure-summary"},
			} {
				if shown := complete(in, line); !containsAll(shown, want) {
					t.Errorf("%q is completed by %q, want %q", line, shown, want)
				}
			}
		})
	}
}

func containsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// script runs a shell with the given arguments, one of which is a script, and returns its
// output.
func (p *person) script(shell string, args ...string) string {
	p.t.Helper()
	c := exec.Command(shell, args...)
	c.Dir, c.Env = p.dir, p.command().Env
	out, err := c.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v: %s", shell, err, out)
	}
	return string(out)
}

// inBash completes a line by calling the function that bash calls on Tab.
func inBash(p *person, line string) string {
	return p.script("bash", "-c", `
source `+bashCompletion+`
source <(molrun completion bash)
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_KEY=9
read -ra COMP_WORDS <<<"$1"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
__start_molrun molrun "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"`, "bash", line)
}

func inFish(p *person, line string) string {
	return p.script("fish", "--no-config", "-c", `molrun completion fish | source; complete -C $argv[1]`, line)
}

// inZsh completes a line by pressing Tab on a terminal, which is the only way in zsh.
func inZsh(p *person, line string) string {
	ours, theirs := terminalPair(p.t)
	c := exec.Command("zsh", "-f", "-i")
	c.Dir, c.Env = p.dir, append(p.command().Env, "PS1=ready> ")
	c.Stdin, c.Stdout, c.Stderr = theirs, theirs, theirs
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.OK(p.t, c.Start())
	must.OK(p.t, theirs.Close())
	var shown whole.Log
	ended := make(chan struct{})
	go func() { // ends when the shell exits
		defer close(ended)
		_, _ = io.Copy(&shown, ours) // ends with an error when the last writer closes
	}()
	press := func(keys, until string) string {
		from := len(shown.String())
		_, err := ours.WriteString(keys)
		must.OK(p.t, err)
		p.s.eventually("zsh shows "+until, func() bool { return strings.Contains(shown.String()[from:], until) })
		return shown.String()[from:]
	}
	press("autoload -Uz compinit; compinit -u; source <(molrun completion zsh); print -r - set''up\n", "setup")
	// Tab shows the completions. Ctrl-A then inserts echo at the start, so that the
	// completed line is printed.
	got := press(line+"\t\t\x01echo of \x05 end''ed\n", "ended")
	_, err := ours.WriteString("exit\n")
	must.OK(p.t, err)
	_ = c.Wait() // its exit code does not matter
	<-ended
	return got
}
