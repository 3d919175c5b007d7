package algorithm

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"molrun/app/strictjson"
)

var (
	parameterPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	extensionPattern = regexp.MustCompile(`^(\.[A-Za-z0-9][A-Za-z0-9_-]*)+$`)
)

// parameterKeys are a parameter's keys that are not words of JSON Schema.
var parameterKeys = []string{"name", "title", "file", "required", "default", "unit", "help", "advanced"}

// fileSchema is that of every setting that refers to a file.
const fileSchema = `{"type":"string","minLength":1}`

func (r *reader) parameters(root *tomlNode) []Parameter {
	var all []Parameter
	first := map[string]int{}
	for _, t := range r.tables(root, "parameters") {
		p := r.parameter(t)
		if line, taken := first[p.Name]; taken && p.Name != "" {
			r.mistake(t.line, "the parameter %q is there twice, first at line %d: keep one", p.Name, line)
			continue
		}
		first[p.Name] = t.line
		all = append(all, p)
	}
	return all
}

func (r *reader) parameter(t *tomlNode) Parameter {
	p := Parameter{
		Name:     r.name(t, "name", parameterPattern, `letters, digits, "_" and "-", at most 64, beginning with a letter or "_"`),
		Title:    r.line(t, "title"),
		Unit:     r.line(t, "unit"),
		Help:     r.text(t, "help"),
		Advanced: r.flag(t, "advanced"),
		Required: r.required(t),
	}
	if t.member("file") != nil {
		r.fileParameter(&p, t)
	} else {
		r.valueParameter(&p, t)
	}
	if n := t.member("default"); n != nil && p.Required {
		r.mistake(n.line, "a required parameter needs no default: remove one of the two")
	}
	return p
}

func (r *reader) required(t *tomlNode) bool {
	if n := t.member("required"); n != nil && n.kind == strictjson.Array {
		r.mistake(n.line, "required says true or false for the parameter itself: for members of an object write allOf = [{ required = [...] }]")
		return false
	}
	return r.flag(t, "required")
}

// fileParameter reads a parameter whose value refers to a file, so that no
// word of JSON Schema says anything about it.
func (r *reader) fileParameter(p *Parameter, t *tomlNode) {
	p.File = r.texts(t, "file")
	n := t.member("file")
	if n.kind == strictjson.Array && len(p.File) == 0 {
		r.mistake(n.line, `file needs at least one extension, such as [".pdb"]`)
	}
	for i, ext := range p.File {
		if n.items[i].kind == strictjson.String && !extensionPattern.MatchString(ext) {
			r.mistake(n.items[i].line, `%q is no extension: write it like ".pdb" or ".tar.gz"`, ext)
		}
	}
	for _, m := range t.members {
		switch {
		case m.name == "default":
			r.mistake(m.line, "a file has no default: what it refers to belongs to the user who submits")
		case slices.Contains(parameterKeys, m.name) || m.name == "type" && m.value.text == "string":
		case schemaWords[m.name] != nil:
			r.mistake(m.line, "%s says nothing about a file: remove it", m.name)
		default:
			r.unknownWord(m, parameterKeys)
		}
	}
	p.Schema = json.RawMessage(fileSchema)
	r.compile(p, t)
}

func (r *reader) valueParameter(p *Parameter, t *tomlNode) {
	words := &tomlNode{kind: strictjson.Object, line: t.line}
	for _, m := range t.members {
		if !slices.Contains(parameterKeys, m.name) {
			words.members = append(words.members, m)
		}
	}
	if !slices.ContainsFunc(words.members, func(m tomlMember) bool { return slices.Contains(shapeWords, m.name) }) {
		r.mistake(t.line, `type is missing: say "string", "number", "integer", "boolean", "array" or "object", or give file, enum or const`)
	}
	r.schemaWords(words, parameterKeys)
	p.Schema = words.appendJSON(nil)
	r.compile(p, words)
	if p.compiled == nil {
		return
	}
	r.choices(p, words)
	if n := t.member("default"); n != nil {
		r.fallback(p, n)
	}
}

// fallback reads the default, which has to fit the parameter's own schema.
func (r *reader) fallback(p *Parameter, n *tomlNode) {
	if r.noted(n.line, n.lastLine()) {
		return
	}
	v, err := strictjson.Parse(n.appendJSON(nil))
	if err != nil {
		r.mistake(n.line, "the default cannot be used: %v", err)
		return
	}
	for _, f := range p.faults(v) {
		r.mistake(n.lineAt(f.Loc[1:]), "the default %s", f.Msg)
	}
	p.fallback, p.Default = v, strictjson.AppendPlain(nil, v)
}

// choices notes values of enum that the other words rule out.
func (r *reader) choices(p *Parameter, words *tomlNode) {
	n := words.member("enum")
	if n == nil {
		return
	}
	for _, item := range n.items {
		v, err := strictjson.Parse(item.appendJSON(nil))
		if err != nil {
			continue // the compiler has seen it
		}
		for _, f := range p.faults(v) {
			r.mistake(item.line, "this value can never be chosen: it %s", f.Msg)
		}
	}
}

// noted reports whether a mistake was found on these lines before.
func (r *reader) noted(first, last int) bool {
	return slices.ContainsFunc(r.mistakes, func(m Mistake) bool { return first <= m.Line && m.Line <= last })
}

// compile makes the schema ready for use. Of a word that was found faulty
// before, the compiler's opinion adds nothing.
func (r *reader) compile(p *Parameter, words *tomlNode) {
	compiled, doc, faults := compileSchema(p.Schema)
	for _, f := range faults {
		faulty := words
		if len(f.Loc) > 0 {
			word, _ := f.Loc[0].(string)
			faulty = words.member(word)
		}
		if faulty == nil || !r.noted(faulty.line, faulty.lastLine()) {
			r.mistake(words.lineAt(f.Loc), "%s", strings.TrimPrefix(joinPath(f.Loc)+" "+f.Msg, " "))
		}
	}
	if compiled == nil {
		return
	}
	p.compiled = compiled
	p.words, _ = doc.(map[string]any)
	p.types = typesOf(p.words)
	p.nullable = compiled.Validate(nil) == nil
}
