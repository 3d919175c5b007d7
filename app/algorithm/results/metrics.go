// Package results reads what runs leave: the figures in their output folders and
// the known failures in their logs.
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

// metricsFile is the file to which a program writes its own figures.
const metricsFile = "metrics.json"

// Metrics are the [metrics] of an algorithm.
type Metrics []Metric

// Metric is one figure of a result and says how to show it. Without a file it
// only describes a figure of metrics.json.
type Metric struct {
	Name   string `json:"name"`
	Title  string `json:"title,omitempty"`
	Unit   string `json:"unit,omitempty"`
	Better string `json:"better,omitempty"` // higher, lower; "": none is the best
	Rank   bool   `json:"rank,omitempty"`   // the tables of batches are sorted by it

	// Same are the settings in which jobs have to agree so that their values compare.
	Same []string `json:"same,omitempty"`

	Digits *int64 `json:"digits,omitempty"` // to show behind the decimal point; nil: as many as there are

	ErrorOf string    `json:"errorOf,omitempty"` // the metric whose standard error this is
	Group   string    `json:"group,omitempty"`   // the heading it has among all metrics; "": the first ones are the main ones
	Reading []Reading `json:"reading,omitempty"` // what values mean, the lowest first

	factor float64 // of the figure; 0: as it is
	source source  // nil: metrics.json
}

// Reading is what values of a metric mean.
type Reading struct {
	From  *float64 `json:"from,omitempty"` // the lowest of them; nil: the first reading, of all below the next
	Words string   `json:"words"`
}

// namePattern is what the name of a metric may be.
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
			r.Mistakef(m.Line, "%q is no name of a metric: use letters, digits and _", m.Name)
		}
		if m.Value.Kind != strictjson.Object {
			continue
		}
		metric := readMetric(r, m.Name, m.Value)
		if before := all.Ranking(); before != nil && metric.Rank {
			r.Mistakef(m.Value.Member("rank").Line, "%s has rank = true already: a table is sorted by one metric", before.Name)
		}
		all = append(all, metric)
	}
	checkErrors(r, t, all)
	return all
}

// checkErrors looks whether each error belongs to one metric, which has its unit.
func checkErrors(r *tomltree.Reader, t *tomltree.Node, all Metrics) {
	taken := map[string]string{}
	for _, m := range all {
		if m.ErrorOf == "" {
			continue
		}
		line, of := t.Member(m.Name).Member("error_of").Line, all.Named(m.ErrorOf)
		switch {
		case of == nil || of.ErrorOf != "":
			r.Mistakef(line, "error_of must name another metric of this file, which is no error, got %q", m.ErrorOf)
		case of.Unit != m.Unit:
			r.Mistakef(line, "the error %s must have the unit of %s, %q, got %q", m.Name, of.Name, of.Unit, m.Unit)
		case taken[m.ErrorOf] != "":
			r.Mistakef(line, "%s has the error %s already", of.Name, taken[m.ErrorOf])
		}
		taken[m.ErrorOf] = m.Name
	}
}

// Named returns the metric of that name, nil if there is none.
func (all Metrics) Named(name string) *Metric {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// Ranking returns the metric by which tables are sorted, nil if there is none.
func (all Metrics) Ranking() *Metric {
	for i := range all {
		if all[i].Rank {
			return &all[i]
		}
	}
	return nil
}

// Compares reports whether values of jobs compare that differ in these settings.
func (m *Metric) Compares(varying []string) bool {
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
		r.Mistakef(t.Line, "the metric %q says nothing: give file and pattern, or a title, unit or better for a figure of %s", name, metricsFile)
	}
	return m
}

// readReading reads the meanings of values, each of which begins above the one before.
func readReading(r *tomltree.Reader, t *tomltree.Node) (all []Reading) {
	for i, n := range r.Tables(t, "reading") {
		one := Reading{Words: r.Line(n, "words")}
		if from := n.Member("from"); from != nil {
			if f, err := strconv.ParseFloat(from.Text, 64); err == nil {
				one.From = &f
			}
		}
		if i > 0 && (one.From == nil || all[i-1].From != nil && *one.From <= *all[i-1].From) {
			r.Mistakef(n.Line, "reading must begin with the lowest values: each but the first needs a from above the one before")
		}
		all = append(all, one)
	}
	return all
}

// IsPath reports whether p is a plain relative path of a file.
func IsPath(p string) bool {
	return fs.ValidPath(p) && p != "." && filepath.IsLocal(p) && !strings.ContainsRune(p, 0)
}
