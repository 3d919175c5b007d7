package cgidp

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app/engine/md"
	"molrun/app/engine/run"
	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// memory recomputes a replica in memory and keeps the frames expected in its trajectory.
type memory struct {
	*md.Dynamics
	model  *md.Model
	every  int
	frames [][][3]float64 // Å, relative to the center of mass
}

func newMemory(t *testing.T, s *Settings, index, replica int) *memory {
	t.Helper()
	q := s.Sequences[index]
	model := md.NewModel(q.Residues, s.Conditions)
	d := md.NewDynamics(model, md.NewRandom(s.Seed, index, replica))
	must.OK(t, d.Start())
	return &memory{Dynamics: d, model: model, every: int(q.FrameEvery)}
}

// first returns the first count frames, computing them as needed.
func (m *memory) first(t *testing.T, count int) [][][3]float64 {
	t.Helper()
	for len(m.frames) < count {
		must.OK(t, m.Advance(m.every))
		m.frames = append(m.frames, m.frame())
	}
	return m.frames[:count]
}

func (m *memory) frame() [][3]float64 {
	var centre md.Vec
	for i, x := range m.Positions() {
		centre = centre.AddScaled(m.model.Mass(i)/m.model.TotalMass(), x)
	}
	frame := make([][3]float64, m.model.Size())
	for i, x := range m.Positions() {
		frame[i] = [3]float64{10 * (x.X - centre.X), 10 * (x.Y - centre.Y), 10 * (x.Z - centre.Z)}
	}
	return frame
}

// apart returns the largest coordinate difference in Å, or +Inf if the numbers of beads
// differ.
func apart(a, b [][3]float64) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	largest := 0.0
	for i := range a {
		for axis := range 3 {
			largest = max(largest, math.Abs(a[i][axis]-b[i][axis]))
		}
	}
	return largest
}

const sameÅ = 0.01 // tolerance of coordinates

// checkFrames checks that got and want are the same frames in the same order.
func checkFrames(t *testing.T, what string, got, want [][][3]float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d frames, want %d", what, len(got), len(want))
		return
	}
	for k := range want {
		if d := apart(got[k], want[k]); !(d <= sameÅ) {
			t.Errorf("%s: frame %d is off by %g Å", what, k, d)
		}
	}
}

// checkAmong checks that the frames of got are a subsequence of those.
func checkAmong(t *testing.T, what string, got, those [][][3]float64) {
	t.Helper()
	for k, frame := range got {
		at := slices.IndexFunc(those, func(other [][3]float64) bool { return apart(frame, other) <= sameÅ })
		if at < 0 {
			t.Errorf("%s: model %d is not a frame of the trajectory, or is out of order", what, k)
			return
		}
		those = those[at+1:]
	}
}

// checkChain checks that the topology has the residues of a sequence, each bonded to the
// next.
func checkChain(t *testing.T, what string, got inLibrary, letters string) {
	t.Helper()
	var want []string
	for i := range letters {
		want = append(want, md.Code(letters[i]))
	}
	must.Equal(t, what+": residues", got.Residues, want)
	bonded := len(got.Bonds) == len(letters)-1
	for i, bond := range got.Bonds {
		bonded = bonded && bond == [2]int{i, i + 1}
	}
	if !bonded {
		t.Errorf("%s: bonds %v", what, got.Bonds)
	}
}

// checkTimes checks the interval between frames in ps. The first frame is one interval
// after the start.
func checkTimes(t *testing.T, what string, got inLibrary, every float64) {
	t.Helper()
	enginetest.Near(t, what+": ps between frames", got.Spacing, every, 1e-6*every)
	for k, time := range got.Times {
		enginetest.Near(t, what+": ps at a frame", time, every*float64(k+1), 1e-6*every*float64(k+1))
	}
	must.Equal(t, what, len(got.Times), len(got.Frames))
}

// Other libraries read exactly the coordinates that a run had in memory, whether it has
// finished, is still running or was interrupted.
func TestLibrariesReadFiles(t *testing.T) {
	t.Parallel()
	readers := libraryReaders(t)
	t.Run("finished", func(t *testing.T) {
		settings := `{"sequences":["` + hst5 + `","ACDEFGHIKLMNPQRSTVWY"],"names":["Hst5","all"],
			"steps":7000,"replicas":2,"frame_every":700,"equilibration":0.3,"seed":3,"cores":2}`
		dir, _ := engine.Simulate(t, settings)
		checkResults(t, readers, settingsOf(t, settings), dir)
	})
	t.Run("long chain", func(t *testing.T) { // up to the maximum chain length in the longest tests
		settings := `{"sequences":["` + strings.Repeat("GSWED", enginetest.Length(10, 40, 400)) + `"],"steps":1000,"frame_every":500,"equilibration":0}`
		dir, _ := engine.Simulate(t, settings)
		checkResults(t, readers, settingsOf(t, settings), dir)
	})
	t.Run("resumed", func(t *testing.T) {
		settings := `{"sequences":["` + hst5 + `"],"steps":9000,"replicas":2,"frame_every":300,"equilibration":0,"seed":4}`
		dir := t.TempDir()
		for _, bursts := range []int{5, 9, 8} {
			stop(t, settings, dir, bursts)
		}
		engine.Finish(t, settings, dir)
		checkResults(t, readers, settingsOf(t, settings), dir)
	})
	t.Run("running", func(t *testing.T) { checkRunning(t, readers) })
}

// checkResults compares all frames of finished sequences with memory. An ensemble must
// not have more models than there are frames after equilibration.
func checkResults(t *testing.T, readers []*libraryReader, s *Settings, dir string) {
	t.Helper()
	for k, q := range s.Sequences {
		folder := filepath.Join(dir, q.Name)
		var trajectories [][][][3]float64
		for replica := 1; replica <= s.Replicas; replica++ {
			frames := newMemory(t, s, k, replica).first(t, int(q.Steps/q.FrameEvery))
			trajectories = append(trajectories, frames)
		}
		skipped := int(s.Equilibration*float64(q.Steps)) / int(q.FrameEvery)
		for _, r := range readers {
			r.checkTrajectories(t, q, folder, trajectories)
			r.checkStructures(t, q, folder, trajectories, skipped)
		}
	}
}

func (r *libraryReader) checkTrajectories(t *testing.T, q Sequence, folder string, want [][][][3]float64) {
	t.Helper()
	for k := range want {
		name := run.TrajectoryName(k + 1)
		what := fmt.Sprintf("%s, %s, %s", r.library, q.Name, name)
		got := r.read(t, filepath.Join(folder, "top.pdb"), filepath.Join(folder, name))
		checkChain(t, what, got, q.Residues)
		checkFrames(t, what, got.Frames, want[k])
		if r.readsTimes() {
			checkTimes(t, what, got, float64(q.FrameEvery)*0.01)
		}
	}
}

// readsTimes reports whether the library reads frame times. MDTraj does not; it only
// numbers the frames.
func (r *libraryReader) readsTimes() bool { return r.library == "mdanalysis" }

func (r *libraryReader) checkStructures(t *testing.T, q Sequence, folder string, trajectories [][][][3]float64, skipped int) {
	t.Helper()
	var kept [][][3]float64
	for _, frames := range trajectories {
		kept = append(kept, frames[skipped:]...)
	}
	for name, want := range map[string][][][3]float64{"top.pdb": trajectories[0][:1], "ensemble.pdb": kept} {
		what := fmt.Sprintf("%s, %s, %s", r.library, q.Name, name)
		got := r.read(t, filepath.Join(folder, name), "")
		checkChain(t, what, got, q.Residues)
		checkFrames(t, what, got.Frames, want)
	}
}
