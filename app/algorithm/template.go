package algorithm

import (
	"fmt"
	"slices"
	"strings"

	"molrun/app/nearest"
)

// template is a text of an algorithm file with its placeholders found.
type template []templatePart

// templatePart is literal text, or a placeholder: {settings.NAME} and
// {files.NAME} have a kind and a name, {out} and its like a kind only.
type templatePart struct {
	text       string
	kind, name string
}

// placeholders lists what may stand in braces, for suggestions.
var placeholders = []string{"settings", "files", "settings_file", "out", "work", "cpus", "gpus", "molrun"}

// parseTemplate finds the placeholders of a text and says what is wrong with
// it. A brace that is meant as such is written twice.
func parseTemplate(s string) (t template, wrong []string) {
	var text strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			text.WriteString(s)
			break
		}
		text.WriteString(s[:i])
		if strings.HasPrefix(s[i+1:], s[i:i+1]) {
			text.WriteByte(s[i])
			s = s[i+2:]
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 0 {
			wrong = append(wrong, fmt.Sprintf("a brace without its partner in %q: write %s where it is meant as text", s, strings.Repeat(s[i:i+1], 2)))
			return nil, wrong
		}
		part, msg := parsePlaceholder(s[i+1 : i+end])
		if msg != "" {
			wrong = append(wrong, msg)
		}
		if text.Len() > 0 {
			t = append(t, templatePart{text: text.String()})
			text.Reset()
		}
		t = append(t, part)
		s = s[i+end+1:]
	}
	if text.Len() > 0 {
		t = append(t, templatePart{text: text.String()})
	}
	return t, wrong
}

func parsePlaceholder(s string) (templatePart, string) {
	kind, name, named := strings.Cut(s, ".")
	wantsName := kind == "settings" || kind == "files"
	switch {
	case wantsName && name != "":
		return templatePart{kind: kind, name: name}, ""
	case wantsName:
		return templatePart{}, fmt.Sprintf("{%s} needs the name of a parameter: {%s.NAME}", s, kind)
	case !named && slices.Contains(placeholders, kind):
		return templatePart{kind: kind}, ""
	}
	msg := fmt.Sprintf("unknown placeholder {%s}", s)
	if near := nearest.Of(kind, placeholders); near != "" {
		return templatePart{}, msg + fmt.Sprintf("; did you mean {%s}?", strings.TrimSuffix(near+"."+name, "."))
	}
	return templatePart{}, msg + "; where a brace is meant as text, write it twice: {{ and }}"
}

// literal gives the text of a template without placeholders.
func (t template) literal() (string, bool) {
	switch {
	case len(t) == 0:
		return "", true
	case len(t) == 1 && t[0].kind == "":
		return t[0].text, true
	}
	return "", false
}

// setting gives NAME of a template that is {settings.NAME} and nothing else.
func (t template) setting() (string, bool) {
	if len(t) == 1 && t[0].kind == "settings" {
		return t[0].name, true
	}
	return "", false
}
