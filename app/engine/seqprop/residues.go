package seqprop

import "strings"

// letters are the twenty amino acids, in the order of the tables.
const letters = "ACDEFGHIKLMNPQRSTVWY"

// masses of residues, average, in Da: amino acid less water (IUPAC atomic masses).
var masses = [len(letters)]float64{
	71.0779, 103.1429, 115.0874, 129.1140, 147.1739, 57.0513, 137.1393, 113.1576, 128.1723, 113.1576,
	131.1961, 114.1026, 97.1152, 128.1292, 156.1857, 87.0773, 101.1039, 99.1311, 186.2099, 163.1733,
}

const water = 18.0153 // Da

// hydropathies of Kyte and Doolittle (10.1016/0022-2836(82)90515-0), from -4.5 to 4.5.
var hydropathies = [len(letters)]float64{
	1.8, 2.5, -3.5, -3.5, 2.8, -0.4, -3.2, 4.5, -3.9, 3.8,
	1.9, -3.5, -1.6, -3.5, -4.5, -0.8, -0.7, 4.2, -0.9, -1.3,
}

// charge of a residue near pH 7, in e. Histidine counts as neutral, as in kappa, SCD and the
// charge-hydropathy plot.
func charge(letter byte) int {
	switch letter {
	case 'K', 'R':
		return 1
	case 'D', 'E':
		return -1
	}
	return 0
}

// composition counts the residues of a sequence that has no other letters.
func composition(sequence string) (counts [len(letters)]int) {
	for k := range sequence {
		counts[strings.IndexByte(letters, sequence[k])]++
	}
	return counts
}

// unknown returns the first letter that stands for no single one of the twenty amino acids,
// and its position from 1, or 0.
func unknown(sequence string) (letter rune, position int) {
	for _, c := range sequence {
		position++
		if !strings.ContainsRune(letters, c) {
			return c, position
		}
	}
	return 0, 0
}
