package md

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// Archive saves or restores numbers in the order of the calls. It appends them to a byte
// slice or reads them back, with eight bytes per number of any type. A type describes
// both directions in one method, Archive, so that they cannot diverge.
type Archive struct {
	bytes   []byte // written so far, or remaining to read
	reading bool
	short   bool // a read exceeded the remaining bytes
}

// NewArchive returns an archive that appends to behind.
func NewArchive(behind []byte) *Archive { return &Archive{bytes: behind} }

// OpenArchive returns an archive that restores stored data.
func OpenArchive(stored []byte) *Archive { return &Archive{bytes: stored, reading: true} }

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

// Integer saves or restores an int64. Like the other methods, it does not write to v when
// saving, because other goroutines might be reading it.
func (a *Archive) Integer(v *int64) {
	if w := a.next(uint64(*v)); a.reading {
		*v = int64(w)
	}
}

// Float saves or restores a float64.
func (a *Archive) Float(v *float64) {
	if w := a.next(math.Float64bits(*v)); a.reading {
		*v = math.Float64frombits(w)
	}
}

// Word saves or restores a uint64.
func (a *Archive) Word(v *uint64) {
	if w := a.next(*v); a.reading {
		*v = w
	}
}

// Duration saves or restores a duration.
func (a *Archive) Duration(v *time.Duration) { a.Integer((*int64)(v)) }

// Flag saves or restores a Boolean.
func (a *Archive) Flag(v *bool) {
	set := int64(0)
	if *v {
		set = 1
	}
	if a.Integer(&set); a.reading {
		*v = set != 0
	}
}

// Text saves or restores a byte slice with its length.
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

// Bytes returns the initial bytes followed by the saved data.
func (a *Archive) Bytes() []byte { return a.bytes }

// vectors saves or restores vectors of known number.
func (a *Archive) vectors(v []Vec) {
	for i := range v {
		a.Float(&v[i].X)
		a.Float(&v[i].Y)
		a.Float(&v[i].Z)
	}
}

// Reading reports whether the archive restores.
func (a *Archive) Reading() bool { return a.reading }

// Complete reports whether exactly all stored data was restored.
func (a *Archive) Complete() bool { return !a.short && len(a.bytes) == 0 }
