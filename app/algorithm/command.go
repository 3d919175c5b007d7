package algorithm

import (
	"cmp"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"molrun/app/nearest"
	"molrun/app/strictjson"
	"molrun/app/tomltree"
)

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// maxStepName bounds the name of a step, which is shown.
const maxStepName = 64

// readStep is one [[steps]], its placeholders found.
type step struct {
	name    string
	command []argument
	stdout  template // nil: the log
}

// argument is one element of a command: one argument, or several that are
// there only if a setting has a value.
type argument struct {
	text template
	when string // setting; "": always text
	then []template
}

type envVariable struct {
	name string
	text template
}

func readSteps(r *tomltree.Reader, a *File, root *tomltree.Node) []step {
	command, tables := root.Member("command"), root.Member("steps")
	switch {
	case command == nil && tables == nil:
		r.Mistakef(1, "nothing to run: write a command or [[steps]]")
	case command != nil && tables != nil:
		r.Mistakef(command.Line, "write either command or [[steps]], not both")
	case tables != nil && root.Member("stdout") != nil:
		r.Mistakef(root.Member("stdout").Line, "stdout belongs into one of the [[steps]]")
	}
	if command != nil {
		return []step{readStep(r, a, root, "")}
	}
	var all []step
	for i, t := range r.Tables(root, "steps") {
		r.Known(t, "[[steps]]", []string{"name", "command", "stdout"})
		name := cmp.Or(r.Line(t, "name"), "step "+strconv.Itoa(i+1))
		if len(name) > maxStepName {
			r.Mistakef(t.Member("name").Line, "the name of a step may have %d bytes, got %d", maxStepName, len(name))
		}
		all = append(all, readStep(r, a, t, name))
		noteRepeated(r, all, t)
	}
	if tables != nil && tables.Kind == strictjson.Array && len(tables.Items) == 0 {
		r.Mistakef(tables.Line, "[[steps]] has no step")
	}
	return all
}

// noteRepeated notes what the last step shares with one before it.
func noteRepeated(r *tomltree.Reader, all []step, t *tomltree.Node) {
	last := all[len(all)-1]
	for _, s := range all[:len(all)-1] {
		if s.name == last.name {
			r.Mistakef(t.Line, "two steps are named %q", s.name)
		}
		if s.stdout != nil && slices.Equal(s.stdout, last.stdout) {
			r.Mistakef(t.Member("stdout").Line, "an earlier step writes to %s too and would be lost", t.Member("stdout").Text)
		}
	}
}

func readStep(r *tomltree.Reader, a *File, t *tomltree.Node, name string) step {
	s := step{name: name, command: readCommand(r, a, t, placeholders)}
	if n := t.Member("stdout"); n != nil && r.Is(n, "stdout", strictjson.String) {
		s.stdout = readStdout(r, n)
	}
	return s
}

// readStdout reads where a step's output goes: a fixed path below {out} or
// {work}, so that no setting can point it elsewhere.
func readStdout(r *tomltree.Reader, n *tomltree.Node) template {
	t, wrong := parseTemplate(n.Text)
	if len(wrong) == 0 && len(t) == 2 && (t[0].kind == "out" || t[0].kind == "work") && t[1].kind == "" {
		rest, found := strings.CutPrefix(t[1].text, "/")
		if found && filepath.IsLocal(rest) && path.Clean(rest) == rest && rest != "." {
			return t
		}
	}
	r.Mistakef(n.Line, `stdout must be a file below {out} or {work}, such as "{out}/log.txt", without other placeholders; got %q`, n.Text)
	return nil
}

// readCommand reads the arguments of a program. Allowed are the placeholders that
// mean something there.
func readCommand(r *tomltree.Reader, a *File, t *tomltree.Node, allowed []string) []argument {
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
	c := commandReader{Reader: r, algorithm: a, allowed: allowed}
	var all []argument
	for i, item := range n.Items {
		all = append(all, c.argument(item, i == 0))
	}
	return all
}

// commandReader reads what has placeholders.
type commandReader struct {
	*tomltree.Reader
	algorithm *File
	allowed   []string
}

func (c *commandReader) argument(n *tomltree.Node, program bool) argument {
	switch {
	case n.Kind == strictjson.String:
		text := c.template(n, "")
		if program {
			c.program(n, text)
		}
		return argument{text: text}
	case program:
		c.Mistakef(n.Line, "command must begin with the name of a program")
		return argument{}
	case n.Kind != strictjson.Object:
		c.Mistakef(n.Line, `each element of command must be a text in quotes or { if = "settings.NAME", args = [...] }, got %s`, tomltree.KindName(n.Kind))
		return argument{}
	}
	return c.conditional(n)
}

func (c *commandReader) conditional(n *tomltree.Node) argument {
	c.Known(n, "this part of command", []string{"if", "args"})
	if n.Member("if") == nil || n.Member("args") == nil {
		c.Mistakef(n.Line, `a conditional part needs both: { if = "settings.NAME", args = [...] }`)
	}
	arg := argument{}
	if when := n.Member("if"); when != nil && c.Is(when, "if", strictjson.String) {
		name, ok := strings.CutPrefix(when.Text, "settings.")
		switch arg.when = name; {
		case !ok:
			c.Mistakef(when.Line, `if must name a setting: "settings.NAME", got %q`, when.Text)
		case c.algorithm.parameter(name) == nil:
			noteUnknownParameter(c.Reader, c.algorithm, when.Line, name)
		}
	}
	args := n.Member("args")
	if args == nil || !c.Is(args, "args", strictjson.Array) {
		return arg
	}
	for _, item := range args.Items {
		if c.Is(item, "each of args", strictjson.String) {
			arg.then = append(arg.then, c.template(item, arg.when))
		}
	}
	return arg
}

// template reads a text with placeholders, some of which may have a value
// only because the setting "when" has one.
func (c *commandReader) template(n *tomltree.Node, when string) template {
	t, wrong := parseTemplate(n.Text)
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

func (c *commandReader) placeholder(line int, part templatePart, when string) {
	if part.kind == "" {
		return
	}
	if !slices.Contains(c.allowed, part.kind) {
		c.Mistakef(line, "{%s} means nothing here: only %s do", strings.TrimSuffix(part.kind+"."+part.name, "."), "{"+strings.Join(c.allowed, "}, {")+"}")
		return
	}
	if part.name == "" {
		return
	}
	p := c.algorithm.parameter(part.name)
	switch {
	case p == nil:
		noteUnknownParameter(c.Reader, c.algorithm, line, part.name)
	case part.kind == "files" && len(p.File) == 0:
		c.Mistakef(line, "the parameter %q is no file: write {settings.%s}", p.Name, p.Name)
	case part.kind == "settings" && len(p.File) > 0:
		c.Mistakef(line, "the parameter %q is a file: write {files.%s} for its path", p.Name, p.Name)
	case p.optional() && when != p.Name:
		c.Mistakef(line, `the setting %q may have no value: put it into { if = "settings.%s", args = [...] }, make it required or give it a default`, p.Name, p.Name)
	}
	if p != nil {
		p.argument = true
	}
}

// program notes programs that a setting chooses and those that depend on the
// folder in which the service was started.
func (c *commandReader) program(n *tomltree.Node, t template) {
	for _, part := range t {
		if part.kind == "settings" || part.kind == "files" {
			c.Mistakef(n.Line, "a setting cannot choose the program to run")
			return
		}
	}
	name, plain := t.literal()
	switch {
	case plain && strings.TrimSpace(name) == "":
		c.Mistakef(n.Line, "command must begin with the name of a program")
	case plain && strings.Contains(name, "/") && !filepath.IsAbs(name):
		c.Mistakef(n.Line, "the program %q must be a plain name, looked for on PATH, or an absolute path", name)
	}
}

func noteUnknownParameter(r *tomltree.Reader, a *File, line int, name string) {
	if near := nearest.Of(name, a.parameterNames()); near != "" {
		r.Mistakef(line, "no parameter is named %q; did you mean %q?", name, near)
		return
	}
	r.Mistakef(line, "no parameter is named %q", name)
}

func readEnvironment(r *tomltree.Reader, a *File, root *tomltree.Node) []envVariable {
	t := r.Table(root, "env")
	if t == nil {
		return nil
	}
	c := commandReader{Reader: r, algorithm: a, allowed: placeholders}
	var all []envVariable
	for _, m := range t.Members {
		if !variablePattern.MatchString(m.Name) {
			r.Mistakef(m.Line, "%q is no name of an environment variable: use letters, digits and _", m.Name)
		}
		switch m.Value.Kind {
		case strictjson.String:
			all = append(all, envVariable{m.Name, c.template(m.Value, "")})
		case strictjson.Number, strictjson.Bool:
			all = append(all, envVariable{m.Name, template{{text: m.Value.Text}}})
		default:
			r.Is(m.Value, m.Name, strictjson.String)
		}
	}
	return all
}
