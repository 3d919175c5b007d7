package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"molrun/app/task/process"
	"molrun/app/test/must"
)

// start runs a program in a sandbox until everything inside has ended.
func start(t testing.TB, c Config, p Program) syscall.WaitStatus {
	t.Helper()
	c.Fork = syscall.ForkExec
	c.Reaped = func() bool { return true } // what fails to start ends the test
	s, err := Start(c, p, func(process.ID, string) error { return nil })
	must.OK(t, err)
	var status syscall.WaitStatus
	for {
		if _, err = syscall.Wait4(s.PID, &status, 0, nil); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	status = s.Status(status)
	must.OK(t, errors.Join(err, s.Close()))
	return status
}

// BenchmarkStart starts and ends a sandbox whose program does nothing, with a copy of /etc and without.
func BenchmarkStart(b *testing.B) {
	bwrap, err := exec.LookPath("bwrap")
	if err == nil {
		_, err = Probe(b.Context(), bwrap)
	}
	if err != nil {
		b.Skipf("skipped: bubblewrap can't be used here: %v", err)
	}
	copies := NewCopies(b.TempDir(), nil)
	for _, copied := range []bool{true, false} {
		name := map[bool]string{true: "copied", false: "entries"}[copied]
		b.Run(name, func(b *testing.B) {
			c := Config{Bubblewrap: bwrap, Token: "bench", Work: b.TempDir(), Stdout: os.Stdout, Stderr: os.Stderr}
			var before, after syscall.Rusage
			b.ReportMetric(0, "cpu-ms/op")
			must.OK(b, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &before))
			for b.Loop() {
				var keep *os.File
				if copied {
					c.Etc, keep = copies.Use()
				}
				if status := start(b, c, Program{Path: "/bin/true", Argv: []string{"true"}, Dir: c.Work}); status != 0 {
					b.Fatalf("the program ended with %v", status)
				}
				keep.Close()
			}
			must.OK(b, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &after))
			used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
			b.ReportMetric(float64(used)/1e6/float64(b.N), "cpu-ms/op")
		})
	}
}
