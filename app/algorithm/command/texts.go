package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"molrun/app/base/strictjson"
)

// maxText limits the size of a generated file.
const maxText = 16 << 20

// FileText is the parsed template of a file.
type FileText struct {
	Uses []Use

	template *template.Template
}

// Use is a value that a template refers to, such as settings.steps. Kind is the part
// before the dot.
type Use struct{ Kind, Name string }

var functions = template.FuncMap{
	"join": func(sep string, list []any) string {
		all := make([]string, len(list))
		for i, v := range list {
			all[i] = fmt.Sprint(v)
		}
		return strings.Join(all, sep)
	},
	"json": func(v any) (string, error) {
		b, err := json.Marshal(v)
		return string(b), err
	},
	"upper": strings.ToUpper,
	"lower": strings.ToLower,
}

// ParseFileText parses the template of a file.
func ParseFileText(text string) (*FileText, error) {
	t, err := template.New("text").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: text:"))
	}
	made := &FileText{template: t}
	made.walk(t.Root)
	return made, nil
}

// walk collects the values that a node of the template refers to by full name. Within
// range and with, names can be relative to the current value.
func (t *FileText) walk(node parse.Node) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, child := range n.Nodes {
				t.walk(child)
			}
		}
	case *parse.ActionNode:
		t.walk(n.Pipe)
	case *parse.IfNode:
		t.branch(&n.BranchNode)
	case *parse.RangeNode:
		t.branch(&n.BranchNode)
	case *parse.WithNode:
		t.branch(&n.BranchNode)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			for _, argument := range c.Args {
				t.walk(argument)
			}
		}
	case *parse.FieldNode:
		t.use(n.Ident)
	case *parse.VariableNode:
		t.use(n.Ident[1:])
	}
}

func (t *FileText) branch(n *parse.BranchNode) {
	t.walk(n.Pipe)
	t.walk(n.List)
	t.walk(n.ElseList)
}

func (t *FileText) use(names []string) {
	if len(names) >= 2 {
		t.Uses = append(t.Uses, Use{names[0], names[1]})
	}
}

// noValue is what the template engine writes for a missing value.
const noValue = "<no value>"

// Fill executes the template. Values must be strings or results of Native.
func (t *FileText) Fill(values map[string]any) (string, error) {
	var b bounded
	if err := t.template.Execute(&b, values); err != nil {
		return "", errors.New(strings.TrimPrefix(err.Error(), "template: text:"))
	}
	if strings.Contains(b.String(), noValue) {
		return "", errors.New("it uses a setting that has no value: test it with {{if .settings.NAME}}")
	}
	return b.String(), nil
}

// bounded is a string builder with a size limit.
type bounded struct{ strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxText {
		return 0, fmt.Errorf("it is longer than %d MiB", maxText>>20)
	}
	return b.Builder.Write(p)
}

// number is a number formatted in plain notation.
type number float64

// String implements fmt.Stringer.
func (n number) String() string { return strconv.FormatFloat(float64(n), 'f', -1, 64) }

// Native converts a JSON value for use in templates.
func Native(v *strictjson.Value) any { return v.Native(func(n float64) any { return number(n) }) }
