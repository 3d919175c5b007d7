package cgidp

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// archive writes values one after the other, or reads them back. One function
// per type describes both ways, so that they cannot differ.
type archive struct {
	bytes   []byte // written so far, or left to read
	reading bool
	short   bool // there were fewer bytes than to read
}

func (a *archive) word(v uint64) uint64 {
	switch {
	case !a.reading:
		a.bytes = binary.LittleEndian.AppendUint64(a.bytes, v)
	case len(a.bytes) < 8:
		a.short = true
	default:
		v = binary.LittleEndian.Uint64(a.bytes)
		a.bytes = a.bytes[8:]
	}
	return v
}

// integer, like its likes, leaves v alone when it writes the archive: others
// may be reading it.
func (a *archive) integer(v *int64) {
	if w := a.word(uint64(*v)); a.reading {
		*v = int64(w)
	}
}

func (a *archive) float(v *float64) {
	if w := a.word(math.Float64bits(*v)); a.reading {
		*v = math.Float64frombits(w)
	}
}

func (a *archive) duration(v *time.Duration) { a.integer((*int64)(v)) }

func (a *archive) flag(v *bool) {
	set := int64(0)
	if *v {
		set = 1
	}
	if a.integer(&set); a.reading {
		*v = set != 0
	}
}

func (a *archive) floats(v []float64) {
	for i := range v {
		a.float(&v[i])
	}
}

func (a *archive) vectors(v []vec) {
	for i := range v {
		a.float(&v[i].X)
		a.float(&v[i].Y)
		a.float(&v[i].Z)
	}
}

// text is a slice of any length, which is kept too.
func (a *archive) text(v *[]byte) {
	n := int64(len(*v))
	a.integer(&n)
	switch {
	case !a.reading:
		a.bytes = append(a.bytes, *v...)
	case n < 0 || n > int64(len(a.bytes)):
		a.short = true
	default:
		*v = slices.Clone(a.bytes[:n])
		a.bytes = a.bytes[n:]
	}
}

func (m *moments) archive(a *archive) {
	a.integer(&m.n)
	a.float(&m.mean)
	a.float(&m.m2)
}

func (s *series) archive(a *archive) {
	for k := range s.halves {
		s.halves[k].archive(a)
	}
	for k := range s.levels {
		s.levels[k].moments.archive(a)
		a.float(&s.levels[k].waiting)
	}
}

func (p *pairSums) archive(a *archive) {
	a.integer(&p.frames)
	a.floats(p.distance)
	a.floats(p.separation)
	for k := range p.contacts {
		if w := a.word(uint64(p.contacts[k])); a.reading {
			p.contacts[k] = uint32(w)
		}
	}
}

// archive leaves out what follows from x, and pairs, which the chain may have
// taken over.
func (r *replica) archive(a *archive) {
	a.integer(&r.step)
	a.vectors(r.x)
	a.vectors(r.v)
	r.source.archive(a)
	a.integer(&r.trajectory.frames)
	a.text(&r.rows)
	a.duration(&r.busy)
	r.rg.archive(a)
	r.ree.archive(a)
	r.kinetic.archive(a)
}

func (g *generator) archive(a *archive) {
	hi, lo := a.word(g.hi), a.word(g.lo)
	if a.reading {
		g.hi, g.lo = hi, lo
	}
}

// archive needs the lock of the chain.
func (c *chain) archive(a *archive) {
	a.duration(&c.wall)
	merged := int64(c.merged)
	if a.integer(&merged); a.reading {
		c.merged = int(merged)
	}
	c.total.archive(a)
	for k := range c.replicas {
		begun := c.replicas[k] != nil
		a.flag(&begun)
		if !begun {
			continue
		}
		if a.reading {
			c.replicas[k] = c.blankReplica(k + 1)
		}
		c.archiveReplica(a, k)
	}
}

func (c *chain) archiveReplica(a *archive, index int) {
	r := c.replicas[index]
	r.Lock()
	defer r.Unlock()
	r.archive(a)
	if index >= c.merged {
		r.pairs.archive(a)
	} else if a.reading {
		r.pairs = nil
	}
}
