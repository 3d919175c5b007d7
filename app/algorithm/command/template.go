// Package command implements the commands of algorithm files: arguments with
// Placeholders, the values of placeholders, and the templates of files that commands
// read.
package command

import (
	"fmt"
	"slices"
	"strings"

	"molrun/app/base/plaintext"
)

// Template is a string of an algorithm file, split at its placeholders.
type Template []Part

// Part is literal text or a placeholder. {settings.NAME}, {derived.NAME}, {files.NAME}
// and {site.NAME} have a kind and a name; the others, such as {out}, have only a kind.
type Part struct {
	Text       string
	Kind, Name string
}

// Placeholders lists the kinds of placeholders.
var Placeholders = []string{"settings", "derived", "files", "settings_file", "out", "work", "folder", "site", "cpus", "gpus", "molrun"}

// Item is an additional kind: the current item of a list for which an argument is
// repeated.
const Item = "item"

// ParseTemplate splits a string at its placeholders and returns the errors in it. A
// literal brace is written twice.
func ParseTemplate(s string) (t Template, wrong []string) {
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
			wrong = append(wrong, fmt.Sprintf("unmatched brace in %q: write %s for a literal brace", s, strings.Repeat(s[i:i+1], 2)))
			return nil, wrong
		}
		part, msg := parsePlaceholder(s[i+1 : i+end])
		if msg != "" {
			wrong = append(wrong, msg)
		}
		if text.Len() > 0 {
			t = append(t, Part{Text: text.String()})
			text.Reset()
		}
		t = append(t, part)
		s = s[i+end+1:]
	}
	if text.Len() > 0 {
		t = append(t, Part{Text: text.String()})
	}
	return t, wrong
}

func parsePlaceholder(s string) (Part, string) {
	kind, name, named := strings.Cut(s, ".")
	wantsName := kind == "settings" || kind == "files" || kind == "derived" || kind == "site"
	switch {
	case wantsName && name != "":
		return Part{Kind: kind, Name: name}, ""
	case kind == "site":
		return Part{}, fmt.Sprintf("{%s} needs a name from [site.paths] in the configuration: {site.NAME}", s)
	case wantsName:
		return Part{}, fmt.Sprintf("{%s} needs the name of a parameter: {%s.NAME}", s, kind)
	case !named && (kind == Item || slices.Contains(Placeholders, kind)):
		return Part{Kind: kind}, ""
	}
	msg := fmt.Sprintf("unknown placeholder {%s}", s)
	if near := plaintext.Nearest(kind, Placeholders); near != "" {
		return Part{}, msg + fmt.Sprintf("; did you mean {%s}?", strings.TrimSuffix(near+"."+name, "."))
	}
	return Part{}, msg + "; double a literal brace: {{ and }}"
}

// Literal returns the text of a template, and whether it has no placeholders.
func (t Template) Literal() (string, bool) {
	switch {
	case len(t) == 0:
		return "", true
	case len(t) == 1 && t[0].Kind == "":
		return t[0].Text, true
	}
	return "", false
}

// Setting returns NAME if the template is exactly {settings.NAME}.
func (t Template) Setting() (string, bool) {
	if len(t) == 1 && t[0].Kind == "settings" {
		return t[0].Name, true
	}
	return "", false
}
