package command

import (
	"errors"
	"fmt"
	"strings"

	"molrun/app/algorithm/expression"
	"molrun/app/base/strictjson"
)

// Values are what the placeholders of one job stand for.
type Values struct {
	Settings *strictjson.Value   // normalized
	Derived  map[string]string   // texts of {derived.NAME}
	Files    map[string][]string // paths of {files.NAME}, many of a list
	Site     map[string]string   // paths of {site.NAME}
	Named    map[string]string   // of the placeholders without a name, such as {out}
	Computed expression.Values   // what conditions read

	item *string // nil: {item} means nothing
}

// withItem returns the values for one item of a list.
func (v *Values) withItem(text string) *Values {
	with := *v
	with.item = &text
	return &with
}

// Expand replaces the placeholders.
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
			return "", fmt.Errorf("the file of the setting %q is not there", part.Name)
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
			return "", errors.New("{item} means nothing outside of a list")
		}
		return *v.item, nil
	}
	text := v.Named[part.Kind]
	if text == "" {
		return "", fmt.Errorf("{%s} has no path here", part.Kind)
	}
	return text, nil
}

// items returns the texts of a list, none where it has no value.
func (v *Values) items(list Part) (texts []string, err error) {
	if list.Kind == "files" {
		return v.Files[list.Name], nil
	}
	value := v.Settings.Member(list.Name)
	switch {
	case value == nil || value.Kind == strictjson.Null:
		return nil, nil
	case value.Kind != strictjson.Array:
		return nil, fmt.Errorf("the setting %q is no list", list.Name)
	}
	for _, item := range value.Items {
		texts = append(texts, ArgumentText(item))
	}
	return texts, nil
}

// NoSite is what is wrong where a path of the site is not known. It is its name.
type NoSite string

func (n NoSite) Error() string {
	return fmt.Sprintf("the configuration does not say where %s is: set %s in [site.paths]", string(n), string(n))
}

// ArgumentText returns a value as part of an argument: a string as it is, a number in
// plain digits, a list or an object as compact JSON.
func ArgumentText(v *strictjson.Value) string {
	if v.Kind == strictjson.String {
		return v.Text
	}
	return string(strictjson.AppendPlain(nil, v))
}
