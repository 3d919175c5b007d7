package algorithm

import (
	"regexp"
	"strconv"
	"strings"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/expression"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
	"molrun/app/task/protocol"
)

// progress describes how to determine the progress of a step.
type progress struct {
	share   float64 // of the job's run time; 0 if unknown
	shareBy *expression.Expression
	pattern *regexp.Regexp
	count   bool             // count the matches of pattern
	of      command.Template // value at the end; nil if unknown or given by the second group
	file    command.Template // nil means the program's output
}

func (c *commandReader) progress(t *tomltree.Node) *progress {
	n := t.Member("progress")
	if n == nil || n.Kind != strictjson.Object {
		return nil
	}
	p := &progress{}
	pattern, count := n.Member("pattern"), n.Member("count")
	switch {
	case pattern != nil && count != nil:
		c.Errorf(n.Line, "progress takes either a pattern, whose first group is a number, or count, whose matches are counted")
	case pattern != nil && pattern.Kind == strictjson.String:
		p.pattern = c.Expression(n.Line, "pattern", pattern.Text)
	case count != nil && count.Kind == strictjson.String:
		p.pattern, p.count = c.Expression(n.Line, "count", count.Text), true
	case pattern == nil && count == nil && n.Member("share") == nil:
		c.Errorf(n.Line, `progress needs a pattern: { pattern = 'step (\d+)', of = "{settings.steps}" }`)
	}
	p.share, p.shareBy = c.share(n)
	p.of = c.readEnd(n)
	if file := n.Member("file"); file != nil && file.Kind == strictjson.String {
		p.file = readFilePath(c.Reader, file, "file")
	}
	c.checkPattern(n, p)
	return p
}

// checkPattern checks the combination of pattern, count, of and file.
func (c *commandReader) checkPattern(n *tomltree.Node, p *progress) {
	switch {
	case p.pattern == nil:
		for _, key := range []string{"of", "file"} {
			if n.Member("pattern") == nil && n.Member("count") == nil && n.Member(key) != nil {
				c.Errorf(n.Line, "%s requires a pattern or count", key)
			}
		}
	case p.pattern.MatchString(""):
		c.Errorf(n.Line, "the pattern of progress matches the empty string: make it more specific")
	case p.count && n.Member("of") == nil:
		c.Errorf(n.Line, "count needs of, the number of matches at the end")
	case !p.count && n.Member("of") != nil && p.pattern.NumSubexp() == 0:
		c.Errorf(n.Line, `the pattern needs a group, which is the number to compare with of: 'step (\d+)'`)
	}
}

// share reads the step's share of the job's run time.
func (c *commandReader) share(of *tomltree.Node) (float64, *expression.Expression) {
	n := of.Member("share")
	switch {
	case n == nil:
		return 0, nil
	case n.Kind == strictjson.String:
		return 0, readFormula(c.Reader, c.parameters, c.derived, n, "share", 1).formula
	case n.Kind != strictjson.Number:
		return 0, nil
	}
	share, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || !(share > 0 && share <= 1) {
		c.Errorf(of.Line, "share must be above 0 and at most 1, got %s", n.Text)
	}
	return share, nil
}

// readEnd reads the number at which the step is done.
func (c *commandReader) readEnd(of *tomltree.Node) command.Template {
	n := of.Member("of")
	switch {
	case n == nil:
		return nil
	case n.Kind == strictjson.Number:
		if value, err := strconv.ParseFloat(n.Text, 64); err != nil || !(value > 0) {
			c.Errorf(of.Line, "of must be above 0, got %s", n.Text)
		}
		return command.Template{{Text: n.Text}}
	case n.Kind != strictjson.String:
		return nil
	}
	t := c.template(n)
	if len(t) != 1 || t[0].Kind != "settings" && t[0].Kind != "derived" {
		c.Errorf(of.Line, `of must be a number, "{settings.NAME}" or "{derived.NAME}", got %q`, n.Text)
		return t
	}
	if kind := c.kindOf(t[0]); kind != expression.Number && kind != expression.Any {
		c.Errorf(of.Line, "of = %q is not a number", n.Text)
	}
	return t
}

// kindOf returns the type of a setting or derived value.
func (c *commandReader) kindOf(part command.Part) expression.Kind {
	names := namesOf(c.parameters, c.derived)
	if kind, found := names.Settings[part.Name]; found && part.Kind == "settings" {
		return kind
	}
	if kind, found := names.Derived[part.Name]; found && part.Kind == "derived" {
		return kind
	}
	return expression.Any // already reported
}

// checkShares checks that the shares of unconditional steps do not exceed 1 in total.
func checkShares(r *tomltree.Reader, steps []step) {
	sum := 0.0
	for _, s := range steps {
		if s.progress != nil && s.when == nil {
			sum += s.progress.share
		}
	}
	if n := r.Root.Member("steps"); n != nil && sum > 1.000001 {
		r.Errorf(n.Line, "the shares of the steps add up to %v, more than 1", sum)
	}
}

// share returns the step's share of the job's run time, or 0 if unknown.
func (s *step) share(v expression.Values) float64 {
	switch {
	case s.progress == nil:
		return 0
	case s.progress.shareBy == nil:
		return s.progress.share
	}
	got, err := s.progress.shareBy.Value(v)
	share, isNumber := got.(float64)
	if err != nil || !isNumber || !(share > 0) {
		return 0
	}
	return min(share, 1)
}

// expand returns the progress parser of a run, or nil if there is none.
func (p *progress) expand(v *command.Values) (*protocol.ProgressParser, error) {
	if p == nil || p.pattern == nil {
		return nil, nil
	}
	g := &protocol.ProgressParser{Pattern: p.pattern.String(), Count: p.count}
	text, err := p.of.Expand(v)
	if err != nil {
		return nil, err
	}
	if p.of != nil {
		if g.Of, err = strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil || !(g.Of > 0) {
			return nil, nil // a run of 0 steps has no progress
		}
	}
	g.File, err = p.file.Expand(v)
	return g, err
}

// setSpans assigns each step of a run its share of the progress. Steps of unknown length
// share the remainder equally.
func setSpans(steps []protocol.Step, shares []float64) {
	known, unknown := 0.0, 0
	for _, share := range shares {
		if known += share; share == 0 {
			unknown++
		}
	}
	all := known
	if unknown > 0 {
		all = max(known, 1)
	}
	from := 0.0
	for i := range steps {
		span := protocol.Span{From: from, Share: shares[i] / all}
		if shares[i] == 0 {
			span.Share, span.Guessed = (1-min(known, 1))/float64(unknown), len(steps) > 1
		}
		steps[i].Span = &span
		from = min(1, from+span.Share)
	}
}
