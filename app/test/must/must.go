// Package must provides helpers that end a test that cannot continue, or skip it if the
// machine does not meet its requirements.
package must

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Patience is the timeout for every wait in a test, so that a busy machine does not fail
// a test of something that takes milliseconds on an idle one. A cluster on a busy machine
// takes minutes.
const Patience = 5 * time.Minute

// OK ends the test if there is an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Error2 returns the error of a call with two results.
func Error2[A any](_ A, err error) error { return err }

// Error3 returns the error of a call with three results.
func Error3[A, B any](_ A, _ B, err error) error { return err }

// Become waits until is returns true.
func Become(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}

// Equal fails the test and prints a diff if two values differ.
func Equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Contain fails the test unless text contains part.
func Contain(t testing.TB, what, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s: %s\nhas no %q", what, text, part)
	}
}

// Fail fails the test unless err is an error whose message contains part.
func Fail(t testing.TB, what string, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%s: error %v, want %q", what, err, part)
	}
}

// Read returns the content of a file as a string.
func Read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	OK(t, err)
	return string(text)
}

// Write writes a file and, if necessary, creates its directory.
func Write(t testing.TB, path, text string) {
	t.Helper()
	OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
	OK(t, os.WriteFile(path, []byte(text), 0o600))
}

// Program writes a script that can be started at once. A process forked while the file is
// open for writing would inherit the descriptor, and until that process executes its own
// program, the kernel refuses to start the script ("text file busy").
func Program(t testing.TB, path, script string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	OK(t, os.WriteFile(path, []byte(script), 0o700))
}
