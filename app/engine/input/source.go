package input

import (
	"slices"
	"strings"

	"molrun/app/base/fault"
)

// ChainReader reads sequences from settings.
type ChainReader struct {
	*Reader
	Noun     string // what messages call a sequence
	MaxCount int    // maximum number per job

	taken map[string]int // indexes by lower-case name
}

// NewChainReader is like NewReader for settings with sequences.
func NewChainReader(settings []byte, keys []string, noun string, most int) (*ChainReader, *fault.Field) {
	r, wrong := NewReader(settings, keys)
	return &ChainReader{Reader: r, Noun: noun, MaxCount: most, taken: map[string]int{}}, wrong
}

// CheckSequence validates the letters of a sequence.
func (r *ChainReader) CheckSequence(name, letters string, loc []any) {
	for _, wrong := range checkSequence(name, letters) {
		r.Fault(loc, Sequence, "%s", wrong)
	}
}

// CheckName validates a name and checks that it is unique. Names are compared without
// regard to case, as on the file systems of many users. Names of result files are
// reserved.
func (r *ChainReader) CheckName(name string, loc []any, index int, reserved ...string) {
	lower := strings.ToLower(name)
	wrong := checkName(name)
	if slices.Contains(reserved, lower) {
		wrong = "is the name of a result file; choose another"
	}
	if wrong != "" {
		r.Fault(loc, Name, "the name %q of %s %d %s", name, r.Noun, index+1, wrong)
	}
	if first, ok := r.taken[lower]; ok {
		r.Fault(loc, Name, "%ss %d and %d are both called %q; give them different names", r.Noun, first+1, index+1, name)
		return
	}
	r.taken[lower] = index
}

// Source is a record with its origin.
type Source struct {
	Record
	Index int // index among the input sequences
	Loc   []any
}

// File reads the FASTA text named by the setting fasta. It returns nil if the content is
// not available.
func (r *ChainReader) File(fasta []byte) []Source {
	if _, ok := r.Text("fasta"); !ok {
		r.Fault(Loc("fasta"), Type, "fasta must name a file, not %s", KindOf(r.Raw("fasta")))
		return nil
	}
	if fasta == nil {
		return nil
	}
	return r.FASTA("fasta", fasta)
}

// FASTA reads sequences from FASTA text.
func (r *ChainReader) FASTA(key string, text []byte) []Source {
	if len(text) > MaxFASTA {
		r.Fault(Loc(key), Sequence, "%s has more than %d MiB; give at most %d sequences of at most %d residues",
			key, MaxFASTA>>20, r.MaxCount, maxResidues)
		return nil
	}
	records, wrong := Records(text)
	if wrong != "" {
		r.Fault(Loc(key), Sequence, "%s %s", key, wrong)
		return nil
	}
	var sources []Source
	for i, rec := range records {
		sources = append(sources, Source{rec, i, Loc(key)})
	}
	return r.CheckCount(key, len(sources), sources)
}

// CheckCount checks the number of sequences.
func (r *ChainReader) CheckCount(key string, count int, sources []Source) []Source {
	switch {
	case count > r.MaxCount:
		r.Fault(Loc(key), Sequence, "%s holds %d sequences; at most %d can be simulated in one job: make several jobs",
			key, count, r.MaxCount)
		return nil
	case count == 0 && !r.HasFault(key):
		r.Fault(Loc(key), Sequence, "%s holds no sequence; give at least one", key)
	}
	return sources
}
