package algorithm

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/expression"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// maxStepName bounds the name of a step, in bytes.
const maxStepName = 64

// step is one of [[steps]], or the command at the top of the file.
type step struct {
	name    string
	when    *expression.Expression // nil: always
	command []command.Argument
	folder  command.Template // current directory; nil: {work}
	stdin   command.Template // nil: nothing
	isFile  bool             // stdin is the path of a file, not what is in it
	stdout  command.Template // nil: the log
	env     []variable
	ok      []int              // exit statuses that are no failure, beside 0
	failsIf []string           // expressions: what it prints when it has failed
	makes   []command.Template // what it leaves
	keep    []command.Template // what goes to {out} after it

	progress *progress // nil: nothing is said of it
}

// oneStepKeys are keys of a step that stand at the top of a file that has one command.
var oneStepKeys = []string{"stdout", "folder", "stdin", "ok", "fails_if", "makes", "keep", "progress"}

func readSteps(c commandReader) []step {
	r := c.Reader
	program, tables := r.Root.Member("command"), r.Root.Member("steps")
	switch {
	case program == nil && tables == nil:
		r.Mistakef(1, "nothing to run: write a command or [[steps]]")
	case program != nil && tables != nil:
		r.Mistakef(program.Line, "write either command or [[steps]], not both")
	case tables != nil:
		for _, key := range oneStepKeys {
			if n := r.Root.Member(key); n != nil {
				r.Mistakef(n.Line, "%s belongs into one of the [[steps]]", key)
			}
		}
	}
	if program != nil {
		return []step{readStep(c, r.Root, "")}
	}
	var all []step
	for i, t := range r.Tables(r.Root, "steps") {
		name := cmp.Or(r.Line(t, "name"), "step "+strconv.Itoa(i+1))
		if len(name) > maxStepName {
			r.Mistakef(t.Member("name").Line, "the name of a step may have %d bytes, got %d", maxStepName, len(name))
		}
		s := readStep(c, t, name)
		noteRepeated(r, t, s, all)
		all = append(all, s)
	}
	checkShares(r, all)
	if tables != nil && tables.Kind == strictjson.Array && len(tables.Items) == 0 {
		r.Mistakef(tables.Line, "[[steps]] has no step")
	}
	return all
}

func readStep(c commandReader, t *tomltree.Node, name string) step {
	s := step{name: name}
	if t != c.Root {
		s.when = c.condition(t)
		c = *c.where(s.when)
		s.env = c.variables(t)
	}
	s.readChecks(&c, t)
	s.command = c.command(t)
	if n := t.Member("stdout"); n != nil && n.Kind == strictjson.String {
		s.stdout = readFilePath(c.Reader, n, "stdout")
	}
	return s
}

// readChecks reads where the step runs, and how it is seen that it has done its work.
func (s *step) readChecks(c *commandReader, t *tomltree.Node) {
	if n := t.Member("stdin"); n != nil && n.Kind == strictjson.String {
		s.stdin = c.template(n)
		s.isFile = namesFile(s.stdin)
	}
	if n := t.Member("folder"); n != nil && n.Kind == strictjson.String {
		s.folder = c.below(n, "folder", true)
	}
	for _, path := range c.texts(t, "makes") {
		s.makes = append(s.makes, c.below(path, "each of makes", false))
	}
	for _, path := range c.texts(t, "keep") {
		s.keep = append(s.keep, c.below(path, "each of keep", false))
	}
	for _, n := range c.oneOrTexts(t, "fails_if") {
		if n.Text == "" {
			c.Mistakef(n.Line, "fails_if must not be empty")
		}
		s.failsIf = append(s.failsIf, n.Text)
	}
	s.readStatuses(c, t)
	s.progress = c.progress(t)
}

func (s *step) readStatuses(c *commandReader, t *tomltree.Node) {
	n := t.Member("ok")
	if n == nil || n.Kind != strictjson.Array {
		return
	}
	for _, item := range n.Items {
		if item.Kind == strictjson.Number {
			s.ok = append(s.ok, int(item.Int()))
		}
	}
}

// texts returns the texts of a list.
func (c *commandReader) texts(t *tomltree.Node, key string) []*tomltree.Node {
	n := t.Member(key)
	if n == nil || n.Kind != strictjson.Array {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.Items), func(item *tomltree.Node) bool { return item.Kind != strictjson.String })
}

// namesFile reports whether a text is the path of a file of the job.
func namesFile(t command.Template) bool {
	switch {
	case len(t) == 1:
		return t[0].Kind == "files" || t[0].Kind == "settings_file"
	case len(t) == 2 && (t[0].Kind == "out" || t[0].Kind == "work" || t[0].Kind == "folder") && t[1].Kind == "":
		return strings.HasPrefix(t[1].Text, "/") && !strings.Contains(t[1].Text, "\n")
	}
	return false
}

// oneOrTexts returns the texts of a list, or the one that stands in its place.
func (c *commandReader) oneOrTexts(t *tomltree.Node, key string) []*tomltree.Node {
	if n := t.Member(key); n != nil && n.Kind == strictjson.String {
		return []*tomltree.Node{n}
	}
	return c.texts(t, key)
}

// below reads a path below {out} or {work}, or one of these if it is a folder. A "*"
// stands for any text within a name.
func (c *commandReader) below(n *tomltree.Node, what string, folder bool) command.Template {
	t, wrong := command.ParseTemplate(n.Text)
	root := len(wrong) == 0 && len(t) > 0 && (t[0].Kind == "out" || t[0].Kind == "work")
	switch {
	case root && len(t) == 1 && folder:
		return t
	case root && len(t) == 2 && t[1].Kind == "":
		rest, found := strings.CutPrefix(t[1].Text, "/")
		_, bad := filepath.Match(rest, "")
		if found && filepath.IsLocal(rest) && path.Clean(rest) == rest && rest != "." && bad == nil && !strings.ContainsAny(rest, "?[\\") {
			return t
		}
	}
	c.Mistakef(n.Line, `%s must be a path below {out} or {work}, such as "{out}/poses.pdbqt", without other placeholders; got %q`, what, n.Text)
	return nil
}

// readShown reads in which files beside the log the known failures are looked for.
func readShown(r *tomltree.Reader) []command.Template {
	c := commandReader{Reader: r}
	var all []command.Template
	for _, t := range r.Tables(r.Root, "failures") {
		n := t.Member("file")
		if n == nil || n.Kind != strictjson.String {
			continue
		}
		path := c.below(n, "file", false)
		if !slices.ContainsFunc(all, func(other command.Template) bool { return slices.Equal(other, path) }) {
			all = append(all, path)
		}
	}
	return all
}

// readFilePath reads a file that is written: a fixed path below {out} or {work}, so that no
// setting can point it elsewhere.
func readFilePath(r *tomltree.Reader, n *tomltree.Node, key string) command.Template {
	t, wrong := command.ParseTemplate(n.Text)
	if len(wrong) == 0 && len(t) == 2 && (t[0].Kind == "out" || t[0].Kind == "work") && t[1].Kind == "" {
		rest, found := strings.CutPrefix(t[1].Text, "/")
		if found && filepath.IsLocal(rest) && path.Clean(rest) == rest && rest != "." {
			return t
		}
	}
	r.Mistakef(n.Line, `%s must be a file below {out} or {work}, such as "{out}/log.txt", without other placeholders; got %q`, key, n.Text)
	return nil
}

// noteRepeated notes the name and the output that a step shares with an earlier
// one.
func noteRepeated(r *tomltree.Reader, t *tomltree.Node, s step, earlier []step) {
	for _, e := range earlier {
		if e.name == s.name {
			r.Mistakef(t.Line, "two steps are named %q", e.name)
		}
		if e.stdout != nil && slices.Equal(e.stdout, s.stdout) && e.when == nil && s.when == nil {
			r.Mistakef(t.Member("stdout").Line, "an earlier step writes to %s too and would be lost", t.Member("stdout").Text)
		}
	}
}
