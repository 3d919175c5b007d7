package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// molrun is the binary that the tests measure.
var molrun string

// TestMain builds molrun once for all tests. With a command as its first argument, the
// test binary runs as the program itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(run(os.Args[1:]))
	}
	code := 1
	err := withMolrun(context.Background(), options{}, func(o options) error {
		molrun = o.Molrun
		code = m.Run()
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// bench runs the program and returns its output and exit code.
func bench(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// shortRun returns the arguments of a run that takes seconds. It is too short for
// meaningful values, and tests only that everything is measured.
func shortRun(dir string, more ...string) []string {
	return append([]string{
		"run", "--molrun", molrun, "--jobs", "3000", "--rounds", "1", "--for", "100ms", "--size", "4MiB", "--largest", "64MiB", "--dir", dir,
	}, more...)
}

func TestRunMeasuresEveryGoalAndRemovesItsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, errs, code := bench(t, shortRun(dir)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	_, noPeer := exec.LookPath("/usr/sbin/nginx")
	if noPeer != nil && !strings.Contains(out, "skipped: ") {
		t.Errorf("the output does not say that nginx is missing:\n%s", out)
	}
	rows := 0
	for line := range strings.Lines(out) {
		cells := strings.Split(line, "|")
		if len(cells) != 8 || strings.HasPrefix(cells[1], "---") || strings.Contains(cells[1], "what") {
			continue
		}
		rows++
		lacksPeer := noPeer != nil && strings.Contains(cells[1], "nginx")
		if strings.TrimSpace(cells[2]) == "-" && !lacksPeer {
			t.Errorf("not measured: %s", line)
		}
	}
	if rows < 25 {
		t.Errorf("%d goals, want at least 25:\n%s", rows, out)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("files left: %q, %v", left, err)
	}
}

func TestRunPrintsEachMeasurementAsALineOfJSON(t *testing.T) {
	t.Parallel()
	out, errs, code := bench(t, shortRun(t.TempDir(), "--json", "sync", "idle")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var names []string
	for line := range strings.Lines(out) {
		var run struct {
			What    string
			Figures map[string]float64
		}
		if err := json.Unmarshal([]byte(line), &run); err != nil || len(run.Figures) == 0 {
			t.Errorf("%v in %s", err, line)
		}
		names = append(names, run.What)
	}
	must.Equal(t, "measurements", strings.Join(names, " "), "seed sync idle")
}

func TestInvalidSizeIsAUsageError(t *testing.T) {
	t.Parallel()
	if out, errs, code := bench(t, "run", "--size", "much"); code != exitUsage {
		t.Errorf("exit code %d, want %d: %s%s", code, exitUsage, out, errs)
	}
}

func TestGrowPrintsALineForEachNumberOfJobsAndDrawsThem(t *testing.T) {
	t.Parallel()
	plot := filepath.Join(t.TempDir(), "growth.svg")
	out, errs, code := bench(t, "grow", "--molrun", molrun, "--jobs", "300,600", "--for", "50ms", "--dir", t.TempDir(), "--svg", plot)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	svg, err := os.ReadFile(plot)
	must.OK(t, err)
	must.OK(t, xml.Unmarshal(svg, new(struct{})))
	if lines := strings.Count(out, "\n"); lines != 5 || !strings.Contains(string(svg), "<polyline") || regexp.MustCompile(`NaN|Inf|%!`).Match(svg) {
		t.Errorf("%d lines, want 5; drawing %s", lines, svg)
	}
}

func TestRowsPrintsALineForEachRound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, errs, code := bench(t, "rows", "--molrun", molrun, "--rows", "6", "--peer", "3", "--rounds", "2", "--seconds", "0.02", "--dir", dir)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var lines int
	for line := range strings.Lines(out) {
		lines++
		var run struct{ Figures figures }
		must.OK(t, json.Unmarshal([]byte(line), &run))
		for _, name := range []string{"rate", "ratio", "service.cpu", "memory.submission", "xargs.before", "xargs.after"} {
			if !(run.Figures[name] > 0) {
				t.Errorf("%s is %g in %s", name, run.Figures[name], line)
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); lines != 2 || err != nil || len(left) > 0 {
		t.Errorf("%d lines, want 2; files left: %q, %v", lines, left, err)
	}
	if out, errs, code := bench(t, "rows", "--rows", "0"); code != exitUsage {
		t.Errorf("exit code %d without rows, want %d: %s%s", code, exitUsage, out, errs)
	}
}
