package results

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"

	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
	"molrun/app/base/unit"
)

// maxFailureText limits the length of the message for a known failure.
const maxFailureText = 1000

// Failures holds the [[failures]] of an algorithm, and Warnings its [[warnings]].
type (
	Failures []Known
	Warnings []Known
)

// Known maps a log pattern to a message.
type Known struct {
	pattern *regexp.Regexp
	message string // $1 is the first group
	lacks   Lack
}

// groupPattern matches $1, ${1} and $$ in the message of a Known.
var groupPattern = regexp.MustCompile(`\$(?:\$|\d+|\{\d+\})`)

// ReadFailures reads [[failures]].
func ReadFailures(r *tomltree.Reader) Failures { return readKnown(r, "failures") }

// ReadWarnings reads [[warnings]].
func ReadWarnings(r *tomltree.Reader) Warnings { return readKnown(r, "warnings") }

func readKnown(r *tomltree.Reader, tables string) (all []Known) {
	for _, t := range r.Tables(r.Root, tables) {
		f := Known{message: r.Text(t, "message"), lacks: Lack(r.Text(t, "lacks"))}
		if n := t.Member("message"); n != nil && n.Kind == strictjson.String && strings.TrimSpace(f.message) == "" {
			r.Errorf(n.Line, "message must say what happened")
		}
		n := t.Member("pattern")
		if n == nil || n.Kind != strictjson.String {
			continue
		}
		if f.pattern = r.Expression(n.Line, "pattern", n.Text); f.pattern == nil {
			continue
		}
		for _, ref := range groupPattern.FindAllString(f.message, -1) {
			if group := groupNumber(ref); group > f.pattern.NumSubexp() {
				r.Errorf(t.Member("message").Line, "%s in message: pattern has %s", ref, unit.Count(f.pattern.NumSubexp(), "group"))
			}
		}
		all = append(all, f)
	}
	return all
}

// groupNumber returns the number in $1 or ${1}, -1 for $$.
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

// Explain finds the first known failure that matches the tail of a failed job's log. It
// returns the message for the last match, or "" if there is no match, and the resource
// that the job ran out of.
func (all Failures) Explain(logTail []byte) (message string, lacks Lack) {
	for _, f := range all {
		if matches := f.pattern.FindAllSubmatch(logTail, -1); len(matches) > 0 {
			return f.explain(matches[len(matches)-1]), f.lacks
		}
	}
	return "", LacksNothing
}

// FindWarnings returns a message for each match in the tail of a job's log.
func (all Warnings) FindWarnings(logTail []byte) (texts []string) {
	for _, w := range all {
		for _, groups := range w.pattern.FindAllSubmatch(logTail, -1) {
			texts = append(texts, w.explain(groups))
		}
	}
	return texts
}

// explain inserts the groups of a match into the message.
func (k *Known) explain(groups [][]byte) string {
	text := groupPattern.ReplaceAllStringFunc(k.message, func(ref string) string {
		if n := groupNumber(ref); n >= 0 {
			return plaintext.Cut(plaintext.Printable(groups[n]), maxFigureText)
		}
		return "$"
	})
	return plaintext.OneLine([]byte(text), maxFailureText)
}
