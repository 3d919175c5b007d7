package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// printTable prints the goals as a Markdown table that also reads well as plain
// text.
func printTable(w io.Writer, all []judged, missing []string) {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| what\t| median\t| lowest to highest\t| goal\t| stretch\t|\t|")
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, j := range all {
		median, spread := "-", "-"
		if n := len(j.values); n > 0 {
			median = amount(j.median(), j.unit)
			spread = number(j.values[0]) + " to " + number(j.values[n-1])
		}
		fmt.Fprintf(t, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n", j.what, median, spread,
			bound(j.want, j.unit, j.atLeast), bound(j.stretch, j.unit, j.atLeast), j.verdict())
	}
	_ = t.Flush() // a write error shows as a truncated table
	if len(missing) > 0 {
		fmt.Fprintln(w, strings.Join(missing, "\n"))
	}
}

func bound(v float64, unit string, atLeast bool) string {
	if atLeast {
		return ">= " + amount(v, unit)
	}
	return "<= " + amount(v, unit)
}

func amount(v float64, unit string) string {
	if unit == "x" {
		return number(v) + "x"
	}
	return number(v) + " " + unit
}

// number formats a value with three significant digits, large ones as integers.
func number(v float64) string {
	if v >= 100 || v <= -100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// printLine writes figures as a line of JSON, unless w is nil.
func printLine(w io.Writer, round int, what string, jobs int, f figures) {
	if w == nil {
		return
	}
	text, err := json.Marshal(map[string]any{"round": round, "what": what, "jobs": jobs, "figures": f})
	if err == nil {
		fmt.Fprintf(w, "%s\n", text)
	}
}
