package md

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// Archive stores numbers or restores them, in the order of the calls: it appends them to bytes, or
// reads them back, eight bytes for a number of any type. One method of a type, Archive, describes
// both directions, so that they cannot differ.
type Archive struct {
	bytes   []byte // written so far, or left to read
	reading bool
	short   bool // more was read than there were bytes
}

// Storing returns an archive that stores behind some bytes.
func Storing(behind []byte) *Archive { return &Archive{bytes: behind} }

// Restoring returns an archive that restores what was stored.
func Restoring(stored []byte) *Archive { return &Archive{bytes: stored, reading: true} }

func (a *Archive) next(v uint64) uint64 {
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

// Integer, like the other methods, does not touch v when it stores: others may be
// reading it.
func (a *Archive) Integer(v *int64) {
	if w := a.next(uint64(*v)); a.reading {
		*v = int64(w)
	}
}

// Float is for a float64.
func (a *Archive) Float(v *float64) {
	if w := a.next(math.Float64bits(*v)); a.reading {
		*v = math.Float64frombits(w)
	}
}

// Word is for an unsigned integer.
func (a *Archive) Word(v *uint64) {
	if w := a.next(*v); a.reading {
		*v = w
	}
}

// Duration is for a duration.
func (a *Archive) Duration(v *time.Duration) { a.Integer((*int64)(v)) }

// Flag is for a boolean.
func (a *Archive) Flag(v *bool) {
	set := int64(0)
	if *v {
		set = 1
	}
	if a.Integer(&set); a.reading {
		*v = set != 0
	}
}

// Text is for a slice of any length, which is stored too.
func (a *Archive) Text(v *[]byte) {
	n := int64(len(*v))
	a.Integer(&n)
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

// Bytes is what was stored, behind the bytes that were there.
func (a *Archive) Bytes() []byte { return a.bytes }

// vectors stores or restores the components of vectors.
func (a *Archive) vectors(v []Vec) {
	for i := range v {
		a.Float(&v[i].X)
		a.Float(&v[i].Y)
		a.Float(&v[i].Z)
	}
}

// Reading reports whether the archive restores.
func (a *Archive) Reading() bool { return a.reading }

// Whole reports whether all of what was stored was restored, and no more.
func (a *Archive) Whole() bool { return !a.short && len(a.bytes) == 0 }
