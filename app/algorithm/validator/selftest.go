package validator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"

	"molrun/app/algorithm/results"
	"molrun/app/base/plaintext"
)

// SelfTest runs the program and says in a sentence why it does not work where jobs run, nil if it does: it ends
// with the exit status 0 or, if it is asked for its version, says that.
func (p *Prober) SelfTest(ctx context.Context, probe Probe) error {
	path, _, err := p.findProgram(probe)
	if err != nil {
		return fmt.Errorf("the program %s is not there", probe.Argv[0])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	said, ended, err := p.runProbe(ctx, path, probe)
	switch {
	case errors.As(err, new(*tooLong)):
		return fmt.Errorf("%q did not end within %s where jobs run", strings.Join(probe.Argv, " "), probeTimeLimit)
	case err != nil:
		return fmt.Errorf("%s does not start where jobs run: %w", probe.Argv[0], err)
	case probe.Pattern != nil && probe.Pattern.Match(said), probe.Pattern == nil && ended == nil:
		return nil
	}
	return fmt.Errorf("%q does not work where jobs run: %s", strings.Join(probe.Argv, " "), why(path, string(said), ended))
}

var (
	noSandbox   = regexp.MustCompile(`(?m)^bwrap: (.*)`)
	library     = regexp.MustCompile(`([^\s:'"]+\.so[.0-9]*): cannot open shared object file`)
	interpreter = regexp.MustCompile(`(?m)^(?:\S*/)?env: [‘'"]?([^’'":]+)[’'"]?: No such file or directory`)
)

// why says what a program lacked, by what it printed and how it ended.
func why(path, said string, ended error) string {
	line := results.LastErrorLine(said)
	if found := library.FindStringSubmatch(said); found != nil {
		return fmt.Sprintf("it lacks the shared library %s: install it, or list its folder under [sandbox] read and name it in LD_LIBRARY_PATH under [env]", found[1])
	}
	if found := interpreter.FindStringSubmatch(said); found != nil {
		return fmt.Sprintf("its first line names the interpreter %s, which no folder of PATH has", found[1])
	}
	if notStarted(path, said, ended) {
		if name := firstLine(path); name != "" && !exists(name) {
			return fmt.Sprintf("its first line names the interpreter %s, which is not there", name)
		}
		return fmt.Sprintf("%s, or the loader that it names, can't be seen in the sandbox: list its folder under [sandbox] read", path)
	}
	if missing := results.MissingPath(line); missing != "" && exists(missing) {
		return missing + " is on this machine, but not visible inside the sandbox: list it in [sandbox] read, or name it with [site.paths] or [[assets]]"
	}
	if found := noSandbox.FindStringSubmatch(said); found != nil {
		line = found[1]
	}
	if line == "" {
		return howEnded(ended)
	}
	return howEnded(ended) + ": " + line
}

// notStarted reports whether what was to start the program, bwrap or a shell that limits its memory, could not.
func notStarted(path, said string, ended error) bool {
	exit, ok := errors.AsType[*exec.ExitError](ended)
	if !ok {
		return false
	}
	byShell := (exit.ExitCode() == 126 || exit.ExitCode() == 127) && strings.Contains(said, path+": ")
	return byShell || strings.Contains(said, "bwrap: execvp "+path)
}

// howEnded names an exit status or a signal.
func howEnded(ended error) string {
	exit, ok := errors.AsType[*exec.ExitError](ended)
	if !ok {
		return "it does not say its version, version_pattern has no match"
	}
	if code := exit.ExitCode(); code > 128 { // as bwrap and shells say it
		return "it was ended by a signal, " + syscall.Signal(code-128).String()
	}
	return fmt.Sprintf("exit status %d", exit.ExitCode())
}

// firstLine returns the interpreter that a script names, "" if it is none.
func firstLine(script string) string {
	f, err := os.Open(script)
	if err != nil {
		return ""
	}
	defer f.Close()
	text := make([]byte, 256)
	n, _ := f.Read(text)
	line, _, _ := strings.Cut(string(text[:n]), "\n")
	line, found := strings.CutPrefix(line, "#!")
	words := strings.Fields(line)
	if !found || len(words) == 0 {
		return ""
	}
	return plaintext.OneLine([]byte(words[0]), 200)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
