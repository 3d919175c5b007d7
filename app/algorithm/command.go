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
)

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// maxStepName bounds the name of a step, which is shown.
const maxStepName = 64

// step is one [[steps]], its placeholders found.
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

func (r *reader) steps(a *File, root *tomlNode) []step {
	command, tables := root.member("command"), root.member("steps")
	switch {
	case command == nil && tables == nil:
		r.mistake(1, "nothing to run: write a command or [[steps]]")
	case command != nil && tables != nil:
		r.mistake(command.line, "write either command or [[steps]], not both")
	case tables != nil && root.member("stdout") != nil:
		r.mistake(root.member("stdout").line, "stdout belongs into one of the [[steps]]")
	}
	if command != nil {
		return []step{r.step(a, root, "")}
	}
	var all []step
	for i, t := range r.tables(root, "steps") {
		r.known(t, "[[steps]]", []string{"name", "command", "stdout"})
		name := cmp.Or(r.line(t, "name"), "step "+strconv.Itoa(i+1))
		if len(name) > maxStepName {
			r.mistake(t.member("name").line, "the name of a step may have %d bytes, got %d", maxStepName, len(name))
		}
		all = append(all, r.step(a, t, name))
		r.distinct(all, t)
	}
	if tables != nil && tables.kind == strictjson.Array && len(tables.items) == 0 {
		r.mistake(tables.line, "[[steps]] has no step")
	}
	return all
}

// distinct notes what the last step shares with one before it.
func (r *reader) distinct(all []step, t *tomlNode) {
	last := all[len(all)-1]
	for _, s := range all[:len(all)-1] {
		if s.name == last.name {
			r.mistake(t.line, "two steps are named %q", s.name)
		}
		if s.stdout != nil && slices.Equal(s.stdout, last.stdout) {
			r.mistake(t.member("stdout").line, "an earlier step writes to %s too and would be lost", t.member("stdout").text)
		}
	}
}

func (r *reader) step(a *File, t *tomlNode, name string) step {
	s := step{name: name, command: r.command(a, t, placeholders)}
	if n := t.member("stdout"); n != nil && r.is(n, "stdout", strictjson.String) {
		s.stdout = r.stdout(n)
	}
	return s
}

// stdout reads where a step's output goes: a fixed path below {out} or
// {work}, so that no setting can point it elsewhere.
func (r *reader) stdout(n *tomlNode) template {
	t, wrong := parseTemplate(n.text)
	if len(wrong) == 0 && len(t) == 2 && (t[0].kind == "out" || t[0].kind == "work") && t[1].kind == "" {
		rest, found := strings.CutPrefix(t[1].text, "/")
		if found && filepath.IsLocal(rest) && path.Clean(rest) == rest && rest != "." {
			return t
		}
	}
	r.mistake(n.line, `stdout must be a file below {out} or {work}, such as "{out}/log.txt", without other placeholders; got %q`, n.text)
	return nil
}

// command reads the arguments of a program. Allowed are the placeholders that
// mean something there.
func (r *reader) command(a *File, t *tomlNode, allowed []string) []argument {
	n := t.member("command")
	if n == nil {
		r.mistake(t.line, "command is missing")
		return nil
	}
	if !r.is(n, "command", strictjson.Array) {
		return nil
	}
	if len(n.items) == 0 {
		r.mistake(n.line, "command needs at least the name of a program")
		return nil
	}
	c := commandReader{reader: r, algorithm: a, allowed: allowed}
	var all []argument
	for i, item := range n.items {
		all = append(all, c.argument(item, i == 0))
	}
	return all
}

// commandReader reads what has placeholders.
type commandReader struct {
	*reader
	algorithm *File
	allowed   []string
}

func (c *commandReader) argument(n *tomlNode, program bool) argument {
	switch {
	case n.kind == strictjson.String:
		text := c.template(n, "")
		if program {
			c.program(n, text)
		}
		return argument{text: text}
	case program:
		c.mistake(n.line, "command must begin with the name of a program")
		return argument{}
	case n.kind != strictjson.Object:
		c.mistake(n.line, `each element of command must be a text in quotes or { if = "settings.NAME", args = [...] }, got %s`, kindName(n.kind))
		return argument{}
	}
	return c.conditional(n)
}

func (c *commandReader) conditional(n *tomlNode) argument {
	c.known(n, "this part of command", []string{"if", "args"})
	if n.member("if") == nil || n.member("args") == nil {
		c.mistake(n.line, `a conditional part needs both: { if = "settings.NAME", args = [...] }`)
	}
	arg := argument{}
	if when := n.member("if"); when != nil && c.is(when, "if", strictjson.String) {
		name, ok := strings.CutPrefix(when.text, "settings.")
		switch arg.when = name; {
		case !ok:
			c.mistake(when.line, `if must name a setting: "settings.NAME", got %q`, when.text)
		case c.algorithm.parameter(name) == nil:
			c.unknownParameter(c.algorithm, when.line, name)
		}
	}
	args := n.member("args")
	if args == nil || !c.is(args, "args", strictjson.Array) {
		return arg
	}
	for _, item := range args.items {
		if c.is(item, "each of args", strictjson.String) {
			arg.then = append(arg.then, c.template(item, arg.when))
		}
	}
	return arg
}

// template reads a text with placeholders, some of which may have a value
// only because the setting "when" has one.
func (c *commandReader) template(n *tomlNode, when string) template {
	t, wrong := parseTemplate(n.text)
	for _, msg := range wrong {
		c.mistake(n.line, "%s", msg)
	}
	if strings.ContainsRune(n.text, 0) {
		c.mistake(n.line, "an argument must not contain a NUL character")
	}
	for _, part := range t {
		c.placeholder(n.line, part, when)
	}
	return t
}

func (c *commandReader) placeholder(line int, part templatePart, when string) {
	if part.kind == "" {
		return
	}
	if !slices.Contains(c.allowed, part.kind) {
		c.mistake(line, "{%s} means nothing here: only %s do", strings.TrimSuffix(part.kind+"."+part.name, "."), "{"+strings.Join(c.allowed, "}, {")+"}")
		return
	}
	if part.name == "" {
		return
	}
	p := c.algorithm.parameter(part.name)
	switch {
	case p == nil:
		c.unknownParameter(c.algorithm, line, part.name)
	case part.kind == "files" && len(p.File) == 0:
		c.mistake(line, "the parameter %q is no file: write {settings.%s}", p.Name, p.Name)
	case part.kind == "settings" && len(p.File) > 0:
		c.mistake(line, "the parameter %q is a file: write {files.%s} for its path", p.Name, p.Name)
	case p.optional() && when != p.Name:
		c.mistake(line, `the setting %q may have no value: put it into { if = "settings.%s", args = [...] }, make it required or give it a default`, p.Name, p.Name)
	}
	if p != nil {
		p.argument = true
	}
}

// program notes programs that a setting chooses and those that depend on the
// folder in which the service was started.
func (c *commandReader) program(n *tomlNode, t template) {
	for _, part := range t {
		if part.kind == "settings" || part.kind == "files" {
			c.mistake(n.line, "a setting cannot choose the program to run")
			return
		}
	}
	name, plain := t.literal()
	switch {
	case plain && strings.TrimSpace(name) == "":
		c.mistake(n.line, "command must begin with the name of a program")
	case plain && strings.Contains(name, "/") && !filepath.IsAbs(name):
		c.mistake(n.line, "the program %q must be a plain name, looked for on PATH, or an absolute path", name)
	}
}

func (r *reader) unknownParameter(a *File, line int, name string) {
	if near := nearest.Of(name, a.parameterNames()); near != "" {
		r.mistake(line, "no parameter is named %q; did you mean %q?", name, near)
		return
	}
	r.mistake(line, "no parameter is named %q", name)
}

func (r *reader) env(a *File, root *tomlNode) []envVariable {
	t := r.table(root, "env")
	if t == nil {
		return nil
	}
	c := commandReader{reader: r, algorithm: a, allowed: placeholders}
	var all []envVariable
	for _, m := range t.members {
		if !variablePattern.MatchString(m.name) {
			r.mistake(m.line, "%q is no name of an environment variable: use letters, digits and _", m.name)
		}
		switch m.value.kind {
		case strictjson.String:
			all = append(all, envVariable{m.name, c.template(m.value, "")})
		case strictjson.Number, strictjson.Bool:
			all = append(all, envVariable{m.name, template{{text: m.value.text}}})
		default:
			r.is(m.value, m.name, strictjson.String)
		}
	}
	return all
}
