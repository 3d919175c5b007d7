package cgidp

import (
	"fmt"
	"slices"
	"strings"

	"molrun/app/engine/input"
	"molrun/app/engine/sequence"
	"molrun/app/unit"
)

const (
	// MaxFASTA is the largest FASTA text that is read, in bytes: enough for 64
	// chains of 2000 residues with long headers and much white space.
	MaxFASTA = 4 << 20

	maxSequences = 64
)

// source is a record with the place it came from.
type source struct {
	sequence.Record
	index int // among the sequences as given
	loc   []any
}

// sources finds the sequences wherever the settings have them.
func (r *reader) sources(fasta []byte) []source {
	switch inline, file := r.Has("sequences"), r.Has("fasta"); {
	case inline && file:
		r.Fault(input.Loc("fasta"), input.Conflict, "give either sequences or fasta, not both")
	case inline:
		return r.inlineSources()
	case file:
		return r.fileSources(fasta)
	default:
		r.Fault(input.Loc("sequences"), input.Missing, "give sequences: amino acids in one-letter code, or a FASTA file as fasta")
	}
	return nil
}

func (r *reader) fileSources(fasta []byte) []source {
	if _, ok := r.Text("fasta"); !ok {
		r.Fault(input.Loc("fasta"), input.Type, "fasta must name a file, not %s", input.KindOf(r.Raw("fasta")))
		return nil
	}
	if fasta == nil {
		return nil
	}
	return r.textSources("fasta", fasta)
}

func (r *reader) inlineSources() []source {
	const key = "sequences"
	if text, ok := r.Text(key); ok {
		return r.textSources(key, []byte(text))
	}
	items, ok := r.Texts(key)
	if !ok {
		r.Fault(input.Loc(key), input.Type, "sequences must be a list of sequences or one FASTA text, not %s", input.KindOf(r.Raw(key)))
		return nil
	}
	var sources []source
	for i, item := range items {
		if item == nil {
			continue
		}
		if records, ok := r.records(*item, i); ok {
			sources = append(sources, source{append(records, sequence.Record{})[0], i, input.Loc(key, i)})
		}
	}
	return r.counted(key, len(items), sources)
}

// records reads an item of sequences, which may hold one.
func (r *reader) records(item string, index int) ([]sequence.Record, bool) {
	records := sequence.ParseFASTA([]byte(item))
	if len(records) > 1 {
		r.Fault(input.Loc("sequences", index), input.Sequence, "item %d of sequences holds %d sequences; make each an item of its own",
			index+1, len(records))
		return nil, false
	}
	return records, true
}

// textSources reads one FASTA text.
func (r *reader) textSources(key string, text []byte) []source {
	if len(text) > MaxFASTA {
		r.Fault(input.Loc(key), input.Sequence, "%s has more than %d MiB; give at most %d sequences of at most %d residues",
			key, MaxFASTA>>20, maxSequences, sequence.MaxResidues)
		return nil
	}
	text, instead := sequence.PlainText(text)
	if instead != "" {
		r.Fault(input.Loc(key), input.Sequence, "%s is %s; save the sequences as plain text in FASTA format: a line \">name\" above the letters of each",
			key, instead)
		return nil
	}
	var sources []source
	for i, rec := range r.headed(key, sequence.ParseFASTA(text)) {
		sources = append(sources, source{rec, i, input.Loc(key)})
	}
	return r.counted(key, len(sources), sources)
}

// headed refuses a text in which the beginnings of sequences are uncertain: text
// that is not meant as one chain must not be simulated as one.
func (r *reader) headed(key string, records []sequence.Record) []sequence.Record {
	switch {
	case len(records) == 0 || records[0].Headed:
	case len(records) > 1:
		r.Fault(input.Loc(key), input.Sequence, "%s has text before the first header, %q; give it a header (a line \">name\") or remove it",
			key, sequence.Shorten(records[0].Letters, 20))
		return records[1:]
	case records[0].MayBeSeveral():
		r.Fault(input.Loc(key), input.Sequence, "%s has %d lines but no header, so these may be several sequences; write a line \">name\" above each sequence",
			key, len(records[0].Lines))
		return nil
	}
	return records
}

// counted checks the number of sequences.
func (r *reader) counted(key string, count int, sources []source) []source {
	switch {
	case count > maxSequences:
		r.Fault(input.Loc(key), input.Sequence, "%s holds %d sequences; at most %d can be simulated in one job: make several jobs",
			key, count, maxSequences)
		return nil
	case count == 0 && !r.Faulty(key):
		r.Fault(input.Loc(key), input.Sequence, "%s holds no sequence; give at least one", key)
	}
	return sources
}

// sequences checks the sources and names them.
func (r *reader) sequences(sources []source) []Sequence {
	taken := map[string]int{}
	names := r.names(len(sources), taken)
	sequences := make([]Sequence, len(sources))
	for k, s := range sources {
		name := s.Name
		if name == "" {
			name = fmt.Sprintf("seq%d", s.index+1)
		}
		if s.index < len(names) && names[s.index] != nil {
			name = *names[s.index]
		} else {
			r.checkName(name, s.loc, taken, s.index)
		}
		for _, wrong := range sequence.Check(name, s.Letters) {
			r.Fault(s.loc, input.Sequence, "%s", wrong)
		}
		sequences[k] = Sequence{Name: name, Residues: s.Letters}
	}
	return sequences
}

// names returns the setting names. Their number cannot be checked while the
// sequences are wrong or not known.
func (r *reader) names(sequences int, taken map[string]int) []*string {
	if !r.Has("names") {
		return nil
	}
	names, ok := r.Texts("names")
	switch {
	case !ok:
		r.Fault(input.Loc("names"), input.Type, "names must be a list of names, not %s", input.KindOf(r.Raw("names")))
	case sequences > 0 && len(names) != sequences && !r.Faulty("sequences"):
		verb := "are"
		if len(names) == 1 {
			verb = "is"
		}
		r.Fault(input.Loc("names"), input.Name, "there %s %s for %s; give one name for each",
			verb, unit.Count(len(names), "name"), unit.Count(sequences, "sequence"))
	}
	for i, name := range names {
		if name != nil {
			r.checkName(*name, input.Loc("names", i), taken, i)
		}
	}
	return names
}

// reservedNames belong to files beside the folders of the sequences.
var reservedNames = []string{metricsFile, resultsFile, "log"}

// checkName checks one name against the rules and the names before it. Letter
// case makes no difference, as on the file systems of many users.
func (r *reader) checkName(name string, where []any, taken map[string]int, index int) {
	lower := strings.ToLower(name)
	wrong := sequence.CheckName(name)
	if slices.Contains(reservedNames, lower) {
		wrong = "is that of a result file; choose another"
	}
	if wrong != "" {
		r.Fault(where, input.Name, "the name %q of sequence %d %s", name, index+1, wrong)
	}
	if first, ok := taken[lower]; ok {
		r.Fault(where, input.Name, "sequences %d and %d are both called %q; give them different names", first+1, index+1, name)
		return
	}
	taken[lower] = index
}
