package trajectory

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"molrun/app/engine/md"
	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// zigzag is a conformation without symmetry.
func zigzag(n int) []md.Vec {
	x := make([]md.Vec, n)
	for i := range x {
		x[i] = md.Vec{X: 0.3 * float64(i), Y: 0.2 * float64(i%2), Z: -0.1 * float64(i%3)}
	}
	return x
}

func TestTrajectoryIsReadableAfterEachFrame(t *testing.T) {
	for _, box := range []md.Vec{{}, {X: 10, Y: 11, Z: 12}} {
		testTrajectory(t, box)
	}
}

func testTrajectory(t *testing.T, box md.Vec) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "traj.dcd")
	const beads, every = 7, 500
	w := NewDCD(beads, every, box)
	err := w.Create(path, "Hst5", "a test")
	must.OK(t, err)
	defer w.Close()
	centre := md.Vec{X: 1, Y: -2, Z: 3}
	for frame := range 4 {
		x := zigzag(beads)
		x[0].X = float64(frame)
		must.OK(t, w.Append(x, centre))
		d := enginetest.ReadDCD(t, path)
		if d.Beads != beads || len(d.Frames) != frame+1 {
			t.Fatalf("%d beads and %d frames, want %d and %d", d.Beads, len(d.Frames), beads, frame+1)
		}
		if d.Words[1] != every || d.Words[2] != every || d.Words[3] != uint32(every*(frame+1)) {
			t.Errorf("first, interval and last step: %v", d.Words[1:4])
		}
		if box != (md.Vec{}) {
			if want := [6]float64{100, 0, 110, 0, 0, 120}; d.Cells[frame] != want {
				t.Errorf("cell %v, want %v", d.Cells[frame], want)
			}
		}
		for i := range x {
			enginetest.Near(t, "x", float64(d.Frames[frame][0][i]), 10*(x[i].X-1), 1e-5)
			enginetest.Near(t, "y", float64(d.Frames[frame][1][i]), 10*(x[i].Y+2), 1e-5)
			enginetest.Near(t, "z", float64(d.Frames[frame][2][i]), 10*(x[i].Z-3), 1e-5)
		}
	}
}

func TestTrajectoryHeader(t *testing.T) {
	b := NewDCD(24, 1000, md.Vec{}).header("Hst5", "a test")
	if len(b) != 276 {
		t.Fatalf("header of %d bytes, want 276", len(b))
	}
	word := func(offset int) uint32 { return binary.LittleEndian.Uint32(b[offset:]) }
	for offset, want := range map[int]uint32{
		0: 84, 8: 0, 12: 1000, 16: 1000, 20: 0, 48: 0, 84: 24, 88: 84, // counts, no cell, version
		92: 164, 96: 2, 260: 164, // titles
		264: 4, 268: 24, 272: 4, // beads
	} {
		must.Equal(t, fmt.Sprintf("word at %d", offset), word(offset), want)
	}
	enginetest.Near(t, "time step", float64(math.Float32frombits(word(44))), 0.01/0.04888821, 1e-7)
	must.Equal(t, "title begins", string(b[100:108]), "Hst5    ")
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "traj.dcd")
	w := NewDCD(5, 100, md.Vec{X: 9, Y: 9, Z: 70})
	err := w.Create(path, "", "")
	must.OK(t, err)
	defer w.Close()
	x := zigzag(5)
	for range 3 {
		x[4].Z++
		must.OK(t, w.Append(x, md.Vec{}))
	}
	got, err := w.Read(path, 2)
	must.OK(t, err)
	for i := range x {
		enginetest.Near(t, "distance", got[i].Sub(md.Vec{}.AddScaled(10, x[i])).Norm(), 0, 1e-5)
	}
	if _, err := w.Read(path, 3); err == nil {
		t.Error("a fourth frame of three was read")
	}
}
