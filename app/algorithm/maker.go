package algorithm

import (
	"slices"
	"strings"

	"molrun/app/algorithm/expression"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// Maker is the job that makes a file of a setting, if other settings ask for it.
type Maker struct {
	Type     string
	Output   string              // that is the file
	AskedBy  string              // the first setting that the condition reads
	Settings []strictjson.Member // of the job, without files
	Files    []MakerFile         // of the job, sorted by Setting

	when *expression.Expression
}

// MakerFile is a file that the job takes over from this one's.
type MakerFile struct {
	Setting string // of the job
	From    string // the parameter here
}

// Asked reports whether checked settings ask for the job, if there is one.
func (m *Maker) Asked(settings []strictjson.Member) bool {
	if m == nil || m.when == nil { // nil: the file has a mistake
		return false
	}
	return m.when.Holds(expression.Values{Settings: nativeSettings(settings)})
}

// readMakers reads the key job of the parameters. A condition may read parameters further down.
func readMakers(r *tomltree.Reader, all Parameters) {
	tables := map[*Parameter]*tomltree.Node{}
	for _, t := range r.Tables(r.Root, "parameters") {
		n, p := t.Member("job"), all.Named(r.Text(t, "name"))
		if n == nil || n.Kind != strictjson.Object || p == nil {
			continue
		}
		p.Maker, tables[p] = &Maker{}, n
	}
	for p, n := range tables {
		if len(p.File) == 0 {
			r.Mistakef(n.Line, "job makes a file, and the parameter %q is none: give file, or remove job", p.Name)
			continue
		}
		if p.Required {
			r.Mistakef(n.Line, "the parameter %q is required, so that no job would make it: remove required", p.Name)
		}
		p.Maker.read(r, n, all)
	}
}

func (m *Maker) read(r *tomltree.Reader, t *tomltree.Node, all Parameters) {
	m.Type, m.Output = r.Text(t, "type"), r.Text(t, "output")
	if n := t.Member("if"); n != nil && n.Kind == strictjson.String {
		names := namesOf(all, nil)
		names.Facts = nil
		var err error
		if m.when, err = expression.ParseCondition(n.Text, names); err != nil {
			r.Mistakef(n.Line, "if = %q: %v", n.Text, err)
			return
		}
		noteImpossible(r, n.Line, all, m.when)
		if len(m.when.Settings) == 0 {
			r.Mistakef(n.Line, "if = %q asks no setting: write settings.NAME == 'VALUE'", n.Text)
			return
		}
		m.AskedBy = m.when.Settings[0]
	}
	settings := t.Member("settings")
	if settings == nil {
		return
	}
	for _, s := range settings.Members {
		m.readSetting(r, s, all)
	}
	slices.SortFunc(m.Files, func(a, b MakerFile) int { return strings.Compare(a.Setting, b.Setting) })
}

// readSetting reads a setting of the job: a value, or "{files.NAME}".
func (m *Maker) readSetting(r *tomltree.Reader, s tomltree.Member, all Parameters) {
	if s.Value.Kind == strictjson.String && strings.ContainsAny(s.Value.Text, "{}") {
		name, isFile := strings.CutPrefix(strings.TrimSuffix(s.Value.Text, "}"), "{files.")
		switch p := all.Named(name); {
		case !isFile || !strings.HasSuffix(s.Value.Text, "}"):
			r.Mistakef(s.Line, "%q must be a value, or {files.NAME} alone for a file of this job", s.Value.Text)
		case p == nil:
			all.noteUnknown(r, s.Line, name)
		case len(p.File) == 0 || p.Many || p.Maker != nil:
			r.Mistakef(s.Line, "the parameter %q is not one file that the user gives", name)
		default:
			m.Files = append(m.Files, MakerFile{s.Name, name})
		}
		return
	}
	v, err := strictjson.Parse(s.Value.AppendJSON(nil))
	if err != nil {
		r.Mistakef(s.Line, "%s cannot be used: %v", s.Name, err)
		return
	}
	m.Settings = append(m.Settings, strictjson.Member{Name: s.Name, Value: v})
}
