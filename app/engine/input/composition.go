package input

import (
	"math"
	"strings"

	"molrun/app/engine/md"
)

// Hydropathies is the Kyte–Doolittle scale (10.1016/0022-2836(82)90515-0), from -4.5 to
// 4.5, in the order of md.Letters.
var Hydropathies = [len(md.Letters)]float64{
	1.8, 2.5, -3.5, -3.5, 2.8, -0.4, -3.2, 4.5, -3.9, 3.8,
	1.9, -3.5, -1.6, -3.5, -4.5, -0.8, -0.7, 4.2, -0.9, -1.3,
}

// Charge returns the charge of a residue near pH 7, in e. Histidine counts as neutral, as
// in kappa, SCD and the charge-hydropathy plot.
func Charge(letter byte) int {
	switch letter {
	case 'K', 'R':
		return 1
	case 'D', 'E':
		return -1
	}
	return 0
}

// Disorder returns the distance of a sequence with the given mean hydropathy and mean
// charge per residue from the line that separates folded from disordered proteins in the
// plot of Uversky, Gillespie and Fink
// (10.1002/1097-0134(20001115)41:3<415::AID-PROT130>3.0.CO;2-7). It is positive for
// disordered proteins.
func Disorder(hydropathy, charge float64) float64 {
	scaled := (hydropathy + 4.5) / 9
	return math.Abs(charge) - (2.785*scaled - 1.151)
}

// MinDisorderLength is the minimum number of residues for which the plot is meaningful.
const MinDisorderLength = 30

// looksFolded reports whether a sequence has a composition typical of folded proteins.
func looksFolded(letters string) bool {
	if len(letters) < MinDisorderLength {
		return false
	}
	charge, hydropathy := 0, 0.0
	for i := range len(letters) {
		charge += Charge(letters[i])
		hydropathy += Hydropathies[strings.IndexByte(md.Letters, letters[i])]
	}
	n := float64(len(letters))
	return Disorder(hydropathy/n, float64(charge)/n) < 0
}

// looksLikeDNA reports whether a sequence might be DNA: it has at least 20 letters, all
// of them A, C, G or T.
func looksLikeDNA(letters string) bool {
	return len(letters) >= 20 && strings.Trim(letters, "ACGT") == ""
}
