package algorithm

import (
	"cmp"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"molrun/app/algorithm/command"
	"molrun/app/strictjson"
	"molrun/app/tomltree"
)

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// maxStepName bounds the name of a step, in bytes.
const maxStepName = 64

// step is one of [[steps]].
type step struct {
	name    string
	command []command.Argument
	stdout  command.Template // nil: the log
}

// variable is one of [env].
type variable struct {
	name string
	text command.Template
}

// checker is [validate]: a program that checks what a schema cannot say. With
// many it answers any number of rows at once. With always it is asked although
// the schema found faults, and reads the settings as sent.
type checker struct {
	command      []command.Argument
	many, always bool
}

func readSteps(r *tomltree.Reader, parameters Parameters) []step {
	program, tables := r.Root.Member("command"), r.Root.Member("steps")
	switch {
	case program == nil && tables == nil:
		r.Mistakef(1, "nothing to run: write a command or [[steps]]")
	case program != nil && tables != nil:
		r.Mistakef(program.Line, "write either command or [[steps]], not both")
	case tables != nil && r.Root.Member("stdout") != nil:
		r.Mistakef(r.Root.Member("stdout").Line, "stdout belongs into one of the [[steps]]")
	}
	if program != nil {
		return []step{readStep(r, parameters, r.Root, "")}
	}
	var all []step
	for i, t := range r.Tables(r.Root, "steps") {
		r.Known(t, "[[steps]]", []string{"name", "command", "stdout"})
		name := cmp.Or(r.Line(t, "name"), "step "+strconv.Itoa(i+1))
		if len(name) > maxStepName {
			r.Mistakef(t.Member("name").Line, "the name of a step may have %d bytes, got %d", maxStepName, len(name))
		}
		s := readStep(r, parameters, t, name)
		noteRepeated(r, t, s, all)
		all = append(all, s)
	}
	if tables != nil && tables.Kind == strictjson.Array && len(tables.Items) == 0 {
		r.Mistakef(tables.Line, "[[steps]] has no step")
	}
	return all
}

func readStep(r *tomltree.Reader, parameters Parameters, t *tomltree.Node, name string) step {
	s := step{name: name, command: readCommand(r, parameters, t, command.Placeholders)}
	if n := t.Member("stdout"); n != nil && r.Is(n, "stdout", strictjson.String) {
		s.stdout = readStdout(r, n)
	}
	return s
}

// readStdout reads where a step's output goes: a fixed path below {out} or
// {work}, so that no setting can point it elsewhere.
func readStdout(r *tomltree.Reader, n *tomltree.Node) command.Template {
	t, wrong := command.Parse(n.Text)
	if len(wrong) == 0 && len(t) == 2 && (t[0].Kind == "out" || t[0].Kind == "work") && t[1].Kind == "" {
		rest, found := strings.CutPrefix(t[1].Text, "/")
		if found && filepath.IsLocal(rest) && path.Clean(rest) == rest && rest != "." {
			return t
		}
	}
	r.Mistakef(n.Line, `stdout must be a file below {out} or {work}, such as "{out}/log.txt", without other placeholders; got %q`, n.Text)
	return nil
}

// noteRepeated notes the name and the output that a step shares with an earlier
// one.
func noteRepeated(r *tomltree.Reader, t *tomltree.Node, s step, earlier []step) {
	for _, e := range earlier {
		if e.name == s.name {
			r.Mistakef(t.Line, "two steps are named %q", e.name)
		}
		if e.stdout != nil && slices.Equal(e.stdout, s.stdout) {
			r.Mistakef(t.Member("stdout").Line, "an earlier step writes to %s too and would be lost", t.Member("stdout").Text)
		}
	}
}

func readEnvironment(r *tomltree.Reader, parameters Parameters) []variable {
	t := r.Table(r.Root, "env")
	if t == nil {
		return nil
	}
	c := commandReader{Reader: r, parameters: parameters, allowed: command.Placeholders}
	var all []variable
	for _, m := range t.Members {
		if !variablePattern.MatchString(m.Name) {
			r.Mistakef(m.Line, "%q is no name of an environment variable: use letters, digits and _", m.Name)
		}
		switch m.Value.Kind {
		case strictjson.String:
			all = append(all, variable{m.Name, c.template(m.Value, "")})
		case strictjson.Number, strictjson.Bool:
			all = append(all, variable{m.Name, command.Template{{Text: m.Value.Text}}})
		default:
			r.Is(m.Value, m.Name, strictjson.String)
		}
	}
	return all
}

func readChecker(r *tomltree.Reader, parameters Parameters) *checker {
	t := r.Table(r.Root, "validate")
	if t == nil {
		return nil
	}
	r.Known(t, "[validate]", []string{"command", "many", "always"})
	return &checker{
		command: readCommand(r, parameters, t, []string{"settings", "files", "molrun"}),
		many:    r.Flag(t, "many"),
		always:  r.Flag(t, "always"),
	}
}
