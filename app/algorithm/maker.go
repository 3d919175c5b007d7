package algorithm

import (
	"slices"
	"strings"

	"molrun/app/algorithm/expression"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// Maker is the job that creates the file of a setting, if other settings request it.
type Maker struct {
	Type        string
	Output      string              // output that becomes the file
	RequestedBy string              // first setting that the condition reads
	Settings    []strictjson.Member // settings of the job, without files
	Files       []MakerFile         // files of the job, sorted by Setting

	when *expression.Expression
}

// MakerFile is an input file of this job that is passed to the job of a Maker.
type MakerFile struct {
	Setting string // setting of the Maker's job
	From    string // parameter of this job
}

// Requested reports whether checked settings request the job. It is false if m is nil.
func (m *Maker) Requested(settings []strictjson.Member) bool {
	if m == nil || m.when == nil { // when is nil if the file has an error
		return false
	}
	return m.when.Holds(expression.Values{Settings: nativeSettings(settings)})
}

// readMakers reads the job key of the parameters. A condition can refer to later
// parameters.
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
			r.Errorf(n.Line, "job creates a file, but the parameter %q is not a file: add file, or remove job", p.Name)
			continue
		}
		if p.Required {
			r.Errorf(n.Line, "the parameter %q is required, so no job would ever create it: remove required", p.Name)
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
			r.Errorf(n.Line, "if = %q: %v", n.Text, err)
			return
		}
		noteImpossible(r, n.Line, all, m.when)
		if len(m.when.Settings) == 0 {
			r.Errorf(n.Line, "if = %q reads no setting: write settings.NAME == 'VALUE'", n.Text)
			return
		}
		m.RequestedBy = m.when.Settings[0]
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
			r.Errorf(s.Line, "%q must be a value, or exactly {files.NAME} for a file of this job", s.Value.Text)
		case p == nil:
			all.reportUnknown(r, s.Line, name)
		case len(p.File) == 0 || p.Many || p.Maker != nil:
			r.Errorf(s.Line, "the parameter %q is not a single file provided by the user", name)
		default:
			m.Files = append(m.Files, MakerFile{s.Name, name})
		}
		return
	}
	v, err := strictjson.Parse(s.Value.AppendJSON(nil))
	if err != nil {
		r.Errorf(s.Line, "%s cannot be used: %v", s.Name, err)
		return
	}
	m.Settings = append(m.Settings, strictjson.Member{Name: s.Name, Value: v})
}
