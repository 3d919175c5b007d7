package store

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// Archive stores the numbers of a checkpoint, or restores them: it appends numbers to bytes, or
// reads them back. A number of any type takes eight bytes.
type Archive struct {
	bytes   []byte // written so far, or left to read
	reading bool
	short   bool // more was read than there were bytes
}

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

// Reading reports whether the archive restores.
func (a *Archive) Reading() bool { return a.reading }

// Whole reports whether all of what was stored was restored, and no more.
func (a *Archive) Whole() bool { return !a.short && len(a.bytes) == 0 }
