package storage

import (
	"bytes"
	"cmp"
	"testing"

	"molrun/app"
	"molrun/app/placement"
)

// parts are what a key of the queue is made of; it uses every kind of part.
type parts struct {
	first, second string
	priority      int
	id            app.IDBytes
}

func (p parts) key() key {
	return key{}.text(p.first).priority(p.priority).text(p.second).id(p.id)
}

// compare orders as the keys are documented to.
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

		if got, want := bytes.Compare(a.key(), b.key()), a.compare(b); got != want {
			t.Errorf("keys of %+v and %+v compare as %d, want %d", a, b, got, want)
		}
		if got, err := cutParts(a.key()); err != nil || got != a {
			t.Errorf("key of %+v reads as %+v, %v", a, got, err)
		}
		// The listing of one text holds no key of another.
		prefix := key{}.text(a1)
		if got, want := bytes.HasPrefix(b.key(), prefix), a1 == b1; got != want {
			t.Errorf("key of %+v lies in the listing of %q: %v", b, a1, got)
		}
		if end := a.key()[:len(a.key())-app.IDSize].end(); bytes.Compare(a.key(), end) >= 0 {
			t.Errorf("key %x is not below the end of its listing %x", a.key(), end)
		}
	})
}

func cutParts(k key) (p parts, err error) {
	if p.first, k, err = k.cutText(); err != nil {
		return p, err
	}
	if p.priority, k, err = k.cutPriority(); err != nil {
		return p, err
	}
	if p.second, k, err = k.cutText(); err != nil {
		return p, err
	}
	p.id, err = k.lastID()
	return p, err
}

// FuzzReadWaiting finds that no bytes in the index, however damaged, do more
// than give an error.
func FuzzReadWaiting(f *testing.F) {
	e := jobQueue(testID(1), testJob(1))[0]
	f.Add([]byte(e.key), e.value)
	f.Add([]byte(e.key[:20]), e.value[:1])
	f.Fuzz(func(t *testing.T, k, value []byte) {
		w, err := readWaiting(k, k, value)
		if err != nil {
			return
		}
		again := key{}.priority(w.Priority).text(w.Organization).text(w.Email)
		if !bytes.HasPrefix(k, again) {
			t.Errorf("key %x reads as %+v", k, w)
		}
	})
}

func TestResourcesReadAsWritten(t *testing.T) {
	for _, want := range []placement.Resources{
		{},
		{CPUs: 1, MemoryBytes: 1 << 50, GPUs: 8},
		{CPUs: -1, MemoryBytes: -1 << 63, GPUs: 1<<63 - 1},
	} {
		if got, err := cutResources(appendResources(nil, want)); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}
