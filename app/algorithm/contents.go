package algorithm

import (
	"cmp"
	"slices"
	"strings"

	"molrun/app/algorithm/content"
	"molrun/app/base/structure"
	"molrun/app/base/tomltree"
)

// contentKeys are the keys of a file's parameter that say what it holds.
var contentKeys = []string{"content", "min_residues", "max_residues", "max_atoms", "min_records", "max_records", "columns", "unique_names", "any_text", "pdb", "tolerant"}

// readContent reads what a file has to hold, nil if it may hold anything.
func readContent(r *tomltree.Reader, t *tomltree.Node, extensions []string) *content.Want {
	kind := r.Text(t, "content")
	want := &content.Want{Kind: kind, Columns: r.Texts(t, "columns"), UniqueNames: r.Flag(t, "unique_names"), AnyText: r.Flag(t, "any_text"), Tolerant: r.Flag(t, "tolerant")}
	want.Packed = slices.ContainsFunc(extensions, func(ext string) bool { return strings.HasSuffix(strings.ToLower(ext), ".gz") })
	want.PDB = readSelections(r, t)
	want.AnyText = want.AnyText || want.PDB != nil
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
			r.Mistakef(m.Line, "%s needs content, which says what the file holds", m.Name)
		case kind != "" && !slices.Contains(content.Keys(kind), m.Name):
			r.Mistakef(m.Line, "%s says nothing about %s; its bounds are %s", m.Name, kind, strings.Join(content.Keys(kind), ", "))
		}
	}
	if kind == "" {
		return nil
	}
	return want
}

// readSelections reads with which options molrun makes PDB files of a structure.
func readSelections(r *tomltree.Reader, t *tomltree.Node) (all []structure.Selection) {
	for i, options := range r.Texts(t, "pdb") {
		var leave structure.Selection
		for option := range strings.FieldsSeq(options) {
			name, isOption := strings.CutPrefix(option, "--")
			leaves := leave.Option(name)
			if !isOption || leaves == nil {
				r.Mistakef(t.Member("pdb").Items[i].Line, "pdb: %q is not an option of molrun engine pdb; valid options: --%s", option, strings.Join(structure.Options, ", --"))
				continue
			}
			*leaves = true
		}
		all = append(all, leave)
	}
	return all
}

// readsContent reports whether the files of some parameter are read at submission.
func (all Parameters) readsContent() bool {
	return slices.ContainsFunc(all, func(p Parameter) bool { return p.content != nil })
}

// Content returns what the file has to hold; nil: anything.
func (p *Parameter) Content() *content.Want { return p.content }

// contentKind returns the kind of content, "" if the file may hold anything.
func (p *Parameter) contentKind() string { return cmp.Or(p.content, &content.Want{}).Kind }

// HoldsSequences reports whether the file has to hold sequences.
func (p *Parameter) HoldsSequences() bool { return strings.HasSuffix(p.contentKind(), "sequences") }
