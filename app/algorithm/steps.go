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

// maxStepName limits the length of a step's name, in bytes.
const maxStepName = 64

// step is an entry of [[steps]], or the command at the top level of the file.
type step struct {
	name    string
	when    *expression.Expression // nil means always
	command []command.Argument
	folder  command.Template // working directory; nil means {work}
	stdin   command.Template // nil means empty
	isFile  bool             // stdin is the path of a file, not its content
	stdout  command.Template // nil means the log
	env     []variable
	ok      []int              // exit statuses that count as success, in addition to 0
	failsIf []string           // regular expressions for output that indicates a failure
	makes   []command.Template // files that it must create
	keep    []command.Template // files to copy to {out} afterwards

	progress *progress // nil if not reported
}

// oneStepKeys are the step keys allowed at the top level of a file with a single command.
var oneStepKeys = []string{"stdout", "folder", "stdin", "ok", "fails_if", "makes", "keep", "progress"}

func readSteps(c commandReader) []step {
	r := c.Reader
	program, tables := r.Root.Member("command"), r.Root.Member("steps")
	switch {
	case program == nil && tables == nil:
		r.Errorf(1, "nothing to run: write a command or [[steps]]")
	case program != nil && tables != nil:
		r.Errorf(program.Line, "write either command or [[steps]], not both")
	case tables != nil:
		for _, key := range oneStepKeys {
			if n := r.Root.Member(key); n != nil {
				r.Errorf(n.Line, "%s belongs in one of the [[steps]]", key)
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
			r.Errorf(t.Member("name").Line, "the name of a step can have at most %d bytes, got %d", maxStepName, len(name))
		}
		s := readStep(c, t, name)
		noteRepeated(r, t, s, all)
		all = append(all, s)
	}
	checkShares(r, all)
	if tables != nil && tables.Kind == strictjson.Array && len(tables.Items) == 0 {
		r.Errorf(tables.Line, "[[steps]] is empty")
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

// readChecks reads where the step runs and how its success is checked.
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
			c.Errorf(n.Line, "fails_if must not be empty")
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

// texts returns the strings of a list.
func (c *commandReader) texts(t *tomltree.Node, key string) []*tomltree.Node {
	n := t.Member(key)
	if n == nil || n.Kind != strictjson.Array {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.Items), func(item *tomltree.Node) bool { return item.Kind != strictjson.String })
}

// namesFile reports whether a template is the path of a file of the job.
func namesFile(t command.Template) bool {
	switch {
	case len(t) == 1:
		return t[0].Kind == "files" || t[0].Kind == "settings_file"
	case len(t) == 2 && (t[0].Kind == "out" || t[0].Kind == "work" || t[0].Kind == "folder") && t[1].Kind == "":
		return strings.HasPrefix(t[1].Text, "/") && !strings.Contains(t[1].Text, "\n")
	}
	return false
}

// oneOrTexts returns the strings of a list, or a single string given instead of a list.
func (c *commandReader) oneOrTexts(t *tomltree.Node, key string) []*tomltree.Node {
	if n := t.Member(key); n != nil && n.Kind == strictjson.String {
		return []*tomltree.Node{n}
	}
	return c.texts(t, key)
}

// below reads a path below {out} or {work}, or {out} or {work} itself for a folder. "*"
// matches any text within a name.
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
	c.Errorf(n.Line, `%s must be a path below {out} or {work}, such as "{out}/poses.pdbqt", without other placeholders; got %q`, what, n.Text)
	return nil
}

// readShown reads the files, other than the log, that are searched for known failures.
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

// readFilePath reads the path of an output file. It must be a fixed path below {out} or
// {work}, so that no setting can redirect it.
func readFilePath(r *tomltree.Reader, n *tomltree.Node, key string) command.Template {
	t, wrong := command.ParseTemplate(n.Text)
	if len(wrong) == 0 && len(t) == 2 && (t[0].Kind == "out" || t[0].Kind == "work") && t[1].Kind == "" {
		rest, found := strings.CutPrefix(t[1].Text, "/")
		if found && filepath.IsLocal(rest) && path.Clean(rest) == rest && rest != "." {
			return t
		}
	}
	r.Errorf(n.Line, `%s must be a file below {out} or {work}, such as "{out}/log.txt", without other placeholders; got %q`, key, n.Text)
	return nil
}

// noteRepeated reports a name or output file that a step shares with an earlier one.
func noteRepeated(r *tomltree.Reader, t *tomltree.Node, s step, earlier []step) {
	for _, e := range earlier {
		if e.name == s.name {
			r.Errorf(t.Line, "two steps are named %q", e.name)
		}
		if e.stdout != nil && slices.Equal(e.stdout, s.stdout) && e.when == nil && s.when == nil {
			r.Errorf(t.Member("stdout").Line, "an earlier step also writes to %s; its output would be lost", t.Member("stdout").Text)
		}
	}
}
