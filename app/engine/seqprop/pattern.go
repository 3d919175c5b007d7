package seqprop

import (
	"math"
	"slices"

	"molrun/app/engine/input"
)

// charges returns the charge of each residue, in e.
func charges(sequence string) []int {
	q := make([]int, len(sequence))
	for k := range sequence {
		q[k] = input.Charge(sequence[k])
	}
	return q
}

// charged counts the positive and the negative residues.
func charged(q []int) (plus, minus int) {
	for _, c := range q {
		switch {
		case c > 0:
			plus++
		case c < 0:
			minus++
		}
	}
	return plus, minus
}

// chargeDecoration returns the sequence charge decoration (SCD) of Sawle and Ghosh
// (10.1063/1.4929391): the sum over pairs of residues of the product of their charges
// times the square root of their separation, divided by the number of residues. It is
// negative if opposite charges are far apart, and NaN with fewer than two charges.
func chargeDecoration(q []int) float64 {
	var at []int
	roots := make([]float64, len(q))
	for k, c := range q {
		roots[k] = math.Sqrt(float64(k))
		if c != 0 {
			at = append(at, k)
		}
	}
	if len(at) < 2 {
		return math.NaN()
	}
	sum := 0.0
	for n, i := range at {
		for _, j := range at[:n] {
			sum += float64(q[i]*q[j]) * roots[i-j]
		}
	}
	return sum / float64(len(q))
}

// kappa returns the charge segregation of Das and Pappu (10.1073/pnas.1304749110): 0 for
// well-mixed opposite charges, 1 for maximally separated ones. It is the mean asymmetry
// over windows of 5 and of 6 residues, divided by the maximum for the composition. It is
// NaN without charges of both signs, or for fewer than 6 residues.
func kappa(q []int) float64 {
	plus, minus := charged(q)
	if plus == 0 || minus == 0 || len(q) < longWindow {
		return math.NaN()
	}
	largest := 0.0
	for _, arrangement := range separated(plus, minus, len(q)-plus-minus) {
		largest = max(largest, asymmetry(arrangement))
	}
	if largest == 0 { // every window is as asymmetric as the whole sequence
		return math.NaN()
	}
	return min(asymmetry(q)/largest, 1)
}

const (
	shortWindow = 5
	longWindow  = 6
)

// asymmetry returns the delta of Das and Pappu.
func asymmetry(q []int) float64 {
	return (windowAsymmetry(q, shortWindow) + windowAsymmetry(q, longWindow)) / 2
}

// windowAsymmetry returns the mean square deviation of the charge asymmetry of windows
// from that of the sequence.
func windowAsymmetry(q []int, width int) float64 {
	plus, minus := charged(q)
	whole := sigma(plus, minus, len(q))
	plus, minus = charged(q[:width])
	sum := 0.0
	for end := width; ; end++ {
		d := sigma(plus, minus, width) - whole
		sum += d * d
		if end == len(q) {
			return sum / float64(len(q)-width+1)
		}
		in, out := q[end], q[end-width]
		plus += max(in, 0) - max(out, 0)
		minus += max(-in, 0) - max(-out, 0)
	}
}

// sigma returns the charge asymmetry: the squared net charge per residue divided by the
// fraction of charged residues.
func sigma(plus, minus, length int) float64 {
	if plus+minus == 0 {
		return 0
	}
	net := float64(plus - minus)
	return net * net / float64((plus+minus)*length)
}

// atEnds is the number of residues of a terminal block that can affect the asymmetry: the
// length of the longest window.
const atEnds = longWindow

// separated returns candidate arrangements for the most asymmetric one, by the rules of
// Das and Pappu: one block of charges per sign, with the neutral residues before, between
// and after the blocks; without neutral residues, the smaller block at any position
// within the larger. If nearly all charges have one sign, other arrangements can be
// slightly more asymmetric.
func separated(plus, minus, neutral int) (all [][]int) {
	if neutral == 0 {
		few, many, sign := minus, plus, -1
		if minus > plus {
			few, many, sign = plus, minus, 1
		}
		for before := range many + 1 {
			if atEnds < before && before < many-atEnds {
				continue // as asymmetric as the previous one
			}
			all = append(all, slices.Concat(block(-sign, before), block(sign, few), block(-sign, many-before)))
		}
		return all
	}
	most := neutral
	if neutral >= 3*atEnds {
		most = atEnds
	}
	for before := range most + 1 {
		for behind := range min(most, neutral-before) + 1 {
			all = append(all, slices.Concat(block(0, before), block(1, plus), block(0, neutral-before-behind), block(-1, minus), block(0, behind)))
		}
	}
	return all
}

func block(charge, n int) []int { return slices.Repeat([]int{charge}, n) }
