package app

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"sync"
	"time"
)

// JobID identifies a job for ever: 26 letters that sort by time of creation.
type JobID string

// UploadID identifies an upload for ever. It has the form of a JobID.
type UploadID string

// Crockford's alphabet sorts like the values of its letters.
const idLetters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// IDSize and IDLength are the sizes of an ID as bytes and as text.
const (
	IDSize   = 16
	IDLength = 26
)

// IDBytes is an ID as used in keys: 48 bits of milliseconds since 1970, then 80
// random bits.
type IDBytes [IDSize]byte

var errBadID = errors.New("an ID has 26 letters or digits")

// ParseID parses the text form of an ID. It accepts only what IDBytes.String
// writes, so that text and bytes map one to one.
func ParseID(s string) (IDBytes, error) {
	var id IDBytes
	if len(s) != IDLength || s[0] > '7' {
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

func (id IDBytes) String() string { return string(id.Append(make([]byte, 0, IDLength))) }

// Append adds the text form to b.
func (id IDBytes) Append(b []byte) []byte {
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	var text [IDLength]byte
	for i := IDLength - 1; i >= 0; i-- {
		text[i] = idLetters[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return append(b, text[:]...)
}

// Time returns the moment at which the ID was made, to the millisecond.
func (id IDBytes) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16))
}

// next returns the smallest ID above id.
func (id IDBytes) next() IDBytes {
	for i := IDSize - 1; i >= 0; i-- {
		id[i]++
		if id[i] != 0 {
			break
		}
	}
	return id
}

// idSource makes IDs that only rise, even if the clock goes back.
type idSource struct {
	mu   sync.Mutex
	last IDBytes
}

// newIDSource continues above floor, the highest ID ever stored.
func newIDSource(floor IDBytes) *idSource { return &idSource{last: floor} }

func (s *idSource) next(now time.Time) string {
	var id IDBytes
	binary.BigEndian.PutUint64(id[:8], uint64(now.UnixMilli())<<16)
	rand.Read(id[6:]) // never fails (crypto/rand)
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(id[:]) <= string(s.last[:]) {
		id = s.last.next()
	}
	s.last = id
	return id.String()
}
