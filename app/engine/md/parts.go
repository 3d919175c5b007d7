package md

// scalingParts is the number of blocks of a run used for the error of its scaling
// exponent.
const scalingParts = 32

// ScalingParts records the sums of [PairSums] at the ends of equal blocks of a run, from
// which the error of the scaling exponent is estimated.
type ScalingParts struct {
	expected int64               // frames of the whole run
	frames   [scalingParts]int64 // cumulative at the end of each part; 0 if the part has no frames
	squares  [scalingParts][]float64
}

// NewScalingParts returns parts for a run with the given number of frames.
func NewScalingParts(residues int, frames int64) *ScalingParts {
	p := &ScalingParts{expected: max(1, frames)}
	for k := range p.squares {
		p.squares[k] = make([]float64, residues)
	}
	return p
}

// Update records the sums after a frame was added to them.
func (p *ScalingParts) Update(sums *PairSums) {
	k := min(scalingParts-1, (sums.frames-1)*scalingParts/p.expected)
	p.frames[k] = sums.frames
	copy(p.squares[k], sums.separation)
}

// Nu returns a series whose mean approximates the scaling exponent and whose error is the
// error of the exponent: the jackknife pseudo-values over the parts, n nu - (n-1) nu
// without the part.
func (p *ScalingParts) Nu() Series {
	var ends []int
	for k, frames := range p.frames {
		if frames > 0 {
			ends = append(ends, k)
		}
	}
	n := len(ends)
	s := NewSeries(int64(n))
	if n < minBlocks {
		return s
	}
	last := ends[n-1]
	whole := p.fit(last, -1, -1)
	before := -1
	for _, k := range ends {
		s.Add(float64(n)*whole - float64(n-1)*p.fit(last, k, before))
		before = k
	}
	return s
}

// fit returns the exponent of the frames up to the end of part last, excluding part
// without. before is the part that precedes without. -1 means no part.
func (p *ScalingParts) fit(last, without, before int) float64 {
	sums := &PairSums{residues: len(p.squares[last]), frames: p.frames[last], separation: append([]float64{}, p.squares[last]...)}
	remove := func(k int, sign float64) {
		if k < 0 {
			return
		}
		sums.frames -= int64(sign) * p.frames[k]
		for i, v := range p.squares[k] {
			sums.separation[i] -= sign * v
		}
	}
	remove(without, 1)
	remove(before, -1)
	return FitScaling(sums.RMS()).Nu
}

// Archive saves or restores the sums.
func (p *ScalingParts) Archive(a *Archive) {
	for k := range p.frames {
		a.Integer(&p.frames[k])
		for i := range p.squares[k] {
			a.Float(&p.squares[k][i])
		}
	}
}
