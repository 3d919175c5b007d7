package results

import (
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"molrun/app/base/tomltree"
)

// Outputs holds the [[outputs]] of an algorithm, in the order of its file.
type Outputs []Output

// Output is one or more files of a result.
type Output struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Kind     string `json:"kind,omitempty"` // kind of view
	File     string `json:"file"`           // path pattern
	Required bool   `json:"required"`       // a job without it fails

	matches *regexp.Regexp
}

// ReadOutputs reads [[outputs]].
func ReadOutputs(r *tomltree.Reader) Outputs {
	all := Outputs{}
	for _, t := range r.Tables(r.Root, "outputs") {
		o := Output{
			Name:     r.Text(t, "name"),
			Kind:     r.Text(t, "kind"),
			File:     readPattern(r, t, "file"),
			Required: r.Flag(t, "required"),
		}
		o.Title = cmp.Or(r.Line(t, "title"), o.Name)
		o.matches = compile(o.File)
		if slices.ContainsFunc(all, func(other Output) bool { return other.Name == o.Name }) {
			r.Errorf(t.Line, "two outputs are named %q; give each a unique name", o.Name)
		}
		all = append(all, o)
	}
	return all
}

// Named returns the output with this name, or nil if there is none.
func (all Outputs) Named(name string) *Output {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// Names returns the names of the outputs, separated by commas.
func (all Outputs) Names() string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return strings.Join(names, ", ")
}

// Has reports whether a file of a result belongs to the output.
func (o *Output) Has(name string) bool {
	return o.matches.MatchString(name) && !slices.Contains(ownFiles, name)
}

// cover reports whether one output includes every file that a pattern matches.
func (all Outputs) cover(pattern string) bool {
	return slices.ContainsFunc(all, func(o Output) bool { return o.matches.MatchString(pattern) })
}

// Missing returns a message about the first required output missing from a result, or ""
// if none is missing. files yields names and sizes; an empty file counts as missing.
func (all Outputs) Missing(files iter.Seq2[string, int64]) string {
	for _, o := range all {
		if !o.Required {
			continue
		}
		found, empty := false, false
		for name, size := range files {
			if o.matches.MatchString(name) {
				found, empty = found || size > 0, empty || size == 0
			}
		}
		switch {
		case found:
		case empty:
			return fmt.Sprintf("The program finished, but %s (%s) is empty.", o.Title, o.File)
		default:
			return fmt.Sprintf("The program finished, but did not create %s (%s).", o.Title, o.File)
		}
	}
	return ""
}
