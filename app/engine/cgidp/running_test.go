package cgidp

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/engine/md"
	"molrun/app/engine/run"
	"molrun/app/engine/trajectory"
	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// checkRunning reads the files of another process while it runs, killing and resuming it
// in between, and compares the files with memory.
func checkRunning(t *testing.T, readers []*libraryReader) {
	t.Helper()
	// The whole run would take a minute or more, but the process is killed after enough
	// reads.
	settings := `{"sequences":["` + hst5 + `"],"names":["Hst5"],"steps":2e7,"frame_every":5000,"equilibration":0,"seed":5}`
	dir := t.TempDir()
	folder := filepath.Join(dir, "Hst5")
	m := newMemory(t, settingsOf(t, settings), 0, 1)
	reached := 0 // largest number of frames so far
	for _, sign := range []string{"molrun:progress", "resumes from"} {
		kill := startProcess(t, dir, settings, sign)
		must.Become(t, "ensemble.pdb is there", func() bool {
			_, err := os.Stat(filepath.Join(folder, "ensemble.pdb"))
			return err == nil
		})
		all := readOften(t, readers, folder)
		kill()
		// Models are saved before the checkpoint, so a resumed run can have models of
		// frames that it has yet to recompute.
		info, err := os.Stat(filepath.Join(folder, run.TrajectoryName(1)))
		must.OK(t, err)
		reached = max(reached, int(info.Size()-trajectory.HeaderSize)/trajectory.FrameSize(len(hst5), md.Vec{}))
		before := 0
		for k, found := range all {
			found.check(t, fmt.Sprintf("%s, reading %d", sign, k), m, reached)
			if n := found.frames(); n < before {
				t.Errorf("%s, reading %d: %d frames after %d", sign, k, n, before)
			} else {
				before = n
			}
		}
		t.Logf("%s: %d readings, of %d to %d frames", sign, len(all), all[0].frames(), before)
		if before == all[0].frames() {
			t.Errorf("%s: the files did not grow while they were read", sign)
		}
	}
}

// readOften reads several times, and goes on until the number of frames has grown, but
// reads at most 100 times.
func readOften(t *testing.T, readers []*libraryReader, folder string) []readInPassing {
	t.Helper()
	var all []readInPassing
	for k := range 100 {
		for _, r := range readers {
			all = append(all, r.readRunning(t, folder))
		}
		grown := all[len(all)-1].frames() > all[0].frames()
		if k+1 >= enginetest.Length(3, 5, 10) && grown {
			break
		}
	}
	return all
}

// readInPassing is the data that a library read from a running simulation.
type readInPassing struct{ trajectory, top, ensemble inLibrary }

func (r *libraryReader) readRunning(t *testing.T, folder string) readInPassing {
	t.Helper()
	top := filepath.Join(folder, "top.pdb")
	return readInPassing{
		trajectory: r.read(t, top, filepath.Join(folder, "traj.dcd")),
		top:        r.read(t, top, ""),
		ensemble:   r.read(t, oneVersion(t, filepath.Join(folder, "ensemble.pdb")), ""),
	}
}

func (found *readInPassing) frames() int { return len(found.trajectory.Frames) }

func (found *readInPassing) check(t *testing.T, what string, m *memory, reached int) {
	t.Helper()
	want := m.first(t, found.frames())
	checkChain(t, what, found.trajectory, hst5)
	checkFrames(t, what+": traj.dcd", found.trajectory.Frames, want)
	checkFrames(t, what+": top.pdb", found.top.Frames, want[:1])
	checkAmong(t, what+": ensemble.pdb", found.ensemble.Frames, m.first(t, reached))
	if n := len(found.ensemble.Frames); n == 0 || n > maxModels {
		t.Errorf("%s: %d models in ensemble.pdb", what, n)
	}
}

// oneVersion returns a hard link to a file that might be replaced, because some libraries
// open a file twice and expect the same content.
func oneVersion(t *testing.T, path string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), filepath.Base(path))
	must.OK(t, os.Link(path, link))
	return link
}

// startProcess starts a run and returns once a line of its log contains sign. The
// returned function kills it and fails the test if the process has already exited.
func startProcess(t *testing.T, dir, settings, sign string) (kill func()) {
	t.Helper()
	c := engine.Process(t.Context(), settings, dir)
	out, err := c.StdoutPipe()
	must.OK(t, err)
	must.OK(t, c.Start())
	lines := bufio.NewScanner(out)
	seen := false
	for !seen && lines.Scan() {
		seen = strings.Contains(lines.Text(), sign)
	}
	if !seen {
		t.Fatalf("the process ended without %q in its log: %v", sign, c.Wait())
	}
	return func() {
		c.Process.Kill()         //nolint:errcheck // Wait tells
		io.Copy(io.Discard, out) //nolint:errcheck // Wait needs the pipe drained
		if c.Wait() == nil {
			t.Error("the process ended before it was killed")
		}
	}
}
