package md

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// Random generates the random numbers of one replica: the generator PCG-DXSM of
// math/rand/v2, and normal numbers that equal those of rand.Rand.NormFloat64 bit
// for bit in less time. Three of them per bead are a good part of a step.
type Random struct{ hi, lo uint64 }

// randomStream separates the numbers of this engine from others with like seeds.
const randomStream = 0x6367696470000000 // "cgidp"

// NewRandom returns the random numbers of one replica. The sequence and the
// replica, both below 4096, have bits of their own, so no two replicas of a run
// share a generator state.
func NewRandom(seed uint64, sequence, replica int) *Random {
	return &Random{seed, scramble(randomStream + uint64(sequence)<<12 + uint64(replica))}
}

// scramble is the finalizer of SplitMix64: one to one, and similar inputs give
// unrelated outputs.
func scramble(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// next is the state after this one.
func (g Random) next() Random {
	const (
		mulHi, mulLo = 2549297995355413924, 4865540595714422341
		incHi, incLo = 6364136223846793005, 1442695040888963407
	)
	hi, lo := bits.Mul64(g.lo, mulLo)
	hi += g.hi*mulLo + g.lo*mulHi
	lo, carry := bits.Add64(lo, incLo, 0)
	return Random{hi + incHi + carry, lo}
}

// output is the number of a state.
func (g Random) output() uint64 {
	const cheapMul = 0xda942042e4dd58b5
	hi := g.hi
	hi ^= hi >> 32
	hi *= cheapMul
	hi ^= hi >> 48
	return hi * (g.lo | 1)
}

// Uint64 implements rand.Source.
func (g *Random) Uint64() uint64 {
	*g = g.next()
	return g.output()
}

// archive stores or restores the state.
func (g *Random) archive(a *Archive) {
	a.Word(&g.hi)
	a.Word(&g.lo)
}

// Normal numbers come from the ziggurat of Marsaglia and Tsang (J. Stat. Softw.
// 2000, 5(8)): layers of equal area under the bell curve. 99 of 100 points lie in
// the part of a layer that is entirely below the curve and are decided here;
// math/rand/v2 decides the others, by an exponential of float32.
const (
	layers     = 128
	layerStart = 3.442619855899      // where the tail begins
	layerArea  = 9.91256303526217e-3 // of each
	layerUnit  = 1 << 31             // integers across a layer
)

// layer is one layer of the ziggurat.
type layer struct {
	width float64 // of one integer
	safe  uint32  // smaller integers are certainly under the curve
}

// ziggurat has the base, whose tail has no end, and then the layers from the top
// down.
var ziggurat = newZiggurat()

func newZiggurat() *[layers]layer {
	bell := func(x float64) float64 { return Exp(-x * x / 2) }
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

// newLayer takes the outer edge of a layer and the inner one, up to which all of
// it is under the curve. Integers right at the inner edge are left to
// math/rand/v2, whose table may be rounded differently.
func newLayer(outer, inner float64) layer {
	return layer{float64(float32(outer / layerUnit)), uint32(max(0, inner/outer*layerUnit-2))}
}

// normals fills a slice with numbers of mean 0 and variance 1.
func (g *Random) normals(to []float64) {
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
