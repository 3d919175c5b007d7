package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"molrun/app/base/sortid"
)

// Key is a key of a bucket, built part by part. Parts are self-delimiting, so they cannot
// run into each other, and keys sort like the tuples of their parts:
//
//	text      2 bytes of length, then its bytes: shorter strings first
//	priority  8 bytes: higher priorities first
//	time      8 bytes of milliseconds: earlier times first
//	id        16 bytes: older IDs first
//	letter    1 byte
//
// Package app limits strings to a few hundred bytes. bbolt rejects a key with a string
// whose length does not fit in 2 bytes.
type Key []byte

// ErrKey means that a key or value of an index does not have the index's format.
var ErrKey = errors.New("malformed index entry")

// Text appends a string.
func (k Key) Text(s string) Key {
	k = binary.BigEndian.AppendUint16(k, uint16(len(s)))
	return append(k, s...)
}

// Owner describes the owner in a key for humans: an organization, or a user and the
// organization. A key with other parts is shown in hexadecimal.
func (k Key) Owner() string {
	var texts []string
	for rest := k; len(rest) > 0; {
		if len(rest) < 2 || len(rest)-2 < int(binary.BigEndian.Uint16(rest)) {
			return fmt.Sprintf("%x", []byte(k))
		}
		n := int(binary.BigEndian.Uint16(rest))
		texts = append(texts, strconv.Quote(string(rest[2:2+n])))
		rest = rest[2+n:]
	}
	slices.Reverse(texts)
	return strings.Join(texts, " of ")
}

// ID appends an ID.
func (k Key) ID(id sortid.ID) Key { return append(k, id[:]...) }

// Letter appends a byte.
func (k Key) Letter(c byte) Key { return append(k, c) }

// Priority appends a priority in reversed order. Flipping the sign bit sorts negative
// numbers correctly.
func (k Key) Priority(p int) Key {
	return binary.BigEndian.AppendUint64(k, math.MaxUint64-(uint64(int64(p))^1<<63))
}

// Time appends a time. Flipping the sign bit sorts times before 1970 correctly.
func (k Key) Time(t time.Time) Key {
	return binary.BigEndian.AppendUint64(k, uint64(t.UnixMilli())^1<<63)
}

// End returns a key above every key that consists of k and an ID.
func (k Key) End() Key {
	end := make(Key, len(k)+sortid.Size+1)
	for i := copy(end, k); i < len(end); i++ {
		end[i] = 0xff
	}
	return end
}

// CutText decodes the string at the start of k and returns it with the rest.
func (k Key) CutText() (string, Key, error) {
	if len(k) < 2 {
		return "", nil, ErrKey
	}
	n := int(binary.BigEndian.Uint16(k))
	if len(k) < 2+n {
		return "", nil, ErrKey
	}
	return string(k[2 : 2+n]), k[2+n:], nil
}

// CutPriority decodes the priority at the start of k and returns it with the rest.
func (k Key) CutPriority() (int, Key, error) {
	if len(k) < 8 {
		return 0, nil, ErrKey
	}
	p := (math.MaxUint64 - binary.BigEndian.Uint64(k)) ^ 1<<63
	return int(int64(p)), k[8:], nil
}

// CutTime decodes the time at the start of k and returns it with the rest.
func (k Key) CutTime() (time.Time, Key, error) {
	if len(k) < 8 {
		return time.Time{}, nil, ErrKey
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(k) ^ 1<<63)).UTC(), k[8:], nil
}

// LastID decodes the ID at the end of a key. All keys of records and indexes end with
// one.
func (k Key) LastID() (sortid.ID, error) {
	if len(k) < sortid.Size {
		return sortid.ID{}, ErrKey
	}
	return sortid.ID(k[len(k)-sortid.Size:]), nil
}
