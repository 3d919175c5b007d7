package cgidp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// trajectoryLibraries lists the libraries that must be able to read the files.
var trajectoryLibraries = []struct{ name, module string }{
	{"mdtraj", "mdtraj"},
	{"mdanalysis", "MDAnalysis"},
}

// libraryReader is a Python process that reads files with one library.
type libraryReader struct {
	library  string
	requests io.Writer
	answers  *json.Decoder
}

// inLibrary is the data that a library read from files.
type inLibrary struct {
	Error    string
	Residues []string
	Bonds    [][2]int
	Frames   [][][3]float64 // Å
	Times    []float64      // ps, if the library reads times
	Spacing  float64        // ps between frames
}

// libraryReaders starts a reader for each installed library. It skips the test if none is
// installed.
func libraryReaders(t *testing.T) []*libraryReader {
	t.Helper()
	var all []*libraryReader
	for _, library := range trajectoryLibraries {
		python := pythonWith(t, library.module)
		switch {
		case python != "":
			all = append(all, startReader(t, python, library.name))
		case enginetest.Physics():
			t.Fatalf("no Python here has %s, which .ci/physics installs", library.module)
		}
	}
	if len(all) == 0 {
		must.Skip(t, "no Python here has mdtraj or MDAnalysis, which would read trajectories")
	}
	return all
}

// pythonWith returns a Python interpreter that has the module: either the one in PATH or
// the distribution's.
func pythonWith(t *testing.T, module string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const find = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, python, "-c", find, module).Run() == nil {
			return python
		}
	}
	return ""
}

func startReader(t *testing.T, python, library string) *libraryReader {
	t.Helper()
	// The process is stopped in a cleanup, which runs after t.Context() is canceled.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	c := exec.CommandContext(ctx, python, filepath.Join("testdata", "read_trajectory.py"), library)
	var complaints bytes.Buffer
	c.Stderr = &complaints
	requests, err := c.StdinPipe()
	must.OK(t, err)
	answers, err := c.StdoutPipe()
	must.OK(t, err)
	must.OK(t, c.Start())
	t.Cleanup(func() {
		requests.Close()
		io.Copy(io.Discard, answers) //nolint:errcheck // a failed test may leave answers unread
		if err := c.Wait(); err != nil {
			t.Errorf("%s: %v: %s", library, err, complaints.String())
		}
		cancel()
	})
	return &libraryReader{library, requests, json.NewDecoder(answers)}
}

// read returns the frames of a trajectory, or of the topology if there is no trajectory.
func (r *libraryReader) read(t *testing.T, topology, trajectory string) inLibrary {
	t.Helper()
	request := map[string]string{"topology": topology}
	if trajectory != "" {
		request["trajectory"] = trajectory
	}
	line, err := json.Marshal(request)
	must.OK(t, err)
	if _, err := r.requests.Write(append(line, '\n')); err != nil {
		t.Fatalf("%s: %v", r.library, err)
	}
	var found inLibrary
	if err := r.answers.Decode(&found); err != nil {
		t.Fatalf("%s: %v", r.library, err)
	}
	if found.Error != "" {
		t.Fatalf("%s cannot read %s %s: %s", r.library, topology, trajectory, found.Error)
	}
	return found
}
