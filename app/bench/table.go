package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// printTable prints the goals as Markdown, which also reads as plain text.
func printTable(w io.Writer, all []outcome, missing []string) {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| what\t| median\t| lowest to highest\t| goal\t| stretch\t|\t|")
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, o := range all {
		found, spread := "-", "-"
		if n := len(o.values); n > 0 {
			found = amount(o.median(), o.unit)
			spread = number(o.values[0]) + " to " + number(o.values[n-1])
		}
		fmt.Fprintf(t, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n", o.what, found, spread,
			bound(o.want, o.unit, o.atLeast), bound(o.stretch, o.unit, o.atLeast), o.verdict())
	}
	_ = t.Flush() // an error of w shows as a table that is cut short
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

// number writes three digits, and no more than needed of large values.
func number(v float64) string {
	if v >= 100 || v <= -100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
