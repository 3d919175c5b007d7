// Package fanout creates the jobs of a batch: one for each file of a folder, record of a
// FASTA file, or line of a table. It reads uploads through an interface and converts text
// according to the algorithm's parameters.
package fanout

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
)

// Member is the member of a submission that requests a batch.
const Member = "fanOut"

// AllColumns takes the place of a setting's name and means all columns of a table.
const AllColumns = "*"

// Request describes how to create the jobs. With several sources, job i takes entry i of
// each.
type Request struct {
	Sources  []Source          // sorted by setting
	Settings *strictjson.Value // settings shared by all jobs, an object; nil if none
}

// Source provides the values of one setting, or of every setting that is a column of a
// table.
type Source struct {
	Setting string // or AllColumns
	Kind    Kind
	Ref     string // upload or result, in the notation of settings; or the name of a folder
	Pattern string // for file names
	Text    []byte // content of a table sent as the request body, which has no Ref
}

// Kind is a kind of source.
type Kind string

// Kinds of sources; the value is the prefix before the colon.
const (
	Folder Kind = "folder"
	FASTA  Kind = "fasta"
	CSV    Kind = "csv"
	TSV    Kind = "tsv"
)

var kinds = []string{string(Folder), string(FASTA), string(CSV), string(TSV)}

// FromBody returns the request for a table sent as the body.
func FromBody(text []byte, tabs bool) Request {
	kind := CSV
	if tabs {
		kind = TSV
	}
	if text == nil {
		text = []byte{}
	}
	return Request{Sources: []Source{{Setting: AllColumns, Kind: kind, Text: text}}}
}

// IsBody reports whether the request is a table sent as the body.
func (r *Request) IsBody() bool { return len(r.Sources) == 1 && r.Sources[0].Text != nil }

// ReadRequest reads the fanOut member of a submission. Paths of errors begin with its
// name.
func ReadRequest(v *strictjson.Value) (Request, []fault.Field) {
	var r Request
	var faults []fault.Field
	fail := func(kind, msg string, loc ...any) {
		faults = append(faults, fault.Field{Loc: append([]any{Member}, loc...), Msg: msg, Type: kind})
	}
	for _, m := range v.Members {
		switch {
		case m.Name != "each" && m.Name != "settings":
			fail("unknown", fmt.Sprintf("unknown member %q; use each or settings", m.Name), m.Name)
		case m.Name == "settings" && m.Value.Kind == strictjson.Null:
		case m.Value.Kind != strictjson.Object:
			fail("type", fmt.Sprintf("use an object, not %v", m.Value.Kind), m.Name)
		case m.Name == "settings":
			r.Settings = m.Value
		default:
			r.readEach(m.Value, fail)
		}
	}
	if v.Member("each") == nil {
		fail("missing", `this member is required: specify the source of each job's values, such as {"ligand": "folder:ligands/*.sdf"}`, "each")
	}
	r.findRepeated(fail)
	return r, faults
}

func (r *Request) readEach(v *strictjson.Value, fail func(kind, msg string, loc ...any)) {
	sources := map[string]Source{}
	for _, m := range v.Members {
		if m.Value.Kind != strictjson.String {
			fail("type", fmt.Sprintf("use a string such as folder:ligands/*.sdf, not %v", m.Value.Kind), "each", m.Name)
			continue
		}
		source, msg := parseSource(m.Name, m.Value.Text)
		if msg != "" {
			fail("value", msg, "each", m.Name)
			continue
		}
		sources[m.Name] = source
	}
	if len(v.Members) == 0 {
		fail("value", `name at least one setting, such as {"ligand": "folder:ligands/*.sdf"}`, "each")
	}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		r.Sources = append(r.Sources, sources[name])
	}
}

// findRepeated reports settings given both for all jobs and for each job.
func (r *Request) findRepeated(fail func(kind, msg string, loc ...any)) {
	for _, s := range r.Sources {
		if r.Settings != nil && r.Settings.Member(s.Setting) != nil {
			fail("value", "this setting is also given in each: remove one of the two", "settings", s.Setting)
		}
	}
}

// parseSource parses kind:reference. It returns an error message, or "" if valid.
func parseSource(setting, text string) (Source, string) {
	kind, what, found := strings.Cut(naming.Composed(text), ":")
	s := Source{Setting: setting, Kind: Kind(kind), Ref: what}
	switch {
	case !found || !slices.Contains(kinds, kind):
		if near := plaintext.Nearest(kind, kinds); found && near != "" {
			return s, fmt.Sprintf("did you mean %s:%s?", near, what)
		}
		return s, "write folder:<folder>/<pattern>, fasta:<file>, csv:<file> or tsv:<file>"
	case setting == AllColumns && s.Kind != CSV && s.Kind != TSV:
		return s, fmt.Sprintf("%q means the columns of a table, csv:<file> or tsv:<file>; for other sources, name the setting", AllColumns)
	case s.Kind == Folder:
		return s, s.splitPattern()
	case what == "":
		return s, fmt.Sprintf("%s: must be followed by a file: <folder>/<filename>, a fileId or job:<jobName>/<path>", kind)
	}
	return s, ""
}

// splitPattern splits a folder from the pattern for its file names. The default pattern
// matches all files.
func (s *Source) splitPattern() string {
	i := strings.LastIndexByte(s.Ref, '/')
	if i < 0 {
		return fmt.Sprintf("write folder:<folder>/<pattern>, such as folder:%s/*", cmp.Or(s.Ref, "ligands"))
	}
	s.Ref, s.Pattern = s.Ref[:i], cmp.Or(s.Ref[i+1:], "*")
	if strings.ContainsAny(s.Ref, "*?[") {
		return "use *, ? and [ ] only in file names, not in folder names"
	}
	if msg := naming.CheckFolder(s.Ref); msg != "" {
		return "folder: " + msg
	}
	if _, err := path.Match(s.Pattern, ""); err != nil {
		return fmt.Sprintf(`%q is not a valid pattern: use * for any characters, ? for one, [a-z] for a range`, s.Pattern)
	}
	return ""
}
