package algorithm

import (
	"cmp"
	"regexp"

	"molrun/app/algorithm/command"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// variable is an entry of [env].
type variable struct {
	name string
	text command.Template
}

// checker is [validate]: a program that checks what a schema cannot express. With many,
// it validates any number of jobs at once. With always, it also runs when the schema
// found errors, and reads the settings as submitted.
type checker struct {
	command      []command.Argument
	many, always bool
}

// variables reads the env table of a node.
func (c *commandReader) variables(of *tomltree.Node) []variable {
	t := c.Table(of, "env")
	if t == nil {
		return nil
	}
	var all []variable
	for _, m := range t.Members {
		if !variablePattern.MatchString(m.Name) {
			c.Errorf(m.Line, "%q is not a valid name for an environment variable: use letters, digits and _", m.Name)
		}
		switch m.Value.Kind {
		case strictjson.String:
			all = append(all, variable{m.Name, c.template(m.Value)})
		case strictjson.Number, strictjson.Bool:
			all = append(all, variable{m.Name, command.Template{{Text: m.Value.Text}}})
		}
	}
	return all
}

func readChecker(c commandReader) *checker {
	t := c.Table(c.Root, "validate")
	if t == nil {
		return nil
	}
	c.allowed = []string{"settings", "files", "folder", "site", "molrun"}
	return &checker{command: c.command(t), many: c.Flag(t, "many"), always: c.Flag(t, "always")}
}

// programPattern matches a program name or path.
var programPattern = regexp.MustCompile(`^[A-Za-z0-9_/][A-Za-z0-9_.+/-]*$`)

// readPrograms reads the names of programs that are run only by scripts, so that they do
// not appear in any command.
func readPrograms(r *tomltree.Reader) []string {
	n := r.Root.Member("programs")
	if n == nil {
		return nil
	}
	names := r.Texts(r.Root, "programs")
	for i, name := range names {
		if !programPattern.MatchString(name) {
			r.Errorf(n.Items[i].Line, "%q in programs must be the name of a program, such as \"obabel\", or an absolute path", name)
		}
	}
	return names
}

// versionOf describes how to query the program's version.
type versionOf struct {
	command []command.Argument
	pattern *regexp.Regexp
}

// readVersion reads version_command and version_pattern, or nil if there are none.
func readVersion(c commandReader) *versionOf {
	n, pattern := c.Root.Member("version_command"), c.Root.Member("version_pattern")
	switch {
	case n == nil && pattern == nil:
		return nil
	case n == nil || pattern == nil:
		c.Errorf(cmp.Or(n, pattern).Line, `version_command and version_pattern go together: version_command = ["gmx", "--version"], version_pattern = 'GROMACS version:\s+(\S+)'`)
		return nil
	}
	c.allowed = []string{"folder", "site", "molrun"}
	v := &versionOf{command: c.commandOf(c.Root, "version_command")}
	if pattern.Kind == strictjson.String {
		v.pattern = c.Expression(pattern.Line, "version_pattern", pattern.Text)
	}
	return v
}

// readProbe reads the self-test command of the program, or nil if there is none.
func readProbe(c commandReader) []command.Argument {
	if c.Root.Member("probe") == nil {
		return nil
	}
	c.allowed = []string{"folder", "site", "molrun"}
	return c.commandOf(c.Root, "probe")
}
