package algorithm

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/expression"
	"molrun/app/algorithm/folder"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// commandReader reads texts with placeholders.
type commandReader struct {
	*tomltree.Reader
	parameters Parameters
	derived    []derived
	allowed    []string // placeholders that mean something there
	given      []string // settings and files that have a value there
	folder     *folder.Folder
	siteNames  *[]string                 // names of {site.NAME} that were read
	conditions *[]*expression.Expression // that were read
}

// command reads the arguments of a program.
func (c *commandReader) command(t *tomltree.Node) []command.Argument {
	return c.commandOf(t, "command")
}

func (c *commandReader) commandOf(t *tomltree.Node, key string) []command.Argument {
	n := t.Member(key)
	if n == nil || n.Kind != strictjson.Array {
		return nil
	}
	if len(n.Items) == 0 {
		c.Mistakef(n.Line, "%s needs at least the name of a program", key)
		return nil
	}
	var all []command.Argument
	for i, item := range n.Items {
		all = append(all, c.argument(item, i == 0))
	}
	return all
}

func (c *commandReader) argument(n *tomltree.Node, program bool) command.Argument {
	switch {
	case n.Kind == strictjson.String:
		text := c.template(n)
		if program {
			c.program(n, text)
		}
		return command.Argument{Text: text}
	case program:
		c.Mistakef(n.Line, "command must begin with the name of a program")
		return command.Argument{}
	case n.Kind != strictjson.Object:
		return command.Argument{}
	case n.Member("each") != nil:
		return c.readEach(n)
	}
	return c.conditional(n)
}

func (c *commandReader) conditional(n *tomltree.Node) command.Argument {
	if n.Member("if") == nil || n.Member("args") == nil {
		c.Mistakef(n.Line, `a conditional part needs both: { if = "settings.NAME", args = [...] }`)
	}
	when := c.condition(n)
	arg := command.Argument{When: when, Then: c.where(when).templates(n, "args"), Else: c.templates(n, "else")}
	if when == nil {
		arg.When = &expression.Expression{}
	}
	return arg
}

// readEach reads what is repeated for the items of a list.
func (c *commandReader) readEach(n *tomltree.Node) command.Argument {
	arg := command.Argument{}
	kind, name, _ := strings.Cut(c.Text(n, "each"), ".")
	line := n.Member("each").Line
	switch p := c.parameters.Named(name); {
	case kind != "settings" && kind != "files" || name == "":
		c.Mistakef(line, `each must name a list: "settings.NAME" or "files.NAME"`)
	case p == nil:
		c.parameters.noteUnknown(c.Reader, line, name)
	case (kind == "files") != (len(p.File) > 0):
		c.Mistakef(line, "the parameter %q is %s", name, fileOrNot(p, "", ""))
	case p.compiled != nil && !p.compiled.IsOneOf("array", "null"):
		c.Mistakef(line, "each goes through a list, but the setting %q is none: write {%s.%s}", name, kind, name)
	default:
		arg.Each, p.argument = command.Part{Kind: kind, Name: name}, kind == "settings"
	}
	if n.Member("args") == nil {
		c.Mistakef(n.Line, `args is missing: what each item adds to the command, such as ["--residue={item}"]`)
	}
	inside := *c
	inside.allowed = append(slices.Clone(c.allowed), command.Item)
	inside.given = append(slices.Clone(c.given), name)
	arg.Args = inside.templates(n, "args")
	if n.Member("join") != nil {
		text := c.Text(n, "join")
		arg.Join = &text
	}
	return arg
}

// templates reads a list of arguments.
func (c *commandReader) templates(t *tomltree.Node, key string) []command.Template {
	n := t.Member(key)
	if n == nil || n.Kind != strictjson.Array {
		return nil
	}
	var all []command.Template
	for _, item := range n.Items {
		if item.Kind == strictjson.String {
			all = append(all, c.template(item))
		}
	}
	return all
}

// template reads a text with placeholders.
func (c *commandReader) template(n *tomltree.Node) command.Template {
	t, wrong := command.ParseTemplate(n.Text)
	for _, msg := range wrong {
		c.Mistakef(n.Line, "%s", msg)
	}
	if strings.ContainsRune(n.Text, 0) {
		c.Mistakef(n.Line, "an argument must not contain a NUL character")
	}
	for _, part := range t {
		c.placeholder(n.Line, part)
	}
	c.inFolder(n.Line, t)
	return t
}

// inFolder notes a file of the algorithm's folder that is not there.
func (c *commandReader) inFolder(line int, t command.Template) {
	i := slices.IndexFunc(t, func(part command.Part) bool { return part.Kind == "folder" })
	switch {
	case i < 0:
	case c.folder == nil:
		c.Mistakef(line, "{folder} means nothing here: only an algorithm that is a folder with a file %s has one", folder.Main)
	case i == 0 && len(t) == 2:
		name, below := strings.CutPrefix(t[1].Text, "/")
		if below && t[1].Kind == "" && !c.folder.Has(strings.TrimSuffix(name, "/")) {
			c.Mistakef(line, "the algorithm's folder has no %s", name)
		}
	}
}

func (c *commandReader) placeholder(line int, part command.Part) {
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
	if part.Kind == "site" {
		c.siteValue(line, part.Name)
		return
	}
	if part.Kind == "derived" {
		c.derivedValue(line, part.Name)
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
	case p.Many:
		c.Mistakef(line, `the parameter %q is a list of files: write { each = "files.%s", args = ["{item}"] }`, p.Name, p.Name)
	case p.optional() && !slices.Contains(c.given, p.Name):
		c.Mistakef(line, `the setting %q may have no value: put it into { if = "settings.%s", args = [...] }, make it required or give it a default`, p.Name, p.Name)
	}
	if p != nil && !p.Many {
		p.argument = true
	}
}

// derivedValue notes a derived value that does not exist, or may have no value.
func (c *commandReader) derivedValue(line int, name string) {
	i := slices.IndexFunc(c.derived, func(d derived) bool { return d.name == name })
	if i < 0 {
		c.Mistakef(line, "no derived value is named %q: [derived] has them", name)
		return
	}
	for _, setting := range c.derived[i].needs {
		if !slices.Contains(c.given, setting) {
			c.Mistakef(line, `the derived value %q has none without the setting %q: put it into { if = "settings.%s", args = [...] }`, name, setting, setting)
		}
	}
}

// program notes a program chosen by a setting, and one that depends on the
// directory in which the service was started.
func (c *commandReader) program(n *tomltree.Node, t command.Template) {
	for _, part := range t {
		if part.Kind == "settings" || part.Kind == "files" || part.Kind == "derived" {
			c.Mistakef(n.Line, "a setting cannot choose the program to run")
			return
		}
	}
	name, plain := t.Literal()
	if len(t) == 2 && t[0].Kind == "folder" {
		script := c.folder.Named(strings.TrimPrefix(t[1].Text, "/"))
		if script != nil && !script.Executable {
			c.Mistakef(n.Line, "%s in the algorithm's folder may not be run: chmod +x it, or begin the command with what runs it, such as python3", script.Path)
		}
	}
	switch {
	case plain && strings.TrimSpace(name) == "":
		c.Mistakef(n.Line, "command must begin with the name of a program")
	case plain && strings.Contains(name, "/") && !filepath.IsAbs(name):
		c.Mistakef(n.Line, "the program %q must be a plain name, looked for on PATH, or an absolute path", name)
	}
}

// namePattern is that of paths of the site and of assets.
var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// siteValue notes a use of a site's path.
func (c *commandReader) siteValue(line int, name string) {
	if !namePattern.MatchString(name) {
		c.Mistakef(line, "{site.%s} must have a name of letters, digits, _ and -, as in [site.paths] of the configuration", name)
		return
	}
	if c.siteNames != nil && !slices.Contains(*c.siteNames, name) {
		*c.siteNames = append(*c.siteNames, name)
	}
}
