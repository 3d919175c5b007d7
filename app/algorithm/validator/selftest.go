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

// SelfTest runs the program where jobs run. It returns nil if the program works: if it
// prints a version that matches the pattern or, without a pattern, exits with status 0.
// Otherwise it returns an explanation.
func (p *Prober) SelfTest(ctx context.Context, probe Probe) error {
	path, _, err := p.findProgram(probe)
	if err != nil {
		return fmt.Errorf("the program %s does not exist", probe.Argv[0])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	said, ended, err := p.runProbe(ctx, path, probe)
	switch {
	case errors.As(err, new(*tooLong)):
		return fmt.Errorf("%q did not exit within %s where jobs run", strings.Join(probe.Argv, " "), probeTimeLimit)
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

// why explains a failed self-test, based on the program's output and exit status.
func why(path, said string, ended error) string {
	line := results.LastErrorLine(said)
	if found := library.FindStringSubmatch(said); found != nil {
		return fmt.Sprintf("it lacks the shared library %s: install it, or list its folder under [sandbox] read and name it in LD_LIBRARY_PATH under [env]", found[1])
	}
	if found := interpreter.FindStringSubmatch(said); found != nil {
		return fmt.Sprintf("its first line names the interpreter %s, which is not on PATH", found[1])
	}
	if notStarted(path, said, ended) {
		if name := firstLine(path); name != "" && !exists(name) {
			return fmt.Sprintf("its first line names the interpreter %s, which does not exist", name)
		}
		return fmt.Sprintf("%s, or its dynamic loader, is not visible in the sandbox: list its folder under [sandbox] read", path)
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

// notStarted reports whether bwrap, or the shell that limits memory, could not start the
// program.
func notStarted(path, said string, ended error) bool {
	exit, ok := errors.AsType[*exec.ExitError](ended)
	if !ok {
		return false
	}
	byShell := (exit.ExitCode() == 126 || exit.ExitCode() == 127) && strings.Contains(said, path+": ")
	return byShell || strings.Contains(said, "bwrap: execvp "+path)
}

// howEnded describes an exit status or signal.
func howEnded(ended error) string {
	exit, ok := errors.AsType[*exec.ExitError](ended)
	if !ok {
		return "it does not report its version: version_pattern does not match"
	}
	if code := exit.ExitCode(); code > 128 { // convention of bwrap and shells
		return "it was killed by signal " + syscall.Signal(code-128).String()
	}
	return fmt.Sprintf("exit status %d", exit.ExitCode())
}

// firstLine returns the interpreter that a script names in its first line, or "" if there
// is none.
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
