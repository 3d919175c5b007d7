package faults

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

var (
	program   = flag.String("binary", "", "molrun to test; empty builds this source")
	kills     = flag.Int("kills", 5, "how often the service is killed under load")
	positions = flag.Int("positions", 1, "how many calls of each kind are made to fail, one a run")
	machine   = flag.String("machine", "", "directory with kernel and initrd; empty leaves the power cuts out")
	cuts      = flag.Int("cuts", 25, "how often the machine loses power")
	rounds    = flag.Int("rounds", 2, "how often something happens to a cluster under load")
	only      = flag.String("only", "", "kind of fault, by a part of its name, that alone happens to a cluster")
	rows      = flag.Int("rows", 60, "of the batch that a cluster runs")
	arraySize = flag.Int("array-size", 1001, "MaxArraySize of that cluster")
	seed      = flag.Uint64("seed", 0, "of the random choices; 0 takes one of the clock")
)

// patience bounds every wait; nothing is expected to take as long.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run builds the program once for all tests: static, as it is installed.
func run(m *testing.M) int {
	flag.Parse()
	if yes, err := injected(); yes {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	waitsInParallel()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	if *program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "molrun-faults-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	*program = filepath.Join(dir, "molrun")
	build := exec.Command("go", "build", "-o", *program, "molrun")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build molrun: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// waitsInParallel lets twice as many tests run at once as there are CPUs, since
// most of them wait. The command line overrides it.
func waitsInParallel() {
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", fmt.Sprint(2*runtime.GOMAXPROCS(0))) // a number
	}
}

// lacks skips a test that wants something which this machine does not have,
// or fails it where nothing may be skipped.
func lacks(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("TEST_REQUIRE_ALL") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
