package enginetest

import (
	"encoding/binary"
	"math"
	"os"
	"testing"

	"molrun/app/test/must"
)

// DCD is the content of a DCD file, as parsed by code independent of the writer.
type DCD struct {
	Words  [20]uint32
	Titles []string
	Beads  int
	Frames [][3][]float32
	Cells  [][6]float64 // edges in Å and cosines of angles; empty if the file has none
}

// ReadDCD parses a DCD file and checks the lengths of its records.
func ReadDCD(t *testing.T, path string) DCD {
	t.Helper()
	b, err := os.ReadFile(path)
	must.OK(t, err)
	record := func() []byte {
		n := binary.LittleEndian.Uint32(b)
		payload := b[4 : 4+n]
		if end := binary.LittleEndian.Uint32(b[4+n:]); end != n {
			t.Fatalf("%s: record of %d bytes ends with %d", path, n, end)
		}
		b = b[8+n:]
		return payload
	}
	var d DCD
	head := record()
	if len(head) != 84 || string(head[:4]) != "CORD" {
		t.Fatalf("%s: header %q", path, head)
	}
	for i := range d.Words {
		d.Words[i] = binary.LittleEndian.Uint32(head[4+4*i:])
	}
	titles := record()
	for i := range binary.LittleEndian.Uint32(titles) {
		d.Titles = append(d.Titles, string(titles[4+80*i:4+80*(i+1)]))
	}
	d.Beads = int(binary.LittleEndian.Uint32(record()))
	for range d.Words[0] {
		if d.Words[10] == 1 {
			values := record()
			var cell [6]float64
			for i := range cell {
				cell[i] = math.Float64frombits(binary.LittleEndian.Uint64(values[8*i:]))
			}
			d.Cells = append(d.Cells, cell)
		}
		var frame [3][]float32
		for axis := range frame {
			values := record()
			for i := 0; i < len(values); i += 4 {
				frame[axis] = append(frame[axis], math.Float32frombits(binary.LittleEndian.Uint32(values[i:])))
			}
		}
		d.Frames = append(d.Frames, frame)
	}
	if len(b) != 0 {
		t.Errorf("%s: %d bytes beyond the last frame", path, len(b))
	}
	return d
}
