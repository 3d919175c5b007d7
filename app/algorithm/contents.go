package algorithm

import (
	"cmp"
	"slices"
	"strings"

	"molrun/app/algorithm/content"
	"molrun/app/base/structure"
	"molrun/app/base/tomltree"
)

// contentKeys are the keys of a file parameter that describe its content.
var contentKeys = []string{"content", "min_residues", "max_residues", "max_atoms", "min_records", "max_records", "columns", "unique_names", "any_text", "pdb", "tolerant"}

// readContent reads the required content of a file, or nil if unrestricted.
func readContent(r *tomltree.Reader, t *tomltree.Node, extensions []string) *content.Want {
	kind := r.Text(t, "content")
	want := &content.Want{Kind: kind, Columns: r.Texts(t, "columns"), UniqueNames: r.Flag(t, "unique_names"), AcceptsTextVariants: r.Flag(t, "any_text"), Tolerant: r.Flag(t, "tolerant")}
	want.Packed = slices.ContainsFunc(extensions, func(ext string) bool { return strings.HasSuffix(strings.ToLower(ext), ".gz") })
	want.PDB = readSelections(r, t)
	want.AcceptsTextVariants = want.AcceptsTextVariants || want.PDB != nil
	for key, to := range map[string]*int{
		"min_residues": &want.MinResidues, "max_residues": &want.MaxResidues, "max_atoms": &want.MaxAtoms,
		"min_records": &want.MinRecords, "max_records": &want.MaxRecords,
	} {
		if n := t.Member(key); n != nil {
			*to = int(n.Int())
		}
	}
	for _, m := range t.Members {
		switch {
		case m.Name == "content" || !slices.Contains(contentKeys, m.Name):
		case t.Member("content") == nil:
			r.Errorf(m.Line, "%s needs content, the kind of file content", m.Name)
		case kind != "" && !slices.Contains(content.Keys(kind), m.Name):
			r.Errorf(m.Line, "%s does not apply to %s; its limits are %s", m.Name, kind, strings.Join(content.Keys(kind), ", "))
		}
	}
	if kind == "" {
		return nil
	}
	return want
}

// readSelections reads the options with which molrun converts a structure to PDB files.
func readSelections(r *tomltree.Reader, t *tomltree.Node) (all []structure.Selection) {
	for i, options := range r.Texts(t, "pdb") {
		var leave structure.Selection
		for option := range strings.FieldsSeq(options) {
			name, isOption := strings.CutPrefix(option, "--")
			leaves := leave.Option(name)
			if !isOption || leaves == nil {
				r.Errorf(t.Member("pdb").Items[i].Line, "pdb: %q is not an option of molrun engine pdb; valid options: --%s", option, strings.Join(structure.Options, ", --"))
				continue
			}
			*leaves = true
		}
		all = append(all, leave)
	}
	return all
}

// readsContent reports whether files of any parameter are read at submission.
func (all Parameters) readsContent() bool {
	return slices.ContainsFunc(all, func(p Parameter) bool { return p.content != nil })
}

// Content returns the required content of the file, or nil if unrestricted.
func (p *Parameter) Content() *content.Want { return p.content }

// contentKind returns the kind of content, or "" if unrestricted.
func (p *Parameter) contentKind() string { return cmp.Or(p.content, &content.Want{}).Kind }

// HoldsSequences reports whether the file must contain sequences.
func (p *Parameter) HoldsSequences() bool { return strings.HasSuffix(p.contentKind(), "sequences") }
