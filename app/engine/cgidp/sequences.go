package cgidp

import (
	"fmt"

	"molrun/app/base/unit"
	"molrun/app/engine/input"
)

const maxSequences = 64

// sources returns the sequences from the settings or the FASTA file.
func (r *reader) sources(fasta []byte) []input.Source {
	switch inline, file := r.Has("sequences"), r.Has("fasta"); {
	case inline && file:
		r.Fault(input.Loc("fasta"), input.Conflict, "give either sequences or fasta, not both")
	case inline:
		return r.inlineSources()
	case file:
		return r.File(fasta)
	default:
		r.Fault(input.Loc("sequences"), input.Missing, "give sequences: amino acids in one-letter code, or a FASTA file as fasta")
	}
	return nil
}

func (r *reader) inlineSources() []input.Source {
	const key = "sequences"
	if text, ok := r.Text(key); ok {
		return r.FASTA(key, []byte(text))
	}
	items, ok := r.Texts(key)
	if !ok {
		r.Fault(input.Loc(key), input.Type, "sequences must be a list of sequences or one FASTA text, not %s", input.KindOf(r.Raw(key)))
		return nil
	}
	var sources []input.Source
	for i, item := range items {
		if item == nil {
			continue
		}
		if records, ok := r.records(*item, i); ok {
			sources = append(sources, input.Source{Record: append(records, input.Record{})[0], Index: i, Loc: input.Loc(key, i)})
		}
	}
	return r.CheckCount(key, len(items), sources)
}

// records parses one item of sequences, which can be a FASTA record.
func (r *reader) records(item string, index int) ([]input.Record, bool) {
	records := input.ParseFASTA([]byte(item))
	if len(records) > 1 {
		r.Fault(input.Loc("sequences", index), input.Sequence, "item %d of sequences holds %d sequences; make each an item of its own",
			index+1, len(records))
		return nil, false
	}
	return records, true
}

// sequences validates the sources and names them.
func (r *reader) sequences(sources []input.Source) []Sequence {
	names := r.names(len(sources))
	sequences := make([]Sequence, len(sources))
	for k, s := range sources {
		name := s.Name
		if name == "" {
			name = fmt.Sprintf("seq%d", s.Index+1)
		}
		if s.Index < len(names) && names[s.Index] != nil {
			name = *names[s.Index]
		} else {
			r.CheckName(name, s.Loc, s.Index, reservedNames...)
		}
		r.CheckSequence(name, s.Letters, s.Loc)
		sequences[k] = Sequence{Name: name, Residues: s.Letters}
	}
	return sequences
}

// names returns the setting "names". Its length cannot be checked while the sequences are
// invalid or unknown.
func (r *reader) names(sequences int) []*string {
	if !r.Has("names") {
		return nil
	}
	names, ok := r.Texts("names")
	switch {
	case !ok:
		r.Fault(input.Loc("names"), input.Type, "names must be a list of names, not %s", input.KindOf(r.Raw("names")))
	case sequences > 0 && len(names) != sequences && !r.HasFault("sequences"):
		verb := "are"
		if len(names) == 1 {
			verb = "is"
		}
		r.Fault(input.Loc("names"), input.Name, "there %s %s for %s; give one name for each",
			verb, unit.Count(len(names), "name"), unit.Count(sequences, "sequence"))
	}
	for i, name := range names {
		if name != nil {
			r.CheckName(*name, input.Loc("names", i), i, reservedNames...)
		}
	}
	return names
}

// reservedNames are taken by files in the same folder as the folders of the sequences.
var reservedNames = []string{metricsFile, resultsFile, "log"}
