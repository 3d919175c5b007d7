package cgidp

import "math"

// pairSums gathers what is averaged over pairs of residues.
type pairSums struct {
	frames     int64
	residues   int
	distance   []float64 // sums of r in nm for i < j, row after row
	contacts   []uint32  // how often r was below contactDistance
	separation []float64 // sums of r² over all pairs with |i-j| = index
}

func newPairSums(residues int) *pairSums {
	pairs := residues * (residues - 1) / 2
	return &pairSums{
		residues:   residues,
		distance:   make([]float64, pairs),
		contacts:   make([]uint32, pairs),
		separation: make([]float64, residues),
	}
}

func (p *pairSums) add(x []vec) {
	p.frames++
	k := 0
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			r2 := x[i].sub(x[j]).norm2()
			p.separation[j-i] += r2
			p.distance[k] += math.Sqrt(r2)
			if r2 < contactDistance*contactDistance {
				p.contacts[k]++
			}
			k++
		}
	}
}

// merge adds the frames of another.
func (p *pairSums) merge(o *pairSums) {
	p.frames += o.frames
	for k := range o.distance {
		p.distance[k] += o.distance[k]
		p.contacts[k] += o.contacts[k]
	}
	for s := range o.separation {
		p.separation[s] += o.separation[s]
	}
}

// pair is the place of i < j among the pairs.
func (p *pairSums) pair(i, j int) int {
	return i*(2*p.residues-i-1)/2 + j - i - 1
}

// meanDistance of two residues, in nm.
func (p *pairSums) meanDistance(i, j int) float64 {
	if i == j {
		return 0
	}
	return p.distance[p.pair(min(i, j), max(i, j))] / float64(p.frames)
}

// contact is the part of the frames in which two residues touch; neighbours
// along the chain always do and do not count.
func (p *pairSums) contact(i, j int) float64 {
	i, j = min(i, j), max(i, j)
	if j-i <= contactExclusion {
		return 0
	}
	return float64(p.contacts[p.pair(i, j)]) / float64(p.frames)
}

// rms is the root mean square distance for each separation from 1 on, in nm; the
// item 0 is not used.
func (p *pairSums) rms() []float64 {
	values := make([]float64, p.residues)
	for s := 1; s < p.residues; s++ {
		values[s] = math.Sqrt(p.separation[s] / float64(p.frames) / float64(p.residues-s))
	}
	return values
}
