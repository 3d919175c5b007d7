// Package sortid makes IDs that sort by creation time.
package sortid

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"math/bits"
	"sync"
	"time"
)

// Crockford's alphabet sorts by the values of its letters.
const idLetters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// Size and Length are the lengths of an ID in bytes and as text.
const (
	Size   = 16
	Length = 26
)

// ID is an ID as used in keys: 48 bits of milliseconds since 1970, then 80
// random bits.
type ID [Size]byte

var errBadID = errors.New("an ID has 26 letters or digits")

// Parse parses the text form of an ID. It accepts only what String returns, so that text
// and bytes map one to one.
func Parse(s string) (ID, error) {
	var id ID
	if len(s) != Length || s[0] > '7' {
		return id, errBadID
	}
	var hi, lo uint64
	for i := range len(s) {
		v := letterValue(s[i])
		if v > 31 {
			return id, errBadID
		}
		hi = hi<<5 | lo>>59
		lo = lo<<5 | uint64(v)
	}
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
	return id, nil
}

func letterValue(c byte) byte {
	for i := range len(idLetters) {
		if idLetters[i] == c {
			return byte(i)
		}
	}
	return 255
}

func (id ID) String() string { return string(id.Append(make([]byte, 0, Length))) }

// Append adds the text form to b.
func (id ID) Append(b []byte) []byte {
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	var text [Length]byte
	for i := Length - 1; i >= 0; i-- {
		text[i] = idLetters[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return append(b, text[:]...)
}

// Time returns the creation time of the ID, to the millisecond.
func (id ID) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16))
}

// First returns the smallest ID for a point in time.
func First(at time.Time) (id ID) {
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16)
	return id
}

// next returns the smallest ID above id.
func (id ID) next() ID {
	for i := Size - 1; i >= 0; i-- {
		id[i]++
		if id[i] != 0 {
			break
		}
	}
	return id
}

// Source makes IDs that always increase, even if the clock goes back.
type Source struct {
	mu   sync.Mutex
	last ID
}

// NewSource returns a Source that continues above floor, the highest ID ever stored. If
// the clock is behind, it starts a random distance above, so that two sources don't make
// the same IDs.
func NewSource(floor ID) *Source {
	skip := make([]byte, 8)
	rand.Read(skip[2:]) // never fails (crypto/rand)
	hi, lo := binary.BigEndian.Uint64(floor[:8]), binary.BigEndian.Uint64(floor[8:])
	lo, carry := bits.Add64(lo, binary.BigEndian.Uint64(skip), 0)
	binary.BigEndian.PutUint64(floor[:8], hi+carry)
	binary.BigEndian.PutUint64(floor[8:], lo)
	return &Source{last: floor}
}

// Next returns the text form of a new ID, which is greater than all earlier ones.
func (s *Source) Next(now time.Time) string {
	id := First(now)
	rand.Read(id[6:]) // never fails (crypto/rand)
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(id[:]) <= string(s.last[:]) {
		id = s.last.next()
	}
	s.last = id
	return id.String()
}
