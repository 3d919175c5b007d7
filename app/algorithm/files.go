package algorithm

import (
	"encoding/json"
	"fmt"
	"slices"

	"molrun/app/base/naming"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// Limits on the number of files in one setting.
const (
	maxItems        = 1000
	defaultMaxItems = 100
)

// listKeys are the additional keys of a parameter that is a list of files.
var listKeys = []string{"type", "minItems", "maxItems"}

// isList reports whether a file parameter is a list of files.
func isList(t *tomltree.Node) bool {
	n := t.Member("type")
	return n != nil && n.Kind == strictjson.String && n.Text == "array"
}

// fileSchema returns the schema of a setting that refers to one or many files.
func fileSchema(r *tomltree.Reader, p *Parameter, t *tomltree.Node) json.RawMessage {
	const one = `{"type":"string","minLength":1}`
	if !p.Many {
		return json.RawMessage(one)
	}
	least, most := int64(1), int64(defaultMaxItems)
	if n := t.Member("minItems"); n != nil {
		least = r.Within(n, "minItems", 1, maxItems)
		most = max(most, least)
	}
	if n := t.Member("maxItems"); n != nil {
		if most = r.Within(n, "maxItems", 1, maxItems); most < least {
			r.Errorf(n.Line, "maxItems is less than minItems")
		}
	}
	p.least, p.most = int(least), int(most)
	return fmt.Appendf(nil, `{"type":"array","items":%s,"minItems":%d,"maxItems":%d}`, one, least, most)
}

// paths returns the path of each file parameter: a list for a list of files, or nil if no
// file is given.
func (all Parameters) paths(of map[string][]string) map[string]any {
	files := map[string]any{}
	for _, p := range all.Files() {
		files[p.Name] = nil
		switch paths := of[p.Name]; {
		case p.Many && len(paths) > 0:
			list := make([]any, len(paths))
			for i, path := range paths {
				list[i] = path
			}
			files[p.Name] = list
		case len(paths) == 1:
			files[p.Name] = paths[0]
		}
	}
	return files
}

// NamedFile is a file named in settings.
type NamedFile struct {
	Loc  []any  // path below the settings
	Path string // path of a file in an output; otherwise ""

	Summary string // summary of the content, if RunValidator has read it
}

// FileReference is the text of a setting that refers to a file, and its position.
type FileReference struct {
	Loc  []any // path below the settings
	Text string
}

// File returns a file that the reference names. It has a path only if it belongs to an
// output.
func (r FileReference) File(output, path string) NamedFile {
	if output == "" {
		path = ""
	}
	return NamedFile{Loc: r.Loc, Path: path}
}

// References returns the file references in the parameter's setting. It skips values that
// are not strings.
func (p *Parameter) References(settings *strictjson.Value) (refs []FileReference) {
	v := settings.Member(p.Name)
	switch {
	case v == nil:
	case !p.Many && v.Kind == strictjson.String:
		return []FileReference{{[]any{p.Name}, v.Text}}
	case p.Many:
		for i, item := range v.Items {
			if item.Kind == strictjson.String {
				refs = append(refs, FileReference{[]any{p.Name, i}, item.Text})
			}
		}
	}
	return refs
}

// namesOutput reports whether any value of the setting refers to an output of a job,
// which can be many files.
func namesOutput(v *strictjson.Value) bool {
	return slices.ContainsFunc(v.Items, func(item *strictjson.Value) bool {
		return item.Kind == strictjson.String && naming.ParseReference(item.Text).Output != ""
	})
}

// padded extends a list that refers to outputs to the minimum length, because an output
// can be several files.
func (p *Parameter) padded(v *strictjson.Value) *strictjson.Value {
	if !p.Many || v.Kind != strictjson.Array || len(v.Items) >= p.least || !namesOutput(v) {
		return v
	}
	long := *v
	long.Items = slices.Clone(v.Items)
	for len(long.Items) < p.least {
		long.Items = append(long.Items, v.Items[0])
	}
	return &long
}

// fileOrNot explains whether a parameter is a file, for messages about its wrong use.
// begin and end enclose the placeholder.
func fileOrNot(p *Parameter, begin, end string) string {
	if len(p.File) > 0 {
		return "a file: write " + begin + "files." + p.Name + end
	}
	return "not a file: write " + begin + "settings." + p.Name + end
}
