package seqprop

import (
	"strings"

	"molrun/app/engine/md"
)

// masses are average residue masses in Da: amino acid minus water (IUPAC atomic masses).
var masses = [len(md.Letters)]float64{
	71.0779, 103.1429, 115.0874, 129.1140, 147.1739, 57.0513, 137.1393, 113.1576, 128.1723, 113.1576,
	131.1961, 114.1026, 97.1152, 128.1292, 156.1857, 87.0773, 101.1039, 99.1311, 186.2099, 163.1733,
}

const water = 18.0153 // Da

// composition counts the residues of a sequence of the twenty amino acids.
func composition(sequence string) (counts [len(md.Letters)]int) {
	for k := range sequence {
		counts[strings.IndexByte(md.Letters, sequence[k])]++
	}
	return counts
}

// firstUnknown returns the first letter that is not one of the twenty amino acids, with its
// 1-based position, or 0.
func firstUnknown(sequence string) (letter rune, position int) {
	for _, c := range sequence {
		position++
		if !strings.ContainsRune(md.Letters, c) {
			return c, position
		}
	}
	return 0, 0
}
