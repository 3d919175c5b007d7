package algorithm

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"

	"molrun/app/strictjson"
	"molrun/app/tomltree"
	"molrun/app/unit"
)

// maxFailureText bounds the sentence that a known failure becomes.
const maxFailureText = 1000

// knownFailure is one [[failures]].
type knownFailure struct {
	pattern *regexp.Regexp
	message string // $1 stands for the first group
}

// groupPattern finds $1, ${1} and $$ in the message of a known failure.
var groupPattern = regexp.MustCompile(`\$(?:\$|\d+|\{\d+\})`)

func readFailures(r *tomltree.Reader, root *tomltree.Node) []knownFailure {
	var all []knownFailure
	for _, t := range r.Tables(root, "failures") {
		r.Known(t, "[[failures]]", []string{"pattern", "message"})
		for _, key := range []string{"pattern", "message"} {
			if t.Member(key) == nil {
				r.Mistakef(t.Line, "%s is missing", key)
			}
		}
		f := knownFailure{message: r.Text(t, "message")}
		if n := t.Member("message"); n != nil && n.Kind == strictjson.String && strings.TrimSpace(f.message) == "" {
			r.Mistakef(n.Line, "message must say what happened")
		}
		n := t.Member("pattern")
		if n == nil || !r.Is(n, "pattern", strictjson.String) {
			continue
		}
		if f.pattern = r.Expression(n.Line, "pattern", n.Text); f.pattern == nil {
			continue
		}
		for _, ref := range groupPattern.FindAllString(f.message, -1) {
			if group := groupNumber(ref); group > f.pattern.NumSubexp() {
				r.Mistakef(t.Member("message").Line, "%s in message: pattern has %s", ref, unit.Count(f.pattern.NumSubexp(), "group"))
			}
		}
		all = append(all, f)
	}
	return all
}

// groupNumber gives the number in $1 or ${1}, -1 for $$.
func groupNumber(ref string) int {
	n, err := strconv.Atoi(strings.Trim(ref, "${}"))
	switch {
	case errors.Is(err, strconv.ErrRange):
		return math.MaxInt
	case err != nil:
		return -1
	}
	return n
}

// Explain puts the end of a failed job's log into a sentence: that of the
// first of [[failures]] that matches, at its last match. "" where none does.
func (a *File) Explain(logTail []byte) string {
	for _, f := range a.failures {
		all := f.pattern.FindAllSubmatch(logTail, -1)
		if len(all) == 0 {
			continue
		}
		groups := all[len(all)-1]
		text := groupPattern.ReplaceAllStringFunc(f.message, func(ref string) string {
			if n := groupNumber(ref); n >= 0 {
				return cut(printable(groups[n]), maxFigureText)
			}
			return "$"
		})
		return cleanText([]byte(text), maxFailureText)
	}
	return ""
}
