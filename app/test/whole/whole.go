// Package whole has what tests of the whole program share.
package whole

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
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
