package algorithm

import (
	"errors"
	"time"

	"molrun/app/algorithm/expression"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
	"molrun/app/base/unit"
)

// readEstimate reads the expression for the size of a job, or nil if the file has none.
func readEstimate(r *tomltree.Reader, parameters Parameters, known []derived) *expression.Expression {
	t := r.Table(r.Root, "estimate")
	if t == nil {
		return nil
	}
	n := t.Member("size")
	if n == nil && t.Member(expectedKey) == nil {
		r.Errorf(t.Line, "[estimate] needs size, an expression such as \"settings.steps\"")
	}
	if n == nil || n.Kind != strictjson.String {
		return nil
	}
	e, err := expression.Parse(n.Text, namesOf(parameters, known))
	if err == nil && e.Kind != expression.Number && e.Kind != expression.Any {
		err = errors.New("it is not a number")
	}
	if err != nil {
		r.Errorf(n.Line, "size %q: %v", n.Text, err)
		return nil
	}
	return e
}

const (
	expectedKey = "expected_seconds"
	perSizeKey  = "seconds_per_size"
)

// readExpected reads the expected run time in seconds of a typical job, and of a job of
// size 1; each is 0 if not given.
func readExpected(r *tomltree.Reader) (usual, perSize float64) {
	t := r.Root.Member("estimate")
	if n := t.Member(perSizeKey); n != nil && t.Member(expectedKey) != nil {
		r.Errorf(n.Line, "give either %s or %s", expectedKey, perSizeKey)
	}
	return t.Member(expectedKey).Float(), t.Member(perSizeKey).Float()
}

// SizeFormula returns the expression for the size of a job, or "" if the file has none.
func (a *File) SizeFormula() string {
	if a.size == nil {
		return ""
	}
	return a.size.Text
}

// Size returns the size of a job with these checked settings and file metadata; run times
// are compared by size. It is 0 if the size is unknown, as for a batch, which has no
// settings.
func (a *File) Size(settings *strictjson.Value, facts Facts) float64 {
	if settings == nil || a.size == nil {
		return 0
	}
	values, _ := a.relations.values(settings.Members, facts, nil)
	if a.size.Lacks(values) {
		return 0
	}
	got, err := a.size.Value(values)
	size, isNumber := got.(float64)
	if err != nil || !isNumber || size < 0 || size > 1e300 {
		return 0
	}
	return size
}

const (
	defaultMaxRuntime = 24 * time.Hour
	longestRuntime    = 10 * 365 * 24 * time.Hour
)

// readMaxRuntime reads the maximum run time of a job, and the expression that computes
// the run time of a job that requests none. If the expression is nil, such a job gets the
// maximum.
func readMaxRuntime(r *tomltree.Reader, parameters Parameters, known []derived) (time.Duration, *expression.Expression) {
	n := r.Root.Member("max_runtime")
	switch {
	case n == nil:
		return defaultMaxRuntime, nil
	case n.Kind == strictjson.Object:
		return readComputedRuntime(r, parameters, known, n)
	}
	return readLimit(r, r.Root, "max_runtime"), nil
}

func readComputedRuntime(r *tomltree.Reader, parameters Parameters, known []derived, n *tomltree.Node) (time.Duration, *expression.Expression) {
	seconds, most := n.Member("seconds"), n.Member("most")
	if seconds == nil || most == nil {
		return 0, nil
	}
	limit := readLimit(r, n, "most")
	if seconds.Kind != strictjson.String {
		return limit, nil
	}
	return limit, readFormula(r, parameters, known, seconds, "seconds", 1).formula
}

// readLimit reads a duration.
func readLimit(r *tomltree.Reader, t *tomltree.Node, key string) time.Duration {
	n := t.Member(key)
	var d unit.Duration
	err := d.UnmarshalText([]byte(r.Text(t, key)))
	switch {
	case n.Kind != strictjson.String:
	case err != nil && key == "max_runtime":
		r.Errorf(n.Line, `%s: %v; or compute it: { seconds = "600 + 2 * facts.residues", most = "7d" }`, key, err)
	case err != nil:
		r.Errorf(n.Line, "%s: %v", key, err)
	case time.Duration(d) < time.Second || time.Duration(d) > longestRuntime:
		r.Errorf(n.Line, "%s must be between 1s and %dd, got %s", key, longestRuntime/(24*time.Hour), n.Text)
	}
	return time.Duration(d)
}
