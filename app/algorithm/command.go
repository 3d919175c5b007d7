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

// commandReader reads templates with placeholders.
type commandReader struct {
	*tomltree.Reader
	parameters Parameters
	derived    []derived
	allowed    []string // kinds of placeholders that are valid in this context
	given      []string // settings and files that have a value in this context
	folder     *folder.Folder
	siteNames  *[]string                 // collects names of {site.NAME}
	conditions *[]*expression.Expression // collects conditions
}

// command reads the command of a program.
func (c *commandReader) command(t *tomltree.Node) []command.Argument {
	return c.commandOf(t, "command")
}

func (c *commandReader) commandOf(t *tomltree.Node, key string) []command.Argument {
	n := t.Member(key)
	if n == nil || n.Kind != strictjson.Array {
		return nil
	}
	if len(n.Items) == 0 {
		c.Errorf(n.Line, "%s needs at least the name of a program", key)
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
		c.Errorf(n.Line, "command must begin with the name of a program")
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
		c.Errorf(n.Line, `a conditional part needs both: { if = "settings.NAME", args = [...] }`)
	}
	when := c.condition(n)
	arg := command.Argument{When: when, Then: c.where(when).templates(n, "args"), Else: c.templates(n, "else")}
	if when == nil {
		arg.When = &expression.Expression{}
	}
	return arg
}

// readEach reads an argument that is repeated for each item of a list.
func (c *commandReader) readEach(n *tomltree.Node) command.Argument {
	arg := command.Argument{}
	kind, name, _ := strings.Cut(c.Text(n, "each"), ".")
	line := n.Member("each").Line
	switch p := c.parameters.Named(name); {
	case kind != "settings" && kind != "files" || name == "":
		c.Errorf(line, `each must name a list: "settings.NAME" or "files.NAME"`)
	case p == nil:
		c.parameters.reportUnknown(c.Reader, line, name)
	case (kind == "files") != (len(p.File) > 0):
		c.Errorf(line, "the parameter %q is %s", name, fileOrNot(p, "", ""))
	case p.compiled != nil && !p.compiled.IsOneOf("array", "null"):
		c.Errorf(line, "each needs a list, but the setting %q is not a list: write {%s.%s}", name, kind, name)
	default:
		arg.Each, p.argument = command.Part{Kind: kind, Name: name}, kind == "settings"
	}
	if n.Member("args") == nil {
		c.Errorf(n.Line, `args is missing: what each item adds to the command, such as ["--residue={item}"]`)
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

// template reads a string with placeholders.
func (c *commandReader) template(n *tomltree.Node) command.Template {
	t, wrong := command.ParseTemplate(n.Text)
	for _, msg := range wrong {
		c.Errorf(n.Line, "%s", msg)
	}
	if strings.ContainsRune(n.Text, 0) {
		c.Errorf(n.Line, "an argument must not contain a NUL character")
	}
	for _, part := range t {
		c.placeholder(n.Line, part)
	}
	c.inFolder(n.Line, t)
	return t
}

// inFolder reports a file that is missing from the algorithm's folder.
func (c *commandReader) inFolder(line int, t command.Template) {
	i := slices.IndexFunc(t, func(part command.Part) bool { return part.Kind == "folder" })
	switch {
	case i < 0:
	case c.folder == nil:
		c.Errorf(line, "{folder} is not available here: only an algorithm in a folder with a file %s has one", folder.Main)
	case i == 0 && len(t) == 2:
		name, below := strings.CutPrefix(t[1].Text, "/")
		if below && t[1].Kind == "" && !c.folder.Has(strings.TrimSuffix(name, "/")) {
			c.Errorf(line, "the algorithm's folder has no %s", name)
		}
	}
}

func (c *commandReader) placeholder(line int, part command.Part) {
	if part.Kind == "" {
		return
	}
	if !slices.Contains(c.allowed, part.Kind) {
		c.Errorf(line, "{%s} is not available here; available are %s", strings.TrimSuffix(part.Kind+"."+part.Name, "."), "{"+strings.Join(c.allowed, "}, {")+"}")
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
		c.parameters.reportUnknown(c.Reader, line, part.Name)
	case part.Kind == "files" && len(p.File) == 0:
		c.Errorf(line, "the parameter %q is not a file: write {settings.%s}", p.Name, p.Name)
	case part.Kind == "settings" && len(p.File) > 0:
		c.Errorf(line, "the parameter %q is a file: write {files.%s} for its path", p.Name, p.Name)
	case p.Many:
		c.Errorf(line, `the parameter %q is a list of files: write { each = "files.%s", args = ["{item}"] }`, p.Name, p.Name)
	case p.optional() && !slices.Contains(c.given, p.Name):
		c.Errorf(line, `the setting %q can be unset: put it into { if = "settings.%s", args = [...] }, make it required or give it a default`, p.Name, p.Name)
	}
	if p != nil && !p.Many {
		p.argument = true
	}
}

// derivedValue reports a derived value that does not exist or might have no value.
func (c *commandReader) derivedValue(line int, name string) {
	i := slices.IndexFunc(c.derived, func(d derived) bool { return d.name == name })
	if i < 0 {
		c.Errorf(line, "no derived value is named %q: define it in [derived]", name)
		return
	}
	for _, setting := range c.derived[i].needs {
		if !slices.Contains(c.given, setting) {
			c.Errorf(line, `the derived value %q is undefined without the setting %q: put it into { if = "settings.%s", args = [...] }`, name, setting, setting)
		}
	}
}

// program reports an error if a setting chooses the program, or if the program's path
// depends on the working directory of the service.
func (c *commandReader) program(n *tomltree.Node, t command.Template) {
	for _, part := range t {
		if part.Kind == "settings" || part.Kind == "files" || part.Kind == "derived" {
			c.Errorf(n.Line, "a setting cannot choose the program to run")
			return
		}
	}
	name, plain := t.Literal()
	if len(t) == 2 && t[0].Kind == "folder" {
		script := c.folder.Named(strings.TrimPrefix(t[1].Text, "/"))
		if script != nil && !script.Executable {
			c.Errorf(n.Line, "%s in the algorithm's folder is not executable: run chmod +x on it, or begin the command with its interpreter, such as python3", script.Path)
		}
	}
	switch {
	case plain && strings.TrimSpace(name) == "":
		c.Errorf(n.Line, "command must begin with the name of a program")
	case plain && strings.Contains(name, "/") && !filepath.IsAbs(name):
		c.Errorf(n.Line, "the program %q must be a plain name, found on PATH, or an absolute path", name)
	}
}

// namePattern matches the names of site paths and assets.
var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// siteValue records a use of a site path, and reports an invalid name.
func (c *commandReader) siteValue(line int, name string) {
	if !namePattern.MatchString(name) {
		c.Errorf(line, "{site.%s} must have a name of letters, digits, _ and -, as in [site.paths] of the configuration", name)
		return
	}
	if c.siteNames != nil && !slices.Contains(*c.siteNames, name) {
		*c.siteNames = append(*c.siteNames, name)
	}
}
