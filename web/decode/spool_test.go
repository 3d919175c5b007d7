package decode

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"molrun/app/test/must"
)

// TestSpoolKeepsBodiesOfAnyLength tries bodies with correct, wrong and no declared
// lengths.
func TestSpoolKeepsBodiesOfAnyLength(t *testing.T) {
	pool := &sync.Pool{}
	for _, length := range []int{0, 1, 600, smallestChunk - 1, smallestChunk, smallestChunk + 1, largestChunk, 3 * largestChunk} {
		text := strings.Repeat("body", length)[:length]
		for _, said := range []int64{-1, 0, 5, int64(length), int64(length) + 7} {
			var kept [2][]byte // the second body must not share memory with the first
			for i := range kept {
				s := spool{pool: pool, length: said}
				must.OK(t, s.readFrom(iotest.HalfReader(strings.NewReader(text))))
				kept[i] = s.bytes()
				s.release()
				if i == 0 {
					text = strings.ToUpper(text)
				}
			}
			if want := []byte(strings.ToLower(text)); !bytes.Equal(kept[0], want) || !bytes.Equal(bytes.ToLower(kept[1]), want) {
				t.Errorf("%d bytes, said to be %d, are not what was sent", length, said)
			}
			text = strings.ToLower(text)
		}
	}
}

// TestSmallBodiesTakeLittleMemory reads a body with a declared length.
func TestSmallBodiesTakeLittleMemory(t *testing.T) {
	s := spool{pool: &sync.Pool{}, length: 600}
	must.OK(t, s.readFrom(strings.NewReader(strings.Repeat("x", 600))))
	if got := s.bytes(); len(s.chunks) != 1 || cap(got) > 700 {
		t.Errorf("%d chunks, %d bytes", len(s.chunks), cap(got))
	}
}
