package command

import (
	"strings"

	"molrun/app/algorithm/expression"
)

// Argument is one element of a command: one argument; those of a branch; or some for
// each item of a list.
type Argument struct {
	Text       Template
	When       *expression.Expression // nil: always
	Then, Else []Template             // with When
	Each       Part                   // a list: {settings.NAME} or {files.NAME}; without a kind: none
	Args       []Template             // for each of its items, which {item} stands for
	Join       *string                // between the items' texts, which become one argument; nil: they don't
}

// Argv returns the arguments of a command, its placeholders replaced: one
// argument for each template, with any text.
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
