package results

import (
	"regexp"
	"slices"
	"strings"

	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// origins maps each key that names the file of a metric to the keys that can accompany
// it.
var origins = map[string][]string{
	"file":    {"pattern", "count"},
	"table":   {"column", "take", "where"},
	"json":    {"at", "take"},
	"bfactor": {"take"},
}

// readSource reads where to find a metric. It returns nil if the metric is in
// metrics.json.
func readSource(r *tomltree.Reader, name string, t *tomltree.Node) source {
	origin := ""
	for _, key := range []string{"file", "table", "json", "bfactor"} {
		if t.Member(key) == nil {
			continue
		}
		if origin != "" {
			r.Errorf(t.Member(key).Line, "the metric %q has both %s and %s: remove one", name, origin, key)
			continue
		}
		origin = key
	}
	if !checkMetricKeys(r, name, t, origin) || origin == "" {
		return nil
	}
	path, ok := readPath(r, t, origin)
	if !ok {
		return nil
	}
	switch origin {
	case "table":
		return readColumn(r, name, t, path)
	case "json":
		return readAt(r, name, t, path)
	case "bfactor":
		return bFactorOf{path: path, take: readTake(r, t, "mean")}
	}
	return readMatch(r, name, t, path)
}

// checkMetricKeys reports keys that do not match the metric's origin.
func checkMetricKeys(r *tomltree.Reader, name string, t *tomltree.Node, origin string) bool {
	for _, m := range t.Members {
		var of []string
		for key, with := range origins {
			if slices.Contains(with, m.Name) {
				of = append(of, key)
			}
		}
		switch {
		case of == nil || slices.Contains(of, origin):
		case origin == "" && m.Name == "pattern":
			r.Errorf(t.Line, "the metric %q needs both file and pattern, or neither if it is in %s", name, metricsFile)
			return false
		default:
			slices.Sort(of)
			r.Errorf(m.Line, "%s of the metric %q requires %s", m.Name, name, tomltree.OrList(of))
			return false
		}
	}
	return true
}

// readPath reads the file of a metric, where * matches any text within a name.
func readPath(r *tomltree.Reader, t *tomltree.Node, key string) (string, bool) {
	n, path := t.Member(key), r.Text(t, key)
	if n.Kind != strictjson.String {
		return "", false
	}
	if why := noPattern(path); why != "" {
		r.Errorf(n.Line, "%s %q %s", key, path, why)
		return "", false
	}
	return path, true
}

func readMatch(r *tomltree.Reader, name string, t *tomltree.Node, path string) source {
	pattern, count := t.Member("pattern"), t.Member("count")
	switch {
	case pattern != nil && count != nil:
		r.Errorf(count.Line, "the metric %q has both pattern and count: remove one", name)
	case count != nil:
		if compiled := readExpression(r, count, "count"); compiled != nil {
			return countOf{path, compiled}
		}
	case pattern == nil:
		r.Errorf(t.Line, "the metric %q needs both file and pattern, or neither if it is in %s", name, metricsFile)
	default:
		compiled := readExpression(r, pattern, "pattern")
		if compiled != nil && compiled.NumSubexp() == 0 {
			r.Errorf(pattern.Line, "pattern needs a group in parentheses around the value")
		} else if compiled != nil {
			return lastOf{path, compiled}
		}
	}
	return nil
}

func readExpression(r *tomltree.Reader, n *tomltree.Node, key string) *regexp.Regexp {
	if n.Kind != strictjson.String {
		return nil
	}
	return r.Expression(n.Line, key, n.Text)
}

func readColumn(r *tomltree.Reader, name string, t *tomltree.Node, path string) source {
	s := columnOf{path: path, column: r.Line(t, "column"), take: readTake(r, t, "first")}
	if s.column == "" && s.take != "count" {
		r.Errorf(t.Line, "the metric %q needs column, the table column to read; for an unnamed column, use its number, counting from \"1\"", name)
	}
	n := r.Table(t, "where")
	if n == nil {
		return s
	}
	s.where = map[string]string{}
	for _, m := range n.Members {
		switch m.Value.Kind {
		case strictjson.String, strictjson.Number, strictjson.Bool:
			s.where[m.Name] = m.Value.Text
		}
	}
	return s
}

func readAt(r *tomltree.Reader, name string, t *tomltree.Node, path string) source {
	s := memberOf{path: path}
	if t.Member("take") != nil {
		s.take = readTake(r, t, "")
	}
	at := r.Text(t, "at")
	n := t.Member("at")
	switch {
	case n == nil:
		r.Errorf(t.Line, "the metric %q needs at, its position in the file, such as \"/confidence/0/ptm\"", name)
	case n.Kind == strictjson.String && !strings.HasPrefix(at, "/"):
		r.Errorf(n.Line, "at must begin with /, as in \"/confidence/0/ptm\", got %q", at)
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(at, "/"), "/") {
		s.at = append(s.at, strings.NewReplacer("~1", "/", "~0", "~").Replace(part)) // RFC 6901
	}
	return s
}

func readTake(r *tomltree.Reader, t *tomltree.Node, otherwise string) string {
	if take := r.Text(t, "take"); take != "" {
		return take
	}
	return otherwise
}
