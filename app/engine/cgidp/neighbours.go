package cgidp

import "math"

// skin is how much farther than the cutoff the lists reach, in nm. Any value
// gives the same trajectory, bit for bit; this one is about the fastest.
const skin = 0.4

// pairList holds, for each bead, the partners with a higher number, in rising
// order: those of row k are col[start[k]:start[k+1]]. The order makes the sum of
// forces independent of when the list was built.
type pairList struct {
	start []int32
	col   []partner
}

// partner is a bead and its type, in one number: the loop over pairs reads one
// list instead of two.
type partner uint16

const (
	beadBits = 11                   // enough for maxResidues
	maxTypes = 1 << (16 - beadBits) // enough for residueLetters
)

func newPartner(bead int, kind uint8) partner { return partner(bead | int(kind)<<beadBits) }

func (p partner) bead() int { return int(p & (1<<beadBits - 1)) }

func (p partner) kind() int { return int(p >> beadBits) }

func (l *pairList) reset() {
	l.start = append(l.start[:0], 0)
	l.col = l.col[:0]
}

func (l *pairList) endRow() { l.start = append(l.start, int32(len(l.col))) }

// neighbours are Verlet lists: all pairs within a cutoff plus the skin when the
// lists were built. They hold every pair within the cutoff until some bead has
// moved half the skin.
type neighbours struct {
	model   *model
	charged []int32  // beads with a charge; the rows of screen
	built   []vec    // positions at the last build
	stick   pairList // all beads but bonded pairs
	screen  pairList // charged beads but bonded pairs
	// strength is lBkT q q for each entry of screen.col.
	strength []float64
}

func newNeighbours(m *model) *neighbours {
	n := &neighbours{model: m}
	for i, q := range m.charge {
		if q != 0 {
			n.charged = append(n.charged, int32(i))
		}
	}
	return n
}

// follow rebuilds the lists if they no longer hold for x.
func (n *neighbours) follow(x []vec) {
	if len(n.built) != len(x) {
		n.build(x)
		return
	}
	const limit = (skin / 2) * (skin / 2)
	for i := range x {
		if x[i].sub(n.built[i]).norm2() > limit {
			n.build(x)
			return
		}
	}
}

func (n *neighbours) build(x []vec) {
	n.built = append(n.built[:0], x...)
	n.buildStick(x)
	n.buildScreen(x)
}

func (n *neighbours) buildStick(x []vec) {
	const (
		reach = stickCutoff + skin
		far   = reach + 2*maxBond
	)
	n.stick.reset()
	for i := range x {
		xi := x[i]
		for j := i + 2; j < len(x); j++ {
			r2 := xi.sub(x[j]).norm2()
			switch {
			case r2 < reach*reach:
				n.stick.col = append(n.stick.col, newPartner(j, n.model.types[j]))
			case r2 > far*far:
				// The chain takes at least so many beads to come back from there.
				j += int((math.Sqrt(r2) - reach) / maxBond)
			}
		}
		n.stick.endRow()
	}
}

func (n *neighbours) buildScreen(x []vec) {
	const reach = (chargeCutoff + skin) * (chargeCutoff + skin)
	n.screen.reset()
	n.strength = n.strength[:0]
	q := n.model.charge
	for k, i := range n.charged {
		xi, qi := x[i], n.model.lBkT*q[i]
		for _, j := range n.charged[k+1:] {
			if j != i+1 && xi.sub(x[j]).norm2() < reach {
				n.screen.col = append(n.screen.col, newPartner(int(j), n.model.types[j]))
				n.strength = append(n.strength, qi*q[j])
			}
		}
		n.screen.endRow()
	}
}
