package command

import (
	"errors"
	"fmt"
	"strings"

	"molrun/app/algorithm/expression"
	"molrun/app/base/strictjson"
)

// Values holds the placeholder values of one job.
type Values struct {
	Settings *strictjson.Value   // normalized
	Derived  map[string]string   // {derived.NAME}
	Files    map[string][]string // paths of {files.NAME}; several for a list
	Site     map[string]string   // paths of {site.NAME}
	Named    map[string]string   // placeholders without a name, such as {out}
	Computed expression.Values   // for conditions

	item *string // {item}; nil if invalid in this context
}

// withItem returns a copy of the values with {item} set to text.
func (v *Values) withItem(text string) *Values {
	with := *v
	with.item = &text
	return &with
}

// Expand replaces the placeholders with their values.
func (t Template) Expand(v *Values) (string, error) {
	var b strings.Builder
	for _, part := range t {
		text, err := v.valueOf(part)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func (v *Values) valueOf(part Part) (string, error) {
	switch part.Kind {
	case "":
		return part.Text, nil
	case "settings":
		value := v.Settings.Member(part.Name)
		if value == nil {
			return "", fmt.Errorf("the setting %q has no value", part.Name)
		}
		return ArgumentText(value), nil
	case "derived":
		text, ok := v.Derived[part.Name]
		if !ok {
			return "", fmt.Errorf("the derived value %q has no value", part.Name)
		}
		return text, nil
	case "files":
		paths := v.Files[part.Name]
		if len(paths) == 0 {
			return "", fmt.Errorf("the setting %q has no file", part.Name)
		}
		return paths[0], nil
	case "site":
		path := v.Site[part.Name]
		if path == "" {
			return "", NoSite(part.Name)
		}
		return path, nil
	case "item":
		if v.item == nil {
			return "", errors.New("{item} is only available for the items of a list")
		}
		return *v.item, nil
	}
	text := v.Named[part.Kind]
	if text == "" {
		return "", fmt.Errorf("{%s} has no path here", part.Kind)
	}
	return text, nil
}

// items returns the items of a list as text, or nil if the list has no value.
func (v *Values) items(list Part) (texts []string, err error) {
	if list.Kind == "files" {
		return v.Files[list.Name], nil
	}
	value := v.Settings.Member(list.Name)
	switch {
	case value == nil || value.Kind == strictjson.Null:
		return nil, nil
	case value.Kind != strictjson.Array:
		return nil, fmt.Errorf("the setting %q is not a list", list.Name)
	}
	for _, item := range value.Items {
		texts = append(texts, ArgumentText(item))
	}
	return texts, nil
}

// NoSite is the error for an undefined site path; its value is the name.
type NoSite string

func (n NoSite) Error() string {
	return fmt.Sprintf("the configuration has no path for %s: set %s in [site.paths]", string(n), string(n))
}

// ArgumentText formats a value for use in an argument: a string unchanged, a number in
// plain notation, a list or object as compact JSON.
func ArgumentText(v *strictjson.Value) string {
	if v.Kind == strictjson.String {
		return v.Text
	}
	return string(strictjson.AppendPlain(nil, v))
}
