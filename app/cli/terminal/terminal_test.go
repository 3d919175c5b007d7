package terminal_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"molrun/app/cli/terminal"
	"molrun/app/test/must"
)

func TestTablesFit(t *testing.T) {
	var out bytes.Buffer
	w := &terminal.Terminal{Out: &out, Width: 30}
	columns := []terminal.Column{{Title: "NAME", MinWidth: 6}, {Title: "N", Right: true}, {Title: "NOTE", MinWidth: 5}}
	rows := [][]string{{"a-very-long-name-of-a-job", "7", "short"}, {"b\x1b[2J", "12345", "a long note\nof two lines"}, {"分子", "1", ""}}
	must.OK(t, w.Table(columns, rows))
	const want = "NAME            N  NOTE\n" +
		"a-very-lo…      7  short\n" +
		"b[2J        12345  a long not…\n" +
		"分子            1\n"
	must.Equal(t, "table", out.String(), want)
	if w.Fits(columns, rows) != true || w.Fits([]terminal.Column{{Title: "X"}}, [][]string{{strings.Repeat("x", 31)}}) {
		t.Error("Fits disagrees")
	}
}

func TestStatesDifferWithoutColours(t *testing.T) {
	seen := map[string]bool{}
	w := &terminal.Terminal{Colour: true}
	for _, status := range []string{"QUEUED", "RUNNING", "COMPLETED", "FAILED", "\x1b[2JNEW"} {
		text := terminal.State(status)
		if seen[text[:3]] || strings.Contains(text, "\x1b") {
			t.Errorf("%s is shown as %q", status, text)
		}
		seen[text[:3]] = true
		must.Contain(t, status+" is painted", w.Paint(status), text)
	}
}

func TestAmounts(t *testing.T) {
	for d, want := range map[time.Duration]string{-1: "0s", 0: "0.0s", 1234 * time.Millisecond: "1.2s", 59600 * time.Millisecond: "1m00s", 61 * time.Second: "1m01s", 2*time.Hour + 5*time.Minute: "2h05m", 49 * time.Hour: "2d01h"} {
		must.Equal(t, fmt.Sprintf("%v", d), terminal.Duration(d), want)
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 9949: "9.9 kB", 9951: "10 kB", 999_600: "1.0 MB", 4_200_000_000: "4.2 GB", math.MaxInt64: "9.2 EB"} {
		must.Equal(t, fmt.Sprintf("%d", n), terminal.Size(n), want)
	}
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.Local)
	for ago, want := range map[time.Duration]string{0: "now", 90 * time.Second: "1m ago", 125 * time.Minute: "2h05m ago", 50 * time.Hour: "Nov 21 10:00", 400 * 24 * time.Hour: "2025-10-19"} {
		must.Equal(t, fmt.Sprintf("%v ago", ago), terminal.Ago(now.Add(-ago), now), want)
	}
}

func TestPlotsShowTheirRange(t *testing.T) {
	x, y := make([]float64, 100), make([]float64, 100)
	for i := range x {
		x[i], y[i] = float64(i), float64(i)
	}
	y[50] = math.NaN()
	text := terminal.Plot(terminal.Curve{Name: "rise", X: x, Y: y}, "time (ps)", "(nm)", 40, 5)
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) != 8 || !strings.HasPrefix(lines[1], "99│") || !strings.HasPrefix(lines[5], " 0│") || !strings.HasSuffix(lines[7], "99") {
		t.Errorf("plot\n%s", text)
	}
	first, last := []rune(lines[1]), []rune(lines[5])
	if len(first) < 38 || first[len(first)-1] == ' ' || last[3] == ' ' {
		t.Errorf("the line does not rise from corner to corner:\n%s", text)
	}
	for _, y := range [][]float64{nil, {math.NaN()}, {math.Inf(1)}} {
		must.Contain(t, fmt.Sprintf("%v is drawn", y), terminal.Plot(terminal.Curve{Name: "none", X: []float64{1}, Y: y}, "", "", 40, 5), "no values to plot")
	}
	terminal.Plot(terminal.Curve{X: []float64{-math.MaxFloat64, math.MaxFloat64}, Y: []float64{3, 3}}, "", "", 40, 5) // must not panic
}

func TestShortTransfersPrintNothing(t *testing.T) {
	var errs bytes.Buffer
	w := &terminal.Terminal{Err: &errs}
	bars := w.NewBars()
	tr := bars.Bytes("a", 100)
	tr.At(50)
	tr.End()
	bars.Close()
	must.Equal(t, "printed", errs.String(), "")
	line := bars.Job("j")
	line.At(0, "queued", "place 2")
	line.At(0.5, "queued", "place 1")
	line.At(0.5, "running", "")
	must.Equal(t, "printed", errs.String(), "j: queued, place 2\nj: running\n")
}
