// Package whole contains helpers for tests of the whole program: it builds the program,
// collects the output of programs and services, and finds free addresses for them.
package whole

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// Main builds the program, runs the tests of a package with its path, and returns their
// exit code. If given is not empty, it is the path of a program to use instead.
func Main(given string, tests func(program string) (code int)) (code int) {
	waitInParallel()
	if given != "" {
		return tests(given)
	}
	dir, err := os.MkdirTemp("", "molrun-test-")
	if err == nil {
		defer os.RemoveAll(dir)
		given, err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return tests(given)
}

// build builds molrun in a directory and returns its path. The program is statically
// linked like releases, or built with the race detector if the tests are.
func build(folder string) (path string, err error) {
	path = filepath.Join(folder, "molrun")
	args := []string{"build", "-o", path, "molrun"}
	env := append(os.Environ(), "CGO_ENABLED=0")
	if race() {
		args, env = slices.Insert(args, 1, "-race"), append(os.Environ(), "CGO_ENABLED=1")
	}
	c := exec.Command("go", args...)
	c.Env = env
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build molrun: %w\n%s", err, out)
	}
	return path, nil
}

func race() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// waitInParallel sets the number of parallel tests to twice the number of CPUs, since
// most tests wait. A flag on the command line overrides it.
func waitInParallel() {
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", fmt.Sprint(2*runtime.GOMAXPROCS(0))) // cannot fail for a number
	}
}

// Log collects the output of a program or service. It can be read while the program is
// running.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// AddLine adds a line, given without the newline.
func (l *Log) AddLine(line string) { _, _ = l.Write([]byte(line + "\n")) } // never fails

// Clear empties the log.
func (l *Log) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Tail returns the last 60 lines.
func (l *Log) Tail() string {
	lines := strings.Split(l.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}
