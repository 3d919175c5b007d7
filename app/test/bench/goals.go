package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// figures are measured values by name.
type figures map[string]float64

// goal is a bound on a measured value, or on the ratio of two.
type goal struct {
	what          string
	unit          string // "x" for a ratio
	want, stretch float64
	atLeast       bool                  // the goal is a lower bound
	of            func(figures) float64 // NaN if not measured
}

// judged is a goal with its values from all rounds.
type judged struct {
	goal
	values []float64 // sorted
}

func (j judged) median() float64 {
	if len(j.values) == 0 {
		return math.NaN()
	}
	return j.values[len(j.values)/2]
}

// verdict states in one word whether the median meets the goal.
func (j judged) verdict() string {
	m := j.median()
	meets := func(limit float64) bool { return m <= limit && !j.atLeast || m >= limit && j.atLeast }
	switch {
	case math.IsNaN(m):
		return "-"
	case meets(j.stretch):
		return "stretch"
	case meets(j.want):
		return "met"
	}
	return "missed"
}

// judge combines each goal with its values from all rounds.
func judge(rounds []figures) []judged {
	var all []judged
	for _, g := range goalTable(slowDisk(rounds)) {
		j := judged{goal: g}
		for _, f := range rounds {
			if v := g.of(f); !math.IsNaN(v) && !math.IsInf(v, 0) {
				j.values = append(j.values, v)
			}
		}
		slices.Sort(j.values)
		all = append(all, j)
	}
	return all
}

// slowDisk reports whether a sync takes more than a millisecond in most rounds. The
// bottleneck is then the disk rather than the CPU, so submissions must come closer to the
// limit.
func slowDisk(rounds []figures) bool {
	slow := 0
	for _, f := range rounds {
		if f["sync.p50"] > 1 {
			slow++
		}
	}
	return 2*slow > len(rounds)
}

// value returns a function that looks up a measured value.
func value(name string) func(figures) float64 {
	return func(f figures) float64 {
		if v, measured := f[name]; measured {
			return v
		}
		return math.NaN()
	}
}

// ratio returns a function that divides one measured value by another.
func ratio(over, under string) func(figures) float64 {
	return func(f figures) float64 { return value(over)(f) / value(under)(f) }
}

func goalTable(slowDisk bool) []goal {
	submit, stretch, disk := 0.35, 0.5, "quiet disk"
	if slowDisk {
		submit, stretch, disk = 0.7, 0.85, "a sync takes over 1 ms"
	}
	return []goal{
		{"durable submissions, 64 clients / bare group commits, " + disk, "x", submit, stretch, true, ratio("submit.rate", "commit.rate")},
		{"one client's submission p50 / one bare commit", "x", 1.6, 1.3, false, ratio("submit1.p50", "commit1.p50")},
		{"server CPU per durable submission", "us", 130, 90, false, value("submit.cpu")},
		{"the same / CPU per bare commit of one record", "x", 130. / 33, 90. / 33, false, ratio("submit.cpu", "commit.cpu")},
		{"submission p99 / p50, 64 clients", "x", 4, 2.5, false, ratio("submit.p99", "submit.p50")},
		{"durable submissions while 1,000 clients listen to their own jobs / while none does", "x", .9, .97, true, ratio("listeners.own.rate", "listeners.own.without")},
		{"the same, while they listen to everybody's", "x", .9, .97, true, ratio("listeners.all.rate", "listeners.all.without")},
		{"1,000 idle listeners: anonymous memory", "MiB", 30, 20, false, value("listeners.memory")},
		{"1,000 idle listeners: CPU", "ms/s", 10, 2, false, value("listeners.cpu")},
		{"first page of 50, all jobs / 1,000", "x", 1.3, 1.15, false, ratio("list.large.first", "list.small.first")},
		{"random page of 50, all jobs / 1,000", "x", 1.5, 1.25, false, ratio("list.large.random", "list.small.random")},
		{"most expensive combination of filters, many hits / first page", "x", 1.3, 1, false, value("filter.many")},
		{"most expensive combination of filters, few hits / first page", "x", 1.3, 1, false, value("filter.few")},
		{"most expensive combination of filters, no hits / first page", "x", 1.3, 1, false, value("filter.none")},
		{"server CPU per page of 50", "us", 250, 120, false, value("list.large.cpu")},
		{"page p99 while 64 clients submit / idle", "x", 4, 2, false, ratio("crowd.page.p99", "crowd.page.idle.p99")},
		{"the same of an empty answer", "x", 4, 2, false, ratio("crowd.empty.p99", "crowd.empty.idle.p99")},
		{"page p99 while 600 submissions are checked by the built-in engine / idle", "x", 2, 1.5, false, ratio("engine.page.p99", "engine.page.idle.p99")},
		{"the same of an empty answer", "x", 2, 1.5, false, ratio("engine.empty.p99", "engine.empty.idle.p99")},
		{"page p99 while 600 submissions are checked by a program / idle", "x", 2, 1.5, false, ratio("program.page.p99", "program.page.idle.p99")},
		{"the same of an empty answer", "x", 2, 1.5, false, ratio("program.empty.p99", "program.empty.idle.p99")},
		{"download, 1 client / nginx sendfile", "x", .85, .97, true, ratio("download1.molrun", "download1.nginx")},
		{"download, 4 clients / nginx sendfile", "x", 1.05, 1.25, true, ratio("download4.molrun", "download4.nginx")},
		{"CPU per GiB downloaded, 4 clients / nginx", "x", 1.2, 1, false, ratio("download4.molrun.cpu", "download4.nginx.cpu")},
		{"ranges of 1 MiB, 8 clients / nginx", "x", 1.1, 1.3, true, ratio("ranges.molrun", "ranges.nginx")},
		{"the same / Go's file server without links, records and log", "x", .9, 1, true, ratio("ranges.molrun", "ranges.bare")},
		{"durable upload with SHA-256 / nginx DAV", "x", 1, 1.5, true, ratio("upload.molrun", "upload.nginx")},
		{"CPU of the digest", "s/GiB", .85, .75, false, value("digest.cpu")},
		{"the same / OpenSSL", "x", 1.1, 1, false, ratio("digest.cpu", "digest.openssl")},
		{"archive of 1,000 files: first byte", "ms", 20, 5, false, value("archive.many.first")},
		{"archive of one very large file: first byte", "ms", 20, 5, false, value("archive.hole.first")},
		{"archive of 1,000 files / one plain file", "x", .8, .95, true, ratio("archive.many", "plain.many")},
		{"archive of one very large file / the plain file", "x", .8, .95, true, ratio("archive.hole", "plain.hole")},
		{"extra disk of archives", "bytes", 0, 0, false, value("archive.disk")},
		{"peak anonymous memory, 8 clients moving files", "MiB", 64, 32, false, value("memory")},
		{"trivial jobs / bare starts of processes", "x", .25, .4, true, ratio("jobs.rate", "starts.rate")},
		{"submission to process start p50, beyond 2 syncs", "ms", 15, 5, false, func(f figures) float64 {
			return value("start.p50")(f) - 2*value("start.sync")(f)
		}},
		{"cold start with all jobs: first answer", "ms", 300, 100, false, value("cold.first")},
		{"cold start with all jobs: anonymous memory", "MiB", 80, 40, false, value("cold.memory")},
		{"database per job", "KiB", 1.6, 1.2, false, func(f figures) float64 { return value("database.bytes")(f) / 1024 }},
	}
}

// printTable prints the goals as a Markdown table that is also readable as plain text.
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

// number formats a value with three significant digits, or as an integer if it is large.
func number(v float64) string {
	if v >= 100 || v <= -100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// printLine writes measured values as a line of JSON, unless w is nil.
func printLine(w io.Writer, round int, what string, jobs int, f figures) {
	if w == nil {
		return
	}
	text, err := json.Marshal(map[string]any{"round": round, "what": what, "jobs": jobs, "figures": f})
	if err == nil {
		fmt.Fprintf(w, "%s\n", text)
	}
}
