package sequence

import (
	"math"
	"strings"
)

// hydropathy is the scale of Kyte and Doolittle (J. Mol. Biol. 1982, 157, 105)
// in the order of Letters.
var hydropathy = [len(Letters)]float64{
	1.8, 2.5, -3.5, -3.5, 2.8, -0.4, -3.2, 4.5, -3.9, 3.8,
	1.9, -3.5, -1.6, -3.5, -4.5, -0.8, -0.7, 4.2, -0.9, -1.3,
}

// LooksFolded reports whether a sequence of Letters has the composition of folded
// proteins, by the charge-hydropathy plot of Uversky, Gillespie and Fink (Proteins
// 2000, 41, 415): folded proteins lie below the line.
func LooksFolded(letters string) bool {
	charge, mean := 0.0, 0.0
	for i := range len(letters) {
		switch letters[i] {
		case 'D', 'E':
			charge--
		case 'K', 'R':
			charge++
		}
		mean += (hydropathy[strings.IndexByte(Letters, letters[i])] + 4.5) / 9
	}
	n := float64(len(letters))
	return math.Abs(charge)/n < 2.785*mean/n-1.151
}

// LooksLikeDNA reports whether a sequence may be DNA: it is not very short and
// has no other letters than A, C, G and T.
func LooksLikeDNA(letters string) bool {
	return len(letters) >= 20 && strings.Trim(letters, "ACGT") == ""
}
