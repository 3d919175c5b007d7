package seqprop

import (
	"math"

	"molrun/app/engine/md"
)

// group is a titratable group of a protein.
type group struct {
	pK    float64
	count int
	base  bool // positive if protonated and neutral otherwise
}

// sideChains holds the titratable side chains with the pK values of Bjellqvist et al.
// (10.1002/elps.11501401163, 10.1002/elps.1150150171), as used by ProtParam.
var sideChains = map[byte]group{
	'K': {pK: 10.00, base: true}, 'R': {pK: 12.00, base: true}, 'H': {pK: 5.98, base: true},
	'D': {pK: 4.05}, 'E': {pK: 4.45}, 'C': {pK: 9.00}, 'Y': {pK: 10.00},
}

// pK values that depend on the terminal residue.
var (
	firstAmine = map[byte]float64{'A': 7.59, 'E': 7.70, 'M': 7.00, 'P': 8.36, 'S': 6.93, 'T': 6.82, 'V': 7.44}
	lastAcid   = map[byte]float64{'D': 4.55, 'E': 4.75} // of the side chain
)

const (
	otherAmine = 7.50
	carboxyl   = 3.55
)

// groups returns the titratable groups of a sequence with free termini.
func groups(sequence string) []group {
	last := len(sequence) - 1
	amine, ok := firstAmine[sequence[0]]
	if !ok {
		amine = otherAmine
	}
	all := []group{{pK: amine, count: 1, base: true}, {pK: carboxyl, count: 1}}
	if pK, ok := lastAcid[sequence[last]]; ok {
		all = append(all, group{pK: pK, count: 1})
		sequence = sequence[:last]
	}
	counts := composition(sequence)
	for k, letter := range []byte(md.Letters) {
		if g, ok := sideChains[letter]; ok {
			g.count = counts[k]
			all = append(all, g)
		}
	}
	return all
}

// netCharge returns the net charge at a pH, in e, by the Henderson–Hasselbalch equation,
// without interactions between groups.
func netCharge(all []group, pH float64) (sum float64) {
	for _, g := range all {
		if g.base {
			sum += float64(g.count) / (1 + math.Pow(10, pH-g.pK))
		} else {
			sum -= float64(g.count) / (1 + math.Pow(10, g.pK-pH))
		}
	}
	return sum
}

// isoelectricPoint returns the pH at which the net charge is 0. The net charge decreases
// with pH.
func isoelectricPoint(all []group) float64 {
	low, high := 0.0, 14.0
	for high-low > 1e-6 {
		middle := (low + high) / 2
		if netCharge(all, middle) > 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}
