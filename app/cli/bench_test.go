package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shortBench is a run of seconds: it shows that everything is measured, and
// says nothing about the figures.
var shortBench = []string{"bench", "run", "--jobs", "3000", "--rounds", "1", "--for", "100ms", "--size", "4MiB", "--largest", "64MiB"}

func TestBenchMeasuresEveryGoalAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := unstarted(t, "")
	out, errs, code := s.run(append(shortBench, "--dir", dir)...)
	if code != 0 {
		t.Fatalf("it ended with %d: %s", code, errs)
	}
	_, noPeer := exec.LookPath("/usr/sbin/nginx")
	if noPeer != nil && !strings.Contains(out, "skipped: ") {
		t.Errorf("it does not say that there is no nginx:\n%s", out)
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
		t.Errorf("it leaves %q, %v", left, err)
	}
}

func TestBenchPrintsEachRunAsALineOfJSON(t *testing.T) {
	t.Parallel()
	s := unstarted(t, "")
	out, errs, code := s.run(append(shortBench, "--dir", t.TempDir(), "--json", "sync", "idle")...)
	if code != 0 {
		t.Fatalf("it ended with %d: %s", code, errs)
	}
	var runs []string
	for line := range strings.Lines(out) {
		var run struct {
			What    string
			Figures map[string]float64
		}
		if err := json.Unmarshal([]byte(line), &run); err != nil || len(run.Figures) == 0 {
			t.Errorf("%v in %s", err, line)
		}
		runs = append(runs, run.What)
	}
	if got := strings.Join(runs, " "); got != "seed sync idle" {
		t.Errorf("runs %q, want seed, sync and idle", got)
	}
	if out, errs, code := s.run("bench", "run", "--size", "much"); code != exitUsage {
		t.Errorf("an odd size: ended with %d: %s%s", code, out, errs)
	}
}

func TestBenchDrawsWhatGrows(t *testing.T) {
	t.Parallel()
	s := unstarted(t, "")
	plot := filepath.Join(t.TempDir(), "growth.svg")
	out, errs, code := s.run("bench", "grow", "--jobs", "300,600", "--for", "50ms", "--dir", t.TempDir(), "--svg", plot)
	if code != 0 {
		t.Fatalf("it ended with %d: %s", code, errs)
	}
	svg, err := os.ReadFile(plot)
	if lines := strings.Count(out, "\n"); err != nil || lines != 2 || !strings.Contains(string(svg), "<polyline") {
		t.Errorf("%d lines, want 2; drawing %.100s, %v", lines, svg, err)
	}
}
