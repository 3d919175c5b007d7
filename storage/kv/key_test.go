package kv

import (
	"bytes"
	"cmp"
	"fmt"
	"testing"

	"molrun/app/base/sortid"
	"molrun/app/test/must"
)

// parts holds the parts of a key.
type parts struct {
	first, second string
	priority      int
	id            sortid.ID
}

func (p parts) key() Key {
	return Key{}.Text(p.first).Priority(p.priority).Text(p.second).ID(p.id)
}

// compare orders parts in the order documented for Key.
func (p parts) compare(q parts) int {
	return cmp.Or(
		compareText(p.first, q.first),
		-cmp.Compare(p.priority, q.priority),
		compareText(p.second, q.second),
		bytes.Compare(p.id[:], q.id[:]),
	)
}

func compareText(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func FuzzKey(f *testing.F) {
	f.Add("lab", "ann", 0, []byte("1"), "lab", "ann", 1, []byte("2"))
	f.Add("ab", "c", -1, []byte("1"), "a", "bc", 0, []byte("1"))
	f.Add("a\x00", "", 1<<62, []byte{255}, "a", "\x00", -1<<63, []byte{})
	f.Add("", "\xff\xff", 10, []byte{}, "\xff\xff", "", -10, []byte{0})
	f.Fuzz(func(t *testing.T, a1, a2 string, pa int, ida []byte, b1, b2 string, pb int, idb []byte) {
		if max(len(a1), len(a2), len(b1), len(b2)) > 60000 {
			t.Skip("bbolt takes no such key")
		}
		a, b := parts{first: a1, second: a2, priority: pa}, parts{first: b1, second: b2, priority: pb}
		copy(a.id[:], ida)
		copy(b.id[:], idb)

		must.Equal(t, fmt.Sprintf("order of %+v and %+v", a, b), bytes.Compare(a.key(), b.key()), a.compare(b))
		if got, err := cutParts(a.key()); err != nil || got != a {
			t.Errorf("key of %+v reads as %+v, %v", a, got, err)
		}
		// The prefix of a string matches only keys with that string.
		prefix := Key{}.Text(a1)
		must.Equal(t, fmt.Sprintf("key of %+v lies in the listing of %q", b, a1), bytes.HasPrefix(b.key(), prefix), a1 == b1)
		if end := a.key()[:len(a.key())-sortid.Size].End(); bytes.Compare(a.key(), end) >= 0 {
			t.Errorf("key %x is not below the end of its listing %x", a.key(), end)
		}
	})
}

func cutParts(k Key) (p parts, err error) {
	if p.first, k, err = k.CutText(); err != nil {
		return p, err
	}
	if p.priority, k, err = k.CutPriority(); err != nil {
		return p, err
	}
	if p.second, k, err = k.CutText(); err != nil {
		return p, err
	}
	p.id, err = k.LastID()
	return p, err
}
