package md

import "math"

const (
	contactDistance  = 1.0 // nm
	contactExclusion = 3   // maximum separation along the chain that does not count as a contact
)

// PairSums accumulates averages over pairs of residues. Residues count from 0.
type PairSums struct {
	frames     int64
	residues   int
	distance   []float64 // sums of r in nm for i < j, row by row
	contacts   []uint32  // number of frames with r below contactDistance
	separation []float64 // sums of r² over all pairs with |i-j| = index
}

// NewPairSums returns empty sums for a chain of the given number of residues.
func NewPairSums(residues int) *PairSums {
	pairs := residues * (residues - 1) / 2
	return &PairSums{
		residues:   residues,
		distance:   make([]float64, pairs),
		contacts:   make([]uint32, pairs),
		separation: make([]float64, residues),
	}
}

// Add adds a frame with one position in nm per residue.
func (p *PairSums) Add(x []Vec) {
	p.frames++
	k := 0
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			r2 := x[i].Sub(x[j]).Norm2()
			p.separation[j-i] += r2
			p.distance[k] += math.Sqrt(r2)
			if r2 < contactDistance*contactDistance {
				p.contacts[k]++
			}
			k++
		}
	}
}

// Merge adds the frames of another chain with the same number of residues.
func (p *PairSums) Merge(o *PairSums) {
	p.frames += o.frames
	for k := range o.distance {
		p.distance[k] += o.distance[k]
		p.contacts[k] += o.contacts[k]
	}
	for s := range o.separation {
		p.separation[s] += o.separation[s]
	}
}

// Archive saves or restores the sums.
func (p *PairSums) Archive(a *Archive) {
	a.Integer(&p.frames)
	for _, sums := range [][]float64{p.distance, p.separation} {
		for k := range sums {
			a.Float(&sums[k])
		}
	}
	for k := range p.contacts {
		w := uint64(p.contacts[k])
		if a.Word(&w); uint32(w) != p.contacts[k] {
			p.contacts[k] = uint32(w)
		}
	}
}

// Frames returns the number of frames.
func (p *PairSums) Frames() int64 { return p.frames }

// index returns the index of the pair i < j.
func (p *PairSums) index(i, j int) int {
	return i*(2*p.residues-i-1)/2 + j - i - 1
}

// MeanDistance returns the mean distance of two residues in nm, or NaN without frames.
func (p *PairSums) MeanDistance(i, j int) float64 {
	if i == j {
		return 0
	}
	return p.distance[p.index(min(i, j), max(i, j))] / float64(p.frames)
}

// Contact returns the fraction of frames in which two residues are within 1 nm, or NaN
// without frames. It is 0 for residues at most three apart along the chain, which are
// always close.
func (p *PairSums) Contact(i, j int) float64 {
	i, j = min(i, j), max(i, j)
	if j-i <= contactExclusion {
		return 0
	}
	return float64(p.contacts[p.index(i, j)]) / float64(p.frames)
}

// RMS returns the root mean square distance in nm for each separation along the chain,
// from 1 on; item 0 is unused.
func (p *PairSums) RMS() []float64 {
	values := make([]float64, p.residues)
	for s := 1; s < p.residues; s++ {
		values[s] = math.Sqrt(p.separation[s] / float64(p.frames) / float64(p.residues-s))
	}
	return values
}
