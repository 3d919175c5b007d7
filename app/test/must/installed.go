package must

import (
	"os"
	"os/exec"
	"testing"
)

// Skip skips a test for a reason, or fails it if TEST_REQUIRE_ALL is set, as in CI.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("TEST_REQUIRE_ALL") != "" {
		t.Fatalf(format+", and TEST_REQUIRE_ALL is set", args...)
	}
	t.Skipf("skipped: "+format, args...)
}

// Installed returns the path of a program, or skips the test if it is not installed.
// .ci/programs lists the programs that tests use.
func Installed(t testing.TB, name string) (path string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Skip(t, "%s is not installed", name)
	}
	return path
}

// InstalledFile skips the test if the file path does not exist. of is the package that
// provides it.
func InstalledFile(t testing.TB, path, of string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		Skip(t, "the package %s is not installed", of)
	}
}
