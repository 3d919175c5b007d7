// Package sequence reads protein sequences as people write them: FASTA text in
// the encodings of several systems, one letter per residue. It says in words for
// the user what is wrong with a sequence or a name and how to correct it.
package sequence

// Limits of a sequence.
const (
	MinResidues = 5
	MaxResidues = 2000
)
