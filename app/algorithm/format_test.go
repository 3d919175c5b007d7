package algorithm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"molrun/app/base/strictjson"
)

// typesIn returns the types of a property, or nil if any type is allowed.
func typesIn(property *strictjson.Value) (types []string) {
	if ref := property.Member("$ref"); ref != nil {
		return typesIn(loadFormat().partAt(ref.Text))
	}
	if property.Member("enum") != nil {
		return []string{"string"}
	}
	switch t := property.Member("type"); {
	case t == nil:
		return nil
	case t.Kind == strictjson.String:
		return []string{t.Text}
	default:
		for _, item := range t.Items {
			types = append(types, item.Text)
		}
	}
	return types
}

// For every key, a value of the wrong type, a missing required key and an unknown key are
// each reported with their line.
func TestEveryKeyHasItsType(t *testing.T) {
	check := func(before string, properties *strictjson.Value) {
		for _, m := range properties.Members {
			types := typesIn(m.Value)
			wrong := "1.5"
			if slices.Contains(types, "number") {
				wrong = "true"
			}
			if len(types) == 0 || m.Name == "type" && before != "" {
				continue
			}
			text := before + m.Name + " = " + wrong + "\n"
			_, mistakes := Parse("a.toml", []byte(text))
			line, said := strings.Count(text, "\n"), m.Name+" must be "
			if !slices.ContainsFunc(mistakes, func(found Mistake) bool { return found.Line == line && strings.HasPrefix(found.Msg, said) }) {
				t.Errorf("%q: %v, want line %d: %s", text, mistakes, line, said)
			}
		}
	}
	root := loadFormat().tree.Member("properties")
	check("", root)
	tables, required := 0, 0
	for _, m := range root.Members {
		before, table := fmt.Sprintf("format = 1\n[%s]\n", m.Name), m.Value
		if items := m.Value.Member("items"); items != nil {
			before, table = fmt.Sprintf("format = 1\n[[%s]]\n", m.Name), items
		}
		if ref := table.Member("$ref"); ref != nil {
			table = loadFormat().partAt(ref.Text)
		}
		if properties := table.Member("properties"); properties != nil && m.Name != "command" {
			tables++
			check(before, properties)
			required += wantMistakes(t, before, table)
		}
	}
	if tables < 15 || required < 20 {
		t.Errorf("%d tables with %d required keys: the schema was not read, or lacks one", tables, required)
	}
}

// wantMistakes checks the errors for a table that contains only an unknown key. It
// returns the number of missing keys.
func wantMistakes(t *testing.T, before string, table *strictjson.Value) (required int) {
	t.Helper()
	said := []string{"3: unknown key \"zzzzzz\""}
	if keys := table.Member("required"); keys != nil {
		for _, key := range keys.Items {
			said = append(said, "2: "+key.Text+" is missing")
		}
		required = len(keys.Items)
	}
	if free := table.Member("additionalProperties"); free != nil && free.Kind == strictjson.Object {
		said = said[1:]
	}
	_, mistakes := Parse("a.toml", []byte(before+"zzzzzz = 1\n"))
	for _, want := range said {
		if !slices.ContainsFunc(mistakes, func(m Mistake) bool { return strings.HasPrefix(m.String(), "a.toml:"+want) }) {
			t.Errorf("%q: %v, want %s", before, mistakes, want)
		}
	}
	return required
}

// Messages about keys name the table that contains them.
func TestEveryTableHasAName(t *testing.T) {
	var walk func(path string, part *strictjson.Value)
	walk = func(path string, part *strictjson.Value) {
		if part.Member("required") != nil && part.Member("required").Kind == strictjson.Array && textOf(part, "title") == "" {
			t.Errorf("%s has no title", path)
		}
		for _, m := range part.Members {
			walk(path+"/"+m.Name, m.Value)
		}
	}
	walk("", loadFormat().tree)
}
