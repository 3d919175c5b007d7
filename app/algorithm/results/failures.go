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

// maxFailureText bounds the sentence that a known failure becomes.
const maxFailureText = 1000

// Failures are the [[failures]] of an algorithm, and Warnings its [[warnings]].
type (
	Failures []Known
	Warnings []Known
)

// Known turns a pattern in a log into a sentence.
type Known struct {
	pattern *regexp.Regexp
	message string // $1 stands for the first group
	lacks   Lack
}

// groupPattern finds $1, ${1} and $$ in the message of what is known.
var groupPattern = regexp.MustCompile(`\$(?:\$|\d+|\{\d+\})`)

// ReadFailures reads [[failures]].
func ReadFailures(r *tomltree.Reader) Failures { return readKnown(r, "failures") }

// ReadWarnings reads [[warnings]].
func ReadWarnings(r *tomltree.Reader) Warnings { return readKnown(r, "warnings") }

func readKnown(r *tomltree.Reader, tables string) (all []Known) {
	for _, t := range r.Tables(r.Root, tables) {
		f := Known{message: r.Text(t, "message"), lacks: Lack(r.Text(t, "lacks"))}
		if n := t.Member("message"); n != nil && n.Kind == strictjson.String && strings.TrimSpace(f.message) == "" {
			r.Mistakef(n.Line, "message must say what happened")
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
				r.Mistakef(t.Member("message").Line, "%s in message: pattern has %s", ref, unit.Count(f.pattern.NumSubexp(), "group"))
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

// Explain puts the end of a failed job's log into a sentence: that of the first
// failure that matches, at its last match, and says what the job lacked according to it. ""
// where none does.
func (all Failures) Explain(logTail []byte) (message string, lacks Lack) {
	for _, f := range all {
		if matches := f.pattern.FindAllSubmatch(logTail, -1); len(matches) > 0 {
			return f.explain(matches[len(matches)-1]), f.lacks
		}
	}
	return "", LacksNothing
}

// FindWarnings puts the end of a job's log into sentences: one for each match.
func (all Warnings) FindWarnings(logTail []byte) (texts []string) {
	for _, w := range all {
		for _, groups := range w.pattern.FindAllSubmatch(logTail, -1) {
			texts = append(texts, w.explain(groups))
		}
	}
	return texts
}

// explain puts the groups of a match into words.
func (k *Known) explain(groups [][]byte) string {
	text := groupPattern.ReplaceAllStringFunc(k.message, func(ref string) string {
		if n := groupNumber(ref); n >= 0 {
			return plaintext.Cut(plaintext.Printable(groups[n]), maxFigureText)
		}
		return "$"
	})
	return plaintext.OneLine([]byte(text), maxFailureText)
}
