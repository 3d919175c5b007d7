package condensate

import (
	"math"

	"molrun/app/engine/md"
)

// binWidth is about how thick the layers are of which concentrations are known.
const binWidth = 0.5

// Blocks are joined two by two when there are as many as this, so that their number stays
// between half of it and it.
const maxBlocks = 64

// Profile gathers how many chains of each component lie where along z, frame by frame. A
// chain that is spread over several layers counts in each by the part of its beads.
//
// Aligning each frame to the mean produces a peak by chance alone. Hence the second
// profile, in which each half of the chains is shifted by the alignment of the other half:
// it is flat for non-interacting chains.
type Profile struct {
	length, area float64 // of the box
	bins         int
	masses       []float64 // of a chain of each component, in g/mol

	mean   []float64 // mass in each layer over all frames: what the next one is laid upon
	frames int64
	size   int64       // frames in a whole block
	blocks [][]float64 // sums over frames, component after component, then the second profile as mass; the last may be unfinished
	filled int64       // frames in the last block
}

// NewProfile returns a profile without frames of a mixture's box.
func NewProfile(m *md.Mixture) *Profile {
	bins := max(8, int(math.Round(m.Box.Z/binWidth)))
	p := &Profile{length: m.Box.Z, area: m.Box.X * m.Box.Y, bins: bins, mean: make([]float64, bins), size: 1}
	for _, c := range m.Components {
		p.masses = append(p.masses, c.Model.TotalMass())
	}
	return p
}

// Frames returns how many frames there are.
func (p *Profile) Frames() int64 { return p.frames }

// AddFrame adds the positions of all beads, in nm, and returns how far along z they were moved,
// from 0 to the length of the box.
func (p *Profile) AddFrame(m *md.Mixture, x []md.Vec) (moved float64) {
	var counts [2][]float64 // of the chains with even and odd numbers
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
		reference = p.middle(all)
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

// count counts the chains of each component in each layer.
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

// middle returns a frame moved so that its mean, on the circle that the box is, lies in the
// middle of the box.
func (p *Profile) middle(all []float64) []float64 {
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

// smoothed is over how many layers the reference is averaged, twice: few chains leave gaps,
// and frames must not be laid upon these.
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

// bestShift returns by how many layers a frame has to be moved upwards to be most like the
// reference: where their correlation on the circle is greatest. The least of equal ones.
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

// block returns the block of the next frame.
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

// mergeBlocks makes one block of each two.
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

// Archive stores or restores what was gathered.
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

// Layer is what lies at one height.
type Layer struct {
	Z        float64   // nm from the middle of the box
	MilliMol []float64 // concentration of each component in mM
}

// Mean returns the mean concentrations of replicas of one system, from below to above.
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

// MilliMol is the concentration in mM of one particle in a nm³.
const MilliMol = 1e27 / 6.02214076e23
