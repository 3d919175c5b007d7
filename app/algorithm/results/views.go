package results

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// Kinds of views.
const (
	Structure  = "structure"
	Trajectory = "trajectory"
	Series     = "series"
	Table      = "table"
	Matrix     = "matrix"
	Alignment  = "alignment"
	Tree       = "tree" // Newick
	Image      = "image"
	Text       = "text"
)

// Views holds the [[views]] of an algorithm, in the order of its file.
type Views []View

// View describes how to display some of a job's files.
type View struct {
	Name     string            `json:"name"`
	Kind     string            `json:"kind"`
	Title    string            `json:"title"`
	File     string            `json:"file"`               // path pattern
	Topology string            `json:"topology,omitempty"` // for trajectories
	X        string            `json:"x,omitempty"`        // series: column; "" means the first
	Y        []string          `json:"y,omitempty"`        // series: columns; empty means all others
	Titles   map[string]string `json:"titles,omitempty"`   // by column
	Units    map[string]string `json:"units,omitempty"`    // by column
	Errors   map[string]string `json:"errors,omitempty"`   // series: column of standard errors, by column
	Fits     []string          `json:"fits,omitempty"`     // series: columns that are fits to others
	Ticks    string            `json:"ticks,omitempty"`    // series: column that labels the x axis
	Log      []string          `json:"log,omitempty"`      // series: logarithmic axes, x and y
	Unit     string            `json:"unit,omitempty"`     // matrix: unit of the values
	Quantity string            `json:"quantity,omitempty"` // matrix: meaning of the values
	Rows     string            `json:"rows,omitempty"`     // matrix: what a row represents
	Columns  string            `json:"columns,omitempty"`  // matrix: what a column represents
	PLDDT    *PLDDT            `json:"plddt,omitempty"`    // for structures with pLDDT

	// MinSeparation is for matrices of residues: pairs closer along the chain have no
	// value.
	MinSeparation int64 `json:"minSeparation,omitempty"`

	matches *regexp.Regexp
}

// Named returns the view with this name, or nil if there is none.
func (all Views) Named(name string) *View {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// ExtraColumns returns the columns of a series that are read in addition to those it draws:
// standard errors and axis labels.
func (v *View) ExtraColumns() []string {
	columns := slices.Sorted(maps.Values(v.Errors))
	if v.Ticks != "" {
		columns = append(columns, v.Ticks)
	}
	return slices.Compact(columns)
}

// Match reports whether a file belongs to the view, and returns the path of its topology,
// or "" if it needs none.
func (v *View) Match(file string) (topology string, ok bool) {
	stars := v.matches.FindStringSubmatch(file)
	if stars == nil {
		return "", false
	}
	topology = v.Topology
	for _, text := range stars[1:] {
		topology = strings.Replace(topology, star, strings.ReplaceAll(text, star, "\x00"), 1)
	}
	return strings.ReplaceAll(topology, "\x00", star), true
}

// star matches, within a name, any text that does not begin with a dot.
const star = "*"

// compile converts a valid pattern to a regular expression with one group per star.
func compile(pattern string) *regexp.Regexp {
	var b strings.Builder
	for i, name := range strings.Split(pattern, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		for j, text := range strings.Split(name, star) {
			switch {
			case j == 1 && strings.HasPrefix(name, star):
				b.WriteString(`([^/.][^/]*|)`)
			case j > 0:
				b.WriteString(`([^/]*)`)
			}
			b.WriteString(regexp.QuoteMeta(text))
		}
	}
	return regexp.MustCompile(`^(?s:` + b.String() + `)$`)
}

// Limits on paths in a result, and file names reserved for the service.
const (
	maxDepth = 64
	maxName  = 255
)

var ownFiles = []string{"job.json", "log.txt"}

// noPattern explains why a pattern cannot match any file of a result, or returns "" if it
// can.
func noPattern(pattern string) string {
	names := strings.Split(pattern, "/")
	switch {
	case slices.Contains(ownFiles, pattern):
		return "is reserved for molrun: the program's file of this name is in output/ of a result"
	case len(names) > maxDepth || slices.ContainsFunc(names, func(n string) bool { return len(n) > maxName }):
		return "is longer than the paths of a result can be"
	case strings.ContainsAny(pattern, "?[]{}\\"):
		return "can contain * in names, but no other wildcards"
	case strings.Contains(pattern, "**"):
		return "must not contain **; a * does not match a /"
	case !IsPath(pattern) || path.Clean(pattern) != pattern || strings.ContainsFunc(pattern, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return `must be a path below the output folder, such as "*/energies.csv"`
	}
	return ""
}

// ReadViews reads [[views]], which can refer to outputs.
func ReadViews(r *tomltree.Reader, outputs Outputs) Views {
	all := Views{}
	for _, t := range r.Tables(r.Root, "views") {
		v := readView(r, t, outputs)
		if n := t.Member("name"); n != nil && v.Name != "" && all.Named(v.Name) != nil {
			r.Errorf(n.Line, "two views are named %q; give each a unique name", v.Name)
		}
		all = append(all, v)
	}
	return all
}

func readView(r *tomltree.Reader, t *tomltree.Node, outputs Outputs) View {
	shown := readShownOutput(r, t, outputs)
	v := View{
		Name: r.Text(t, "name"),
		Kind: cmp.Or(r.Text(t, "kind"), shown.Kind), File: cmp.Or(readPattern(r, t, "file"), shown.File),
	}
	if t.Member("kind") == nil && shown.Kind == "" {
		r.Errorf(t.Line, "kind is missing in [[views]]")
	}
	v.Title = cmp.Or(r.Line(t, "title"), shown.Title, v.Name)
	v.Topology = readPattern(r, t, "topology")
	v.X, v.Y, v.Unit = r.Line(t, "x"), r.Texts(t, "y"), r.Line(t, "unit")
	v.Titles, v.Units, v.Errors = readByColumn(r, t, "titles"), readByColumn(r, t, "units"), readByColumn(r, t, "errors")
	v.Fits, v.Ticks, v.Log = r.Texts(t, "fits"), r.Line(t, "ticks"), r.Texts(t, "log")
	v.Quantity, v.Rows, v.Columns = r.Line(t, "quantity"), r.Line(t, "rows"), r.Line(t, "columns")
	if n := t.Member("min_separation"); n != nil {
		v.MinSeparation = r.Within(n, "min_separation", 1, maxSeparation)
	}
	v.PLDDT = readPLDDT(r, t)
	v.checkKeys(r, t)
	for key, pattern := range map[string]string{"file": v.File, "topology": v.Topology} {
		if n := t.Member(key); n != nil && pattern != "" && !outputs.cover(pattern) {
			r.Errorf(n.Line, "%s %q matches no output: add it to [[outputs]]", key, pattern)
		}
	}
	v.matches = compile(v.File)
	return v
}

// readShownOutput returns the output that a view refers to instead of a file.
func readShownOutput(r *tomltree.Reader, t *tomltree.Node, outputs Outputs) (shown Output) {
	name, file := t.Member("output"), t.Member("file")
	switch {
	case name == nil && file == nil:
		r.Errorf(t.Line, "file is missing in [[views]]")
	case name == nil:
	case file != nil:
		r.Errorf(file.Line, "a view has either file or output")
	case outputs.Named(r.Text(t, "output")) != nil:
		return *outputs.Named(name.Text)
	default:
		r.Errorf(name.Line, "there is no output %q; [[outputs]] has %s", name.Text, cmp.Or(outputs.Names(), "none"))
	}
	return shown
}

// readPattern reads a path pattern, or "" if it is invalid.
func readPattern(r *tomltree.Reader, t *tomltree.Node, key string) string {
	n := t.Member(key)
	pattern := r.Text(t, key)
	if n == nil || n.Kind != strictjson.String {
		return ""
	}
	if why := noPattern(pattern); why != "" {
		r.Errorf(n.Line, "%s %q %s", key, pattern, why)
		return ""
	}
	return pattern
}

// maxSeparation limits MinSeparation.
const maxSeparation = 1000

// readByColumn reads a table of strings keyed by column name.
func readByColumn(r *tomltree.Reader, t *tomltree.Node, key string) map[string]string {
	n := r.Table(t, key)
	if n == nil {
		return nil
	}
	texts := map[string]string{}
	for _, m := range n.Members {
		texts[m.Name] = r.Line(n, m.Name)
	}
	return texts
}

// kindsOf lists the kinds of views that accept each specific key.
var kindsOf = map[string][]string{
	"topology": {Trajectory}, "x": {Series}, "y": {Series}, "titles": {Series, Table}, "units": {Series, Table},
	"errors": {Series}, "fits": {Series}, "ticks": {Series}, "log": {Series},
	"unit": {Matrix}, "quantity": {Matrix}, "rows": {Matrix}, "columns": {Matrix}, "min_separation": {Matrix}, "plddt": {Structure},
}

// checkKeys reports keys that conflict.
func (v *View) checkKeys(r *tomltree.Reader, t *tomltree.Node) {
	for _, m := range t.Members {
		if of := kindsOf[m.Name]; of != nil && v.Kind != "" && !slices.Contains(of, v.Kind) {
			r.Errorf(m.Line, "%s applies to %s, not to %s", m.Name, strings.Join(of, " and "), v.Kind)
		}
	}
	if strings.Count(v.Topology, star) > strings.Count(v.File, star) {
		r.Errorf(t.Member("topology").Line, "topology must not have more * than file, from which they are filled in")
	}
	for i, y := range v.Y {
		if y == v.X || slices.Contains(v.Y[:i], y) {
			r.Errorf(t.Member("y").Items[i].Line, "the column %q occurs twice", y)
		}
	}
	v.checkDrawn(r, t)
}

// checkDrawn reports standard errors and fits of columns that are not drawn.
func (v *View) checkDrawn(r *tomltree.Reader, t *tomltree.Node) {
	if len(v.Y) == 0 {
		return
	}
	for i, fit := range v.Fits {
		if !slices.Contains(v.Y, fit) {
			r.Errorf(t.Member("fits").Items[i].Line, "the fit %q is not in y", fit)
		}
	}
	if v.Errors == nil {
		return
	}
	for _, m := range t.Member("errors").Members {
		switch {
		case !slices.Contains(v.Y, m.Name):
			r.Errorf(m.Line, "errors has the column %q, which is not in y", m.Name)
		case slices.Contains(v.Y, v.Errors[m.Name]):
			r.Errorf(m.Line, "%q is an error: leave it out of y", v.Errors[m.Name])
		}
	}
}
