package cgidp

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// generator makes the random numbers of one replica: the generator PCG-DXSM of
// math/rand/v2, and normal numbers that equal those of rand.Rand.NormFloat64 in
// every bit, in less time: three of them per bead are a good part of a step.
type generator struct{ hi, lo uint64 }

// randomStream separates this engine's numbers from others made of like seeds.
const randomStream = 0x6367696470000000 // "cgidp"

// newSource returns the random numbers of one replica. Sequence and replica have
// bits of their own, hence no two replicas of a run share a generator state.
func newSource(seed uint64, sequence, replica int) *generator {
	return &generator{seed, scramble(randomStream + uint64(sequence)<<12 + uint64(replica))}
}

// scramble is the finalizer of SplitMix64: one to one, and near inputs give
// unlike outputs.
func scramble(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// next is the state after this one.
func (g generator) next() generator {
	const (
		mulHi, mulLo = 2549297995355413924, 4865540595714422341
		incHi, incLo = 6364136223846793005, 1442695040888963407
	)
	hi, lo := bits.Mul64(g.lo, mulLo)
	hi += g.hi*mulLo + g.lo*mulHi
	lo, carry := bits.Add64(lo, incLo, 0)
	return generator{hi + incHi + carry, lo}
}

// output is the number of a state.
func (g generator) output() uint64 {
	const cheapMul = 0xda942042e4dd58b5
	hi := g.hi
	hi ^= hi >> 32
	hi *= cheapMul
	hi ^= hi >> 48
	return hi * (g.lo | 1)
}

// Uint64 makes generator a rand.Source.
func (g *generator) Uint64() uint64 {
	*g = g.next()
	return g.output()
}

// Normal numbers come from the ziggurat of Marsaglia and Tsang (J. Stat. Softw.
// 2000, 5(8)): layers of equal area under the bell curve. A point in the part of
// a layer that is below the curve throughout, as 99 of 100 are, is decided here;
// others are left to math/rand/v2.
const (
	layers     = 128
	layerStart = 3.442619855899      // where the tail begins
	layerArea  = 9.91256303526217e-3 // of each
	layerUnit  = 1 << 31             // integers across a layer
)

// layer is one of the ziggurat.
type layer struct {
	width float64 // of one integer
	safe  uint32  // integers below are surely under the curve
}

// ziggurat has the base, whose tail has no end, and then the layers from the top
// down.
var ziggurat = newZiggurat()

func newZiggurat() *[layers]layer {
	bell := func(x float64) float64 { return math.Exp(-x * x / 2) }
	z := new([layers]layer)
	base := layerArea / bell(layerStart)
	z[0] = newLayer(base, layerStart)
	x := layerStart
	for i := layers - 1; i > 1; i-- {
		above := math.Sqrt(-2 * math.Log(layerArea/x+bell(x)))
		z[i] = newLayer(x, above)
		x = above
	}
	z[1] = newLayer(x, 0)
	return z
}

// newLayer has an outer edge, and an inner one up to which all of it is under the
// curve. Integers right at the inner edge are left to math/rand/v2, whose table
// may be rounded otherwise.
func newLayer(outer, inner float64) layer {
	return layer{float64(float32(outer / layerUnit)), uint32(max(0, inner/outer*layerUnit-2))}
}

// normals fills a slice with numbers of mean 0 and variance 1.
func (g *generator) normals(to []float64) {
	state := *g
	for i := range to {
		next := state.next()
		u := next.output()
		j := int32(u)
		l := &ziggurat[u>>32%layers]
		if uint32(max(j, -j)) < l.safe {
			to[i] = float64(j) * l.width
			state = next
			continue
		}
		*g = state
		to[i] = rand.New(g).NormFloat64()
		state = *g
	}
	*g = state
}
