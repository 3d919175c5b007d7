// Package results reads what runs produce: the metrics in their output folders and the
// known failures in their logs.
package results

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// metricsFile is the file to which a program writes its own metrics.
const metricsFile = "metrics.json"

// Metrics holds the [metrics] of an algorithm.
type Metrics []Metric

// Metric is one metric of a result and describes how to show it. Without a file it only
// describes a metric of metrics.json.
type Metric struct {
	Name   string `json:"name"`
	Title  string `json:"title,omitempty"`
	Unit   string `json:"unit,omitempty"`
	Better string `json:"better,omitempty"` // higher or lower; "" if neither is better
	Rank   bool   `json:"rank,omitempty"`   // tables of batches are sorted by it

	// Same lists the settings that must be equal for jobs' values to be comparable.
	Same []string `json:"same,omitempty"`

	Digits *int64 `json:"digits,omitempty"` // decimal places to show; nil means all

	ErrorOf string    `json:"errorOf,omitempty"` // metric of which this is the standard error
	Group   string    `json:"group,omitempty"`   // heading in the list of all metrics; "" for the leading main metrics
	Reading []Reading `json:"reading,omitempty"` // interpretations of values, lowest first

	factor float64 // scale factor; 0 means none
	source source  // nil means metrics.json
}

// Reading is the interpretation of a range of a metric's values.
type Reading struct {
	From  *float64 `json:"from,omitempty"` // lower bound; nil for the first reading, which has none
	Words string   `json:"words"`
}

// namePattern matches valid metric names.
var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// ReadMetrics reads [metrics].
func ReadMetrics(r *tomltree.Reader) Metrics {
	t := r.Table(r.Root, "metrics")
	if t == nil {
		return Metrics{}
	}
	all := Metrics{}
	for _, m := range t.Members {
		if !namePattern.MatchString(m.Name) {
			r.Errorf(m.Line, "%q is not a valid name for a metric: use letters, digits and _", m.Name)
		}
		if m.Value.Kind != strictjson.Object {
			continue
		}
		metric := readMetric(r, m.Name, m.Value)
		if before := all.Ranking(); before != nil && metric.Rank {
			r.Errorf(m.Value.Member("rank").Line, "%s already has rank = true: tables are sorted by one metric", before.Name)
		}
		all = append(all, metric)
	}
	checkErrors(r, t, all)
	return all
}

// checkErrors checks that each standard error belongs to one metric and has its unit.
func checkErrors(r *tomltree.Reader, t *tomltree.Node, all Metrics) {
	taken := map[string]string{}
	for _, m := range all {
		if m.ErrorOf == "" {
			continue
		}
		line, of := t.Member(m.Name).Member("error_of").Line, all.Named(m.ErrorOf)
		switch {
		case of == nil || of.ErrorOf != "":
			r.Errorf(line, "error_of must name another metric of this file that is not itself an error, got %q", m.ErrorOf)
		case of.Unit != m.Unit:
			r.Errorf(line, "the error %s must have the unit of %s, %q, got %q", m.Name, of.Name, of.Unit, m.Unit)
		case taken[m.ErrorOf] != "":
			r.Errorf(line, "%s already has the error %s", of.Name, taken[m.ErrorOf])
		}
		taken[m.ErrorOf] = m.Name
	}
}

// Named returns the metric with this name, or nil if there is none.
func (all Metrics) Named(name string) *Metric {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// Ranking returns the metric that tables are sorted by, or nil if there is none.
func (all Metrics) Ranking() *Metric {
	for i := range all {
		if all[i].Rank {
			return &all[i]
		}
	}
	return nil
}

// Comparable reports whether values are comparable between jobs that differ in the given
// settings.
func (m *Metric) Comparable(varying []string) bool {
	return !slices.ContainsFunc(m.Same, func(name string) bool { return slices.Contains(varying, name) })
}

func readMetric(r *tomltree.Reader, name string, t *tomltree.Node) Metric {
	m := Metric{
		Name: name, Title: r.Line(t, "title"), Unit: r.Line(t, "unit"),
		Better: r.Text(t, "better"), Rank: r.Flag(t, "rank"),
	}
	if t.Member("same") != nil {
		m.Same = r.Texts(t, "same")
	}
	if n := t.Member("digits"); n != nil {
		digits := r.Within(n, "digits", 0, 15)
		m.Digits = &digits
	}
	m.ErrorOf, m.Group, m.Reading = r.Text(t, "error_of"), r.Line(t, "group"), readReading(r, t)
	m.source = readSource(r, name, t)
	if n := t.Member("factor"); n != nil {
		m.factor, _ = strconv.ParseFloat(n.Text, 64)
	}
	if m.source == nil && len(t.Members) == 0 {
		r.Errorf(t.Line, "the metric %q is empty: give file and pattern, or a title, unit or better for a metric of %s", name, metricsFile)
	}
	return m
}

// readReading reads the interpretations of values. Each lower bound must exceed the
// previous one.
func readReading(r *tomltree.Reader, t *tomltree.Node) (all []Reading) {
	for i, n := range r.Tables(t, "reading") {
		one := Reading{Words: r.Line(n, "words")}
		if from := n.Member("from"); from != nil {
			if f, err := strconv.ParseFloat(from.Text, 64); err == nil {
				one.From = &f
			}
		}
		if i > 0 && (one.From == nil || all[i-1].From != nil && *one.From <= *all[i-1].From) {
			r.Errorf(n.Line, "reading must list ranges in ascending order: each but the first needs a from above the previous one")
		}
		all = append(all, one)
	}
	return all
}

// IsPath reports whether p is a plain relative file path.
func IsPath(p string) bool {
	return fs.ValidPath(p) && p != "." && filepath.IsLocal(p) && !strings.ContainsRune(p, 0)
}
