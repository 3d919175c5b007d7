package cgidp

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"molrun/app/engine/cgidp/cgidptest"
	"molrun/app/engine/cgidp/md"
)

// dcd is the content of a file as read independently of the writer.
type dcd struct {
	words  [20]uint32
	titles []string
	beads  int
	frames [][3][]float32
}

// readDCD reads the records of a file and checks their lengths.
func readDCD(t *testing.T, path string) dcd {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	record := func() []byte {
		n := binary.LittleEndian.Uint32(b)
		payload := b[4 : 4+n]
		if end := binary.LittleEndian.Uint32(b[4+n:]); end != n {
			t.Fatalf("%s: record of %d bytes ends with %d", path, n, end)
		}
		b = b[8+n:]
		return payload
	}
	var d dcd
	head := record()
	if len(head) != 84 || string(head[:4]) != "CORD" {
		t.Fatalf("%s: header %q", path, head)
	}
	for i := range d.words {
		d.words[i] = binary.LittleEndian.Uint32(head[4+4*i:])
	}
	titles := record()
	for i := range binary.LittleEndian.Uint32(titles) {
		d.titles = append(d.titles, string(titles[4+80*i:4+80*(i+1)]))
	}
	d.beads = int(binary.LittleEndian.Uint32(record()))
	for range d.words[0] {
		var frame [3][]float32
		for axis := range frame {
			values := record()
			for i := 0; i < len(values); i += 4 {
				frame[axis] = append(frame[axis], math.Float32frombits(binary.LittleEndian.Uint32(values[i:])))
			}
		}
		d.frames = append(d.frames, frame)
	}
	if len(b) != 0 {
		t.Errorf("%s: %d bytes beyond the last frame", path, len(b))
	}
	return d
}

// zigzag is a conformation without symmetry.
func zigzag(n int) []md.Vec {
	x := make([]md.Vec, n)
	for i := range x {
		x[i] = md.Vec{X: 0.3 * float64(i), Y: 0.2 * float64(i%2), Z: -0.1 * float64(i%3)}
	}
	return x
}

func TestTrajectoryIsReadableAfterEachFrame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "traj.dcd")
	const beads, every = 7, 500
	w := newTrajectory(beads, every)
	err := w.create(path, "Hst5")
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	centre := md.Vec{X: 1, Y: -2, Z: 3}
	for frame := range 4 {
		x := zigzag(beads)
		x[0].X = float64(frame)
		if err := w.append(x, centre); err != nil {
			t.Fatal(err)
		}
		d := readDCD(t, path)
		if d.beads != beads || len(d.frames) != frame+1 {
			t.Fatalf("%d beads and %d frames, want %d and %d", d.beads, len(d.frames), beads, frame+1)
		}
		if d.words[1] != every || d.words[2] != every || d.words[3] != uint32(every*(frame+1)) {
			t.Errorf("first, interval and last step: %v", d.words[1:4])
		}
		for i := range x {
			cgidptest.Near(t, "x", float64(d.frames[frame][0][i]), 10*(x[i].X-1), 1e-5)
			cgidptest.Near(t, "y", float64(d.frames[frame][1][i]), 10*(x[i].Y+2), 1e-5)
			cgidptest.Near(t, "z", float64(d.frames[frame][2][i]), 10*(x[i].Z-3), 1e-5)
		}
	}
}

func TestTrajectoryHeader(t *testing.T) {
	b := dcdHeader("Hst5", 24, 1000)
	if len(b) != 276 {
		t.Fatalf("header of %d bytes, want 276", len(b))
	}
	word := func(offset int) uint32 { return binary.LittleEndian.Uint32(b[offset:]) }
	for offset, want := range map[int]uint32{
		0: 84, 8: 0, 12: 1000, 16: 1000, 20: 0, 48: 0, 84: 24, 88: 84, // counts, no cell, version
		92: 164, 96: 2, 260: 164, // titles
		264: 4, 268: 24, 272: 4, // beads
	} {
		if word(offset) != want {
			t.Errorf("word at %d is %d, want %d", offset, word(offset), want)
		}
	}
	cgidptest.Near(t, "time step", float64(math.Float32frombits(word(44))), 0.01/0.04888821, 1e-7)
	if got := string(b[100:108]); got != "Hst5    " {
		t.Errorf("title begins %q", got)
	}
}

func TestReadFrame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "traj.dcd")
	w := newTrajectory(5, 100)
	err := w.create(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	x := zigzag(5)
	for range 3 {
		x[4].Z++
		if err := w.append(x, md.Vec{}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readFrame(w.file, 5, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range x {
		cgidptest.Near(t, "distance", got[i].Sub(md.Vec{}.AddScaled(10, x[i])).Norm(), 0, 1e-5)
	}
	if _, err := readFrame(w.file, 5, 3); err == nil {
		t.Error("a fourth frame of three was read")
	}
}
