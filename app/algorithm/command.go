package algorithm

import (
	"path/filepath"
	"slices"
	"strings"

	"molrun/app/algorithm/command"
	"molrun/app/strictjson"
	"molrun/app/tomltree"
)

// readCommand reads the arguments of a program. allowed are the placeholders that
// mean something there.
func readCommand(r *tomltree.Reader, parameters Parameters, t *tomltree.Node, allowed []string) []command.Argument {
	n := t.Member("command")
	if n == nil {
		r.Mistakef(t.Line, "command is missing")
		return nil
	}
	if !r.Is(n, "command", strictjson.Array) {
		return nil
	}
	if len(n.Items) == 0 {
		r.Mistakef(n.Line, "command needs at least the name of a program")
		return nil
	}
	c := commandReader{Reader: r, parameters: parameters, allowed: allowed}
	var all []command.Argument
	for i, item := range n.Items {
		all = append(all, c.argument(item, i == 0))
	}
	return all
}

// commandReader reads texts with placeholders.
type commandReader struct {
	*tomltree.Reader
	parameters Parameters
	allowed    []string
}

func (c *commandReader) argument(n *tomltree.Node, program bool) command.Argument {
	switch {
	case n.Kind == strictjson.String:
		text := c.template(n, "")
		if program {
			c.program(n, text)
		}
		return command.Argument{Text: text}
	case program:
		c.Mistakef(n.Line, "command must begin with the name of a program")
		return command.Argument{}
	case n.Kind != strictjson.Object:
		c.Mistakef(n.Line, `each element of command must be a text in quotes or { if = "settings.NAME", args = [...] }, got %s`, tomltree.KindName(n.Kind))
		return command.Argument{}
	}
	return c.conditional(n)
}

func (c *commandReader) conditional(n *tomltree.Node) command.Argument {
	c.Known(n, "this part of command", []string{"if", "args"})
	if n.Member("if") == nil || n.Member("args") == nil {
		c.Mistakef(n.Line, `a conditional part needs both: { if = "settings.NAME", args = [...] }`)
	}
	arg := command.Argument{}
	if when := n.Member("if"); when != nil && c.Is(when, "if", strictjson.String) {
		name, ok := strings.CutPrefix(when.Text, "settings.")
		switch arg.When = name; {
		case !ok:
			c.Mistakef(when.Line, `if must name a setting: "settings.NAME", got %q`, when.Text)
		case c.parameters.Named(name) == nil:
			c.parameters.noteUnknown(c.Reader, when.Line, name)
		}
	}
	args := n.Member("args")
	if args == nil || !c.Is(args, "args", strictjson.Array) {
		return arg
	}
	for _, item := range args.Items {
		if c.Is(item, "each of args", strictjson.String) {
			arg.Then = append(arg.Then, c.template(item, arg.When))
		}
	}
	return arg
}

// template reads a text with placeholders. It stands where the setting "when"
// has a value.
func (c *commandReader) template(n *tomltree.Node, when string) command.Template {
	t, wrong := command.Parse(n.Text)
	for _, msg := range wrong {
		c.Mistakef(n.Line, "%s", msg)
	}
	if strings.ContainsRune(n.Text, 0) {
		c.Mistakef(n.Line, "an argument must not contain a NUL character")
	}
	for _, part := range t {
		c.placeholder(n.Line, part, when)
	}
	return t
}

func (c *commandReader) placeholder(line int, part command.Part, when string) {
	if part.Kind == "" {
		return
	}
	if !slices.Contains(c.allowed, part.Kind) {
		c.Mistakef(line, "{%s} means nothing here: only %s do", strings.TrimSuffix(part.Kind+"."+part.Name, "."), "{"+strings.Join(c.allowed, "}, {")+"}")
		return
	}
	if part.Name == "" {
		return
	}
	p := c.parameters.Named(part.Name)
	switch {
	case p == nil:
		c.parameters.noteUnknown(c.Reader, line, part.Name)
	case part.Kind == "files" && len(p.File) == 0:
		c.Mistakef(line, "the parameter %q is no file: write {settings.%s}", p.Name, p.Name)
	case part.Kind == "settings" && len(p.File) > 0:
		c.Mistakef(line, "the parameter %q is a file: write {files.%s} for its path", p.Name, p.Name)
	case p.optional() && when != p.Name:
		c.Mistakef(line, `the setting %q may have no value: put it into { if = "settings.%s", args = [...] }, make it required or give it a default`, p.Name, p.Name)
	}
	if p != nil {
		p.argument = true
	}
}

// program notes a program chosen by a setting, and one that depends on the
// directory in which the service was started.
func (c *commandReader) program(n *tomltree.Node, t command.Template) {
	for _, part := range t {
		if part.Kind == "settings" || part.Kind == "files" {
			c.Mistakef(n.Line, "a setting cannot choose the program to run")
			return
		}
	}
	name, plain := t.Literal()
	switch {
	case plain && strings.TrimSpace(name) == "":
		c.Mistakef(n.Line, "command must begin with the name of a program")
	case plain && strings.Contains(name, "/") && !filepath.IsAbs(name):
		c.Mistakef(n.Line, "the program %q must be a plain name, looked for on PATH, or an absolute path", name)
	}
}
