package algorithm

import (
	"regexp"
	"slices"
	"strings"

	"molrun/app/algorithm/schema"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

var (
	parameterPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	extensionPattern = regexp.MustCompile(`^(\.[A-Za-z0-9][A-Za-z0-9_-]*)+$`)
)

// parameterKeys are the keys of a parameter that are not JSON Schema keywords.
var parameterKeys = []string{"name", "title", "file", "required", "default", "unit", "help", "advanced", "job"}

func readParameters(r *tomltree.Reader) Parameters {
	var all Parameters
	first := map[string]int{}
	for _, t := range r.Tables(r.Root, "parameters") {
		p := readParameter(r, t)
		if line, taken := first[p.Name]; taken && p.Name != "" {
			r.Errorf(t.Line, "the parameter %q is defined twice, first at line %d: remove one", p.Name, line)
			continue
		}
		first[p.Name] = t.Line
		all = append(all, p)
	}
	return all
}

func readParameter(r *tomltree.Reader, t *tomltree.Node) Parameter {
	p := Parameter{
		Name:     r.Text(t, "name"),
		Title:    r.Line(t, "title"),
		Unit:     r.Line(t, "unit"),
		Help:     r.Text(t, "help"),
		Advanced: r.Flag(t, "advanced"),
		Required: r.Flag(t, "required"),
	}
	if t.Member("file") != nil {
		readFileParameter(r, &p, t)
	} else {
		readValueParameter(r, &p, t)
	}
	if n := t.Member("default"); n != nil && p.Required {
		r.Errorf(n.Line, "a required parameter needs no default: remove one of the two")
	}
	return p
}

// readFileParameter reads a parameter whose value refers to a file. JSON Schema keywords
// cannot describe files.
func readFileParameter(r *tomltree.Reader, p *Parameter, t *tomltree.Node) {
	p.File = r.Texts(t, "file")
	n := t.Member("file")
	if n.Kind == strictjson.Array && len(p.File) == 0 {
		r.Errorf(n.Line, `file needs at least one extension, such as [".pdb"]`)
	}
	for i, ext := range p.File {
		if n.Items[i].Kind == strictjson.String && !extensionPattern.MatchString(ext) {
			r.Errorf(n.Items[i].Line, `%q is not a file extension: write it like ".pdb" or ".tar.gz"`, ext)
		}
	}
	p.Many = isList(t)
	for _, m := range t.Members {
		switch {
		case m.Name == "default":
			r.Errorf(m.Line, "a file cannot have a default: it must belong to the submitting user")
		case slices.Contains(parameterKeys, m.Name) || m.Name == "type" && m.Value.Text == "string":
		case p.Many && slices.Contains(listKeys, m.Name):
		case slices.Contains(contentKeys, m.Name):
		case schema.IsWord(m.Name):
			r.Errorf(m.Line, "%s does not apply to a file: remove it", m.Name)
		default:
			schema.UnknownWord(r, m, parameterKeys)
		}
	}
	p.content = readContent(r, t, p.File)
	p.Schema = fileSchema(r, p, t)
	compileParameter(r, p, t)
}

func readValueParameter(r *tomltree.Reader, p *Parameter, t *tomltree.Node) {
	words := &tomltree.Node{Kind: strictjson.Object, Line: t.Line}
	for _, m := range t.Members {
		if !slices.Contains(parameterKeys, m.Name) {
			words.Members = append(words.Members, m)
		}
	}
	if !slices.ContainsFunc(words.Members, func(m tomltree.Member) bool { return schema.IsShape(m.Name) }) {
		r.Errorf(t.Line, `type is missing: use "string", "number", "integer", "boolean", "array" or "object", or give file, enum or const`)
	}
	schema.Lint(r, words, parameterKeys)
	p.Schema = words.AppendJSON(nil)
	compileParameter(r, p, words)
	if p.compiled == nil {
		return
	}
	checkChoices(r, p, words)
	if n := t.Member("default"); n != nil {
		readDefault(r, p, n)
	}
}

// readDefault reads the default, which must match the parameter's schema.
func readDefault(r *tomltree.Reader, p *Parameter, n *tomltree.Node) {
	if r.HasErrors(n.Line, n.LastLine()) {
		return
	}
	v, err := strictjson.Parse(n.AppendJSON(nil))
	if err != nil {
		r.Errorf(n.Line, "the default cannot be used: %v", err)
		return
	}
	for _, f := range p.faults(v) {
		r.Errorf(n.LineAt(f.Loc[1:]), "the default %s", f.Msg)
	}
	p.fallback, p.Default = v, strictjson.AppendPlain(nil, v)
}

// checkChoices reports enum values that other keywords exclude.
func checkChoices(r *tomltree.Reader, p *Parameter, words *tomltree.Node) {
	n := words.Member("enum")
	if n == nil {
		return
	}
	for _, item := range n.Items {
		v, err := strictjson.Parse(item.AppendJSON(nil))
		if err != nil {
			continue // reported by the compiler
		}
		for _, f := range p.faults(v) {
			r.Errorf(item.Line, "this value can never be chosen: it %s", f.Msg)
		}
	}
}

// compileParameter compiles the schema. It ignores the compiler's errors about a keyword
// for which an error was already reported.
func compileParameter(r *tomltree.Reader, p *Parameter, words *tomltree.Node) {
	compiled, faults := schema.Compile(p.Schema)
	for _, f := range faults {
		faulty := words
		if len(f.Loc) > 0 {
			word, _ := f.Loc[0].(string)
			faulty = words.Member(word)
		}
		if faulty == nil || !r.HasErrors(faulty.Line, faulty.LastLine()) {
			r.Errorf(words.LineAt(f.Loc), "%s", strings.TrimPrefix(schema.Path(f.Loc)+" "+f.Msg, " "))
		}
	}
	p.compiled = compiled
}
