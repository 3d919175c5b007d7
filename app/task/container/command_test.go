package container

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

var update = flag.Bool("update", false, "write the golden files")

var plain = Box{
	Name: "molrun-x", Image: "0d9a", Dir: "/data/jobs/01J/1", Job: "01J", Attempt: 1,
	Program: "/usr/bin/molrun", Socket: "/data/jobs/01J/1/.box-1/socket", Work: "/data/jobs/01J/1/work", Temp: "/data/jobs/01J/1/work/.tmp-1",
	ReadOnly: []string{"/data/jobs/01J/1/work/in"}, UID: 998, GID: 997,
	OpenFiles: Limit{1024, 4096}, Processes: Limit{32768, 32768}, MostProcesses: 4096, MemoryBytes: 1 << 30, SharedMemoryBytes: 1 << 30,
	Environment: []string{"MOLRUN_TASK"},
}

// TestCommandLines compares command lines with testdata/KIND-BOX.txt, which has one
// argument per line. Those of Docker and Apptainer have only been checked against the
// manuals.
func TestCommandLines(t *testing.T) {
	generous := plain
	generous.Network, generous.GPUs, generous.Read = true, []string{"GPU-1", "GPU-2"}, []string{"/data/weights"}
	generous.CPUs = []int{0, 4}
	generous.Wide, generous.Covers = []string{"/shared"}, []Cover{{"/data/jobs/01J/1/.box-1/cover-0", "/shared/data"}}
	root := plain
	root.UID, root.GID, root.MemoryBytes, root.MostProcesses, root.SharedMemoryBytes = 0, 0, 0, 0, 0
	for name, box := range map[string]Box{"plain": plain, "generous": generous, "root": root} {
		for _, kind := range []Kind{Podman, Docker, Apptainer} {
			t.Run(string(kind)+"-"+name, func(t *testing.T) {
				got := strings.Join(kind.RunArguments(box), "\n") + "\n"
				golden := filepath.Join("testdata", string(kind)+"-"+name+".txt")
				if *update {
					must.OK(t, os.WriteFile(golden, []byte(got), 0o600))
				}
				want, err := os.ReadFile(golden)
				must.OK(t, err)
				must.Equal(t, "command", got, string(want))
			})
		}
	}
}

func TestGPUsInside(t *testing.T) {
	for _, tt := range []struct {
		kind Kind
		gpus []string
		want string
	}{
		{Podman, []string{"2", "3"}, "0,1"},
		{Docker, []string{"1"}, "0"},
		{Podman, []string{"GPU-2"}, ""},
		{Apptainer, []string{"2"}, ""},
		{Podman, nil, ""},
	} {
		must.Equal(t, fmt.Sprintf("%s %q", tt.kind, tt.gpus), tt.kind.VisibleGPUs(tt.gpus), tt.want)
	}
}

func TestPathsThatCannotBeBound(t *testing.T) {
	for _, path := range []string{"/a,b", "/a\"b", "/a\nb"} {
		b := plain
		b.Read = []string{path}
		if err := b.Check(); err == nil {
			t.Errorf("%q is accepted", path)
		}
		b = plain
		b.Covers = []Cover{{"/empty", path}}
		if err := b.Check(); err == nil {
			t.Errorf("%q is covered", path)
		}
	}
	must.OK(t, plain.Check())
}
