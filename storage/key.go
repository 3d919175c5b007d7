package storage

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"molrun/app"
)

// key is a key of a bucket, built part by part. Each part ends where its own
// bytes say, so no text can be mistaken for another's end, and keys sort as
// the tuples of their parts do:
//
//	text      2 bytes of length, then its bytes: shorter ones first
//	priority  8 bytes: higher ones first
//	time      8 bytes of milliseconds: earlier ones first
//	id        16 bytes: older ones first
//	letter    1 byte
//
// Texts have at most a few hundred bytes by the rules of app; bbolt refuses a
// key with one that is too long for its length.
type key []byte

func (k key) text(s string) key {
	k = binary.BigEndian.AppendUint16(k, uint16(len(s)))
	return append(k, s...)
}

func (k key) id(id app.IDBytes) key { return append(k, id[:]...) }

func (k key) letter(c byte) key { return append(k, c) }

// priority turns the order round and, by the sign bit, makes it one of bytes.
func (k key) priority(p int) key {
	return binary.BigEndian.AppendUint64(k, math.MaxUint64-(uint64(int64(p))^1<<63))
}

// time turns the sign round, so that times before 1970 come first, too.
func (k key) time(t time.Time) key {
	return binary.BigEndian.AppendUint64(k, uint64(t.UnixMilli())^1<<63)
}

// cutTime reads the time with which the key begins.
func (k key) cutTime() (time.Time, key, error) {
	if len(k) < 8 {
		return time.Time{}, nil, errKey
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(k) ^ 1<<63)).UTC(), k[8:], nil
}

// end gives a key above all that continue k with an ID.
func (k key) end() key {
	end := make(key, len(k)+app.IDSize+1)
	for i := copy(end, k); i < len(end); i++ {
		end[i] = 0xff
	}
	return end
}

var errKey = errors.New("a key is not of the form of its index")

// cutText reads the text with which the key begins, and gives the rest.
func (k key) cutText() (string, key, error) {
	if len(k) < 2 {
		return "", nil, errKey
	}
	n := int(binary.BigEndian.Uint16(k))
	if len(k) < 2+n {
		return "", nil, errKey
	}
	return string(k[2 : 2+n]), k[2+n:], nil
}

// cutPriority reads the priority with which the key begins.
func (k key) cutPriority() (int, key, error) {
	if len(k) < 8 {
		return 0, nil, errKey
	}
	p := (math.MaxUint64 - binary.BigEndian.Uint64(k)) ^ 1<<63
	return int(int64(p)), k[8:], nil
}

// lastID gives the ID with which the keys of all indexes end.
func (k key) lastID() (app.IDBytes, error) {
	if len(k) < app.IDSize {
		return app.IDBytes{}, errKey
	}
	return app.IDBytes(k[len(k)-app.IDSize:]), nil
}

func idLess(a, b app.IDBytes) bool { return string(a[:]) < string(b[:]) }

// idOf reads an ID that was checked when its record was put.
func idOf[T ~string](text T) app.IDBytes {
	id, _ := app.ParseID(string(text))
	return id
}

// statusLetter stands for a status in keys.
func statusLetter(s app.Status) byte {
	switch s {
	case app.Queued:
		return 'Q'
	case app.Running:
		return 'R'
	case app.Completed:
		return 'C'
	case app.Failed:
		return 'F'
	}
	return anyStatus
}

// anyStatus is the letter of entries that stand for every status.
const anyStatus = '*'

// listKey gives the prefix of the listing of an organization with these
// filters: which of them are in use, the organization, then their values.
func listKey(used byte, organization string, filters []string) key {
	k := make(key, 0, 128)
	k = k.letter(used).text(organization)
	for i, f := range filters {
		if used&(1<<i) != 0 {
			k = k.text(f)
		}
	}
	return k
}

// listOf gives the prefix of the listing with those filters that are not empty.
func listOf(organization string, filters ...string) key {
	var used byte
	for i, f := range filters {
		if f != "" {
			used |= 1 << i
		}
	}
	return listKey(used, organization, filters)
}

// listEntries puts a record into the listings of all combinations of filters.
func listEntries(id app.IDBytes, organization string, filters ...string) []entry {
	all := make([]entry, 1<<len(filters))
	for used := range all {
		all[used].key = listKey(byte(used), organization, filters).id(id)
	}
	return all
}
