// Package fanout makes the rows of a batch: one for each file of a folder, each
// record of a FASTA file, or each line of a table. It reads uploads through an
// interface and converts text by the parameters of the algorithm.
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

// Member is the member of a submission that asks for rows.
const Member = "fanOut"

// AllColumns stands where the name of a setting does, for all columns of a table.
const AllColumns = "*"

// Request says how the rows are made. If there are several sources, each row takes
// the next of all of them.
type Request struct {
	Sources  []Source          // sorted by setting
	Settings *strictjson.Value // what all rows have, an object; nil: nothing
}

// Source is where the values of a setting come from, or those of all settings that
// are columns of a table.
type Source struct {
	Setting string // or AllColumns
	Kind    Kind
	Ref     string // of an upload or a result, as settings name it; of a folder, its name
	Pattern string // of file names
	Text    []byte // of a table that is the body of the request; there is no Ref then
}

// Kind is a kind of source.
type Kind string

// The kinds of sources, as they are written before a colon.
const (
	Folder Kind = "folder"
	FASTA  Kind = "fasta"
	CSV    Kind = "csv"
	TSV    Kind = "tsv"
)

var kinds = []string{string(Folder), string(FASTA), string(CSV), string(TSV)}

// Sent returns the request of a table that is the body itself.
func Sent(text []byte, tabs bool) Request {
	kind := CSV
	if tabs {
		kind = TSV
	}
	if text == nil {
		text = []byte{}
	}
	return Request{Sources: []Source{{Setting: AllColumns, Kind: kind, Text: text}}}
}

// IsSent reports whether the request is a table that is the body itself.
func (r *Request) IsSent() bool { return len(r.Sources) == 1 && r.Sources[0].Text != nil }

// ReadRequest reads the member of a submission. Paths of faults begin with its name.
func ReadRequest(v *strictjson.Value) (Request, []fault.Field) {
	var r Request
	var faults []fault.Field
	fail := func(kind, msg string, loc ...any) {
		faults = append(faults, fault.Field{Loc: append([]any{Member}, loc...), Msg: msg, Type: kind})
	}
	for _, m := range v.Members {
		switch {
		case m.Name != "each" && m.Name != "settings":
			fail("unknown", fmt.Sprintf("unknown member %q; known are each, settings", m.Name), m.Name)
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
		fail("missing", `this member is required: say what each row takes, such as {"ligand": "folder:ligands/*.sdf"}`, "each")
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

// findRepeated finds settings that all rows have and each row has too.
func (r *Request) findRepeated(fail func(kind, msg string, loc ...any)) {
	for _, s := range r.Sources {
		if r.Settings != nil && r.Settings.Member(s.Setting) != nil {
			fail("value", "each gives this setting already: leave it out here or there", "settings", s.Setting)
		}
	}
}

// parseSource reads kind:what. The message says what is wrong, "" if nothing.
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
		return s, fmt.Sprintf("%q stands for the columns of a table, csv:<file> or tsv:<file>; name the setting", AllColumns)
	case what == "":
		return s, fmt.Sprintf("name the file, as %s:<folder>/<filename>, a fileId or job:<jobName>/<path>", kind)
	case s.Kind == Folder:
		return s, s.splitPattern()
	}
	return s, ""
}

// splitPattern splits a folder from the pattern of its files' names. Without one,
// the files are all.
func (s *Source) splitPattern() string {
	i := strings.LastIndexByte(s.Ref, '/')
	if i < 0 {
		return fmt.Sprintf("write folder:<folder>/<pattern>, such as folder:%s/*", cmp.Or(s.Ref, "ligands"))
	}
	s.Ref, s.Pattern = s.Ref[:i], cmp.Or(s.Ref[i+1:], "*")
	if strings.ContainsAny(s.Ref, "*?[") {
		return "use *, ? and [ ] in the names of files only, not of folders"
	}
	if msg := naming.CheckFolder(s.Ref); msg != "" {
		return "folder: " + msg
	}
	if _, err := path.Match(s.Pattern, ""); err != nil {
		return fmt.Sprintf(`%q is no pattern: use * for any characters, ? for one, [a-z] for one of these`, s.Pattern)
	}
	return ""
}
