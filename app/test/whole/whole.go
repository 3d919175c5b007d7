// Package whole has what tests of the whole program share: it builds the program, and keeps
// what programs and services write.
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

// Build builds molrun in a folder and returns its path: statically linked as in releases,
// or with the race detector if the tests have it.
func Build(folder string) (path string, err error) {
	path = filepath.Join(folder, "molrun")
	args := []string{"build", "-o", path, "molrun"}
	env := append(os.Environ(), "CGO_ENABLED=0")
	if race() {
		args, env = slices.Insert(args, 1, "-race"), append(os.Environ(), "CGO_ENABLED=1")
	}
	build := exec.Command("go", args...)
	build.Env = env
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build molrun: %w\n%s", err, out)
	}
	return path, nil
}

func race() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// WaitInParallel runs twice as many tests at once as there are CPUs, since most of
// them wait. The command line overrides it.
func WaitInParallel() {
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", fmt.Sprint(2*runtime.GOMAXPROCS(0))) // cannot fail for a number
	}
}

// Log keeps what a program or a service writes, to be read meanwhile.
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

// AddLine adds a line that comes without its end.
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

// Tail returns the last lines.
func (l *Log) Tail() string {
	lines := strings.Split(l.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}
