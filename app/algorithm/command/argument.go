package command

import (
	"strings"

	"molrun/app/algorithm/expression"
)

// Argument is one element of a command: a single argument, the arguments of a branch, or
// arguments repeated for each item of a list.
type Argument struct {
	Text       Template
	When       *expression.Expression // nil means always
	Then, Else []Template             // branches of When
	Each       Part                   // list {settings.NAME} or {files.NAME}; no repetition if its Kind is empty
	Args       []Template             // repeated for each item, which is {item}
	Join       *string                // separator that joins the items into one argument; nil for separate arguments
}

// Argv returns the arguments of a command with placeholders replaced. Each template
// becomes exactly one argument, whatever text it contains.
func Argv(command []Argument, v *Values) ([]string, error) {
	var argv []string
	for _, arg := range command {
		texts, err := arg.expand(v)
		if err != nil {
			return nil, err
		}
		argv = append(argv, texts...)
	}
	return argv, nil
}

func (a Argument) expand(v *Values) ([]string, error) {
	switch {
	case a.Each.Kind != "":
		return a.expandEach(v)
	case a.When == nil:
		return expandAll([]Template{a.Text}, v)
	case a.When.Holds(v.Computed):
		return expandAll(a.Then, v)
	}
	return expandAll(a.Else, v)
}

func (a Argument) expandEach(v *Values) ([]string, error) {
	items, err := v.items(a.Each)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, item := range items {
		texts, err := expandAll(a.Args, v.withItem(item))
		if err != nil {
			return nil, err
		}
		all = append(all, texts...)
	}
	if a.Join != nil && len(all) > 0 {
		all = []string{strings.Join(all, *a.Join)}
	}
	return all, nil
}

func expandAll(templates []Template, v *Values) ([]string, error) {
	var all []string
	for _, t := range templates {
		text, err := t.Expand(v)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}
