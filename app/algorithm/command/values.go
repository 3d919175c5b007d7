package command

import (
	"fmt"
	"strings"

	"molrun/app/strictjson"
)

// Values are what the placeholders of one job stand for.
type Values struct {
	Settings *strictjson.Value // normalized
	Files    map[string]string // paths of {files.NAME}
	Named    map[string]string // of the placeholders without a name, such as {out}
}

// Expand replaces the placeholders.
func (t Template) Expand(v *Values) (string, error) {
	var b strings.Builder
	for _, part := range t {
		text, err := v.of(part)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func (v *Values) of(part Part) (string, error) {
	switch part.Kind {
	case "":
		return part.Text, nil
	case "settings":
		value := v.Settings.Member(part.Name)
		if value == nil {
			return "", fmt.Errorf("the setting %q has no value", part.Name)
		}
		return Text(value), nil
	case "files":
		path := v.Files[part.Name]
		if path == "" {
			return "", fmt.Errorf("the file of the setting %q is not there", part.Name)
		}
		return path, nil
	}
	text := v.Named[part.Kind]
	if text == "" {
		return "", fmt.Errorf("{%s} has no path here", part.Kind)
	}
	return text, nil
}

// Text returns a value as part of an argument: a string as it is, a number in
// plain digits, a list or an object as compact JSON.
func Text(v *strictjson.Value) string {
	if v.Kind == strictjson.String {
		return v.Text
	}
	return string(strictjson.AppendPlain(nil, v))
}
