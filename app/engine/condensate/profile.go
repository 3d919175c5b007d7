package condensate

import (
	"math"

	"molrun/app/engine/md"
)

// binWidth is the approximate thickness of a layer in nm.
const binWidth = 0.5

// maxBlocks is the maximum number of blocks. When it is reached, blocks are merged in
// pairs, so at least half as many remain.
const maxBlocks = 64

// Profile accumulates the distribution of the chains of each component along z, frame by
// frame. A chain that spans several layers counts in each by its fraction of beads.
//
// Aligning each frame to the mean produces a peak even if there is none. Therefore there
// is a second profile, in which each half of the chains is shifted by the alignment of
// the other half. It is flat for non-interacting chains.
type Profile struct {
	length, area float64 // of the box
	bins         int
	masses       []float64 // g/mol, of one chain of each component

	mean   []float64 // mean mass per layer over all frames, the reference for alignment
	frames int64
	size   int64       // frames per complete block
	blocks [][]float64 // sums over frames, by component, then the second profile as mass; the last may be incomplete
	filled int64       // frames in the last block
}

// NewProfile returns an empty profile of the box of a mixture.
func NewProfile(m *md.Mixture) *Profile {
	bins := max(8, int(math.Round(m.Box.Z/binWidth)))
	p := &Profile{length: m.Box.Z, area: m.Box.X * m.Box.Y, bins: bins, mean: make([]float64, bins), size: 1}
	for _, c := range m.Components {
		p.masses = append(p.masses, c.Model.TotalMass())
	}
	return p
}

// Frames returns the number of frames.
func (p *Profile) Frames() int64 { return p.frames }

// AddFrame adds the positions of all beads, in nm, and returns the shift along z that
// aligns them, from 0 to the box length.
func (p *Profile) AddFrame(m *md.Mixture, x []md.Vec) (moved float64) {
	var counts [2][]float64 // chains with even and odd numbers
	var mass [2][]float64
	for half := range counts {
		counts[half] = make([]float64, len(p.masses)*p.bins)
	}
	p.count(m, x, counts)
	all := make([]float64, p.bins)
	for half, counts := range counts {
		mass[half] = make([]float64, p.bins)
		for i, n := range counts {
			mass[half][i%p.bins] += n * p.masses[i/p.bins]
		}
		for i, v := range mass[half] {
			all[i] += v
		}
	}
	reference := p.mean
	if p.frames == 0 {
		reference = p.centered(all)
	}
	reference = smooth(reference)
	shift := bestShift(reference, all)
	block := p.block()
	p.frames++
	for i := range p.mean {
		p.mean[i] += (all[(i+p.bins-shift)%p.bins] - p.mean[i]) / float64(p.frames)
	}
	second := block[len(p.masses)*p.bins:]
	for half, counts := range counts {
		for i, n := range counts {
			block[i-i%p.bins+(i+shift)%p.bins] += n
		}
		others := bestShift(reference, mass[1-half])
		for i, v := range mass[half] {
			second[(i+others)%p.bins] += v
		}
	}
	return float64(shift) / float64(p.bins) * p.length
}

// count adds the chains of each component to the layers.
func (p *Profile) count(m *md.Mixture, x []md.Vec, counts [2][]float64) {
	chain := 0
	for c, component := range m.Components {
		weight := 1 / float64(component.Model.Size())
		for range component.Copies {
			layer := counts[chain%2][c*p.bins : (c+1)*p.bins]
			from, to := m.Span(chain)
			for _, v := range x[from:to] {
				z := v.Z / p.length
				layer[min(int((z-math.Floor(z))*float64(p.bins)), p.bins-1)] += weight
			}
			chain++
		}
	}
}

// centered returns a frame shifted so that its circular mean is in the middle of the box.
func (p *Profile) centered(all []float64) []float64 {
	var re, im float64
	for i, n := range all {
		sin, cos := math.Sincos(2 * math.Pi * (float64(i) + 0.5) / float64(p.bins))
		re, im = re+n*cos, im+n*sin
	}
	at := int(math.Round(math.Atan2(im, re) / (2 * math.Pi) * float64(p.bins)))
	moved := make([]float64, p.bins)
	for i, n := range all {
		moved[(i+p.bins/2+2*p.bins-at)%p.bins] = n
	}
	return moved
}

// smoothed is the window, in layers, of the moving average applied twice to the
// reference. A profile of few chains has gaps, to which frames must not be aligned.
const smoothed = 5

func smooth(layers []float64) []float64 {
	for range 2 {
		n := len(layers)
		next := make([]float64, n)
		for i := range next {
			for k := range smoothed {
				next[i] += layers[(i+k+n-smoothed/2)%n] / smoothed
			}
		}
		layers = next
	}
	return layers
}

// bestShift returns the upward shift of frame, in layers, that maximizes its circular
// correlation with the reference. Of equal maxima, it returns the smallest shift.
func bestShift(reference, frame []float64) (shift int) {
	best := math.Inf(-1)
	for s := range frame {
		like := 0.0
		for i, n := range frame[:len(frame)-s] {
			like += n * reference[i+s]
		}
		for i, n := range frame[len(frame)-s:] {
			like += n * reference[i]
		}
		if like > best {
			best, shift = like, s
		}
	}
	return shift
}

// block returns the block for the next frame.
func (p *Profile) block() []float64 {
	if len(p.blocks) == 0 || p.filled == p.size {
		if len(p.blocks) == maxBlocks {
			p.mergeBlocks()
		}
		p.blocks, p.filled = append(p.blocks, make([]float64, (len(p.masses)+1)*p.bins)), 0
	}
	p.filled++
	return p.blocks[len(p.blocks)-1]
}

// mergeBlocks merges blocks in pairs.
func (p *Profile) mergeBlocks() {
	for i := range maxBlocks / 2 {
		sum := p.blocks[2*i]
		for k, n := range p.blocks[2*i+1] {
			sum[k] += n
		}
		p.blocks[i] = sum
	}
	p.blocks = p.blocks[:maxBlocks/2]
	p.size *= 2
}

// Archive saves or restores the profile.
func (p *Profile) Archive(a *md.Archive) {
	n := int64(len(p.blocks))
	a.Integer(&p.frames)
	a.Integer(&p.size)
	a.Integer(&p.filled)
	a.Integer(&n)
	for i := range p.mean {
		a.Float(&p.mean[i])
	}
	for len(p.blocks) < int(min(n, maxBlocks)) {
		p.blocks = append(p.blocks, make([]float64, (len(p.masses)+1)*p.bins))
	}
	for _, block := range p.blocks {
		for i := range block {
			a.Float(&block[i])
		}
	}
}

// Layer is one layer of a profile.
type Layer struct {
	Z        float64   // nm from the box center
	MilliMol []float64 // mM, by component
}

// Mean returns the mean concentrations over the replicas of one system, in order of
// increasing z.
func Mean(replicas ...*Profile) []Layer {
	p := replicas[0]
	all := make([]Layer, p.bins)
	frames := int64(0)
	for _, r := range replicas {
		frames += r.frames
	}
	for i := range all {
		all[i] = Layer{Z: (float64(i)+0.5)/float64(p.bins)*p.length - p.length/2, MilliMol: make([]float64, len(p.masses))}
		for c := range p.masses {
			sum := 0.0
			for _, r := range replicas {
				for _, block := range r.blocks {
					sum += block[c*p.bins+i]
				}
			}
			all[i].MilliMol[c] = sum / float64(frames) / p.layerVolume() * MilliMol
		}
	}
	return all
}

func (p *Profile) layerVolume() float64 { return p.area * p.length / float64(p.bins) }

// MilliMol is the concentration in mM of one particle per nm³.
const MilliMol = 1e27 / 6.02214076e23
