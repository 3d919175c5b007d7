package task

import (
	"os"
	"path/filepath"
	"testing"

	"molrun/app/task/container"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

func TestIsolationRoundTripsThroughTheCommandLine(t *testing.T) {
	i := Isolation{Bubblewrap: "/usr/bin/bwrap", Cgroup: "/sys/fs/cgroup", Processes: 3, Sandbox: protocol.Sandbox{Read: []string{"/opt/a b"}, Network: true}}
	got, err := ParseIsolation(i.String())
	must.OK(t, err)
	must.Equal(t, "isolation", got, i)
	if none, err := ParseIsolation(""); none.Kind() != "none" || err != nil {
		t.Errorf("from an empty text: %+v, %v", none, err)
	}
	if _, err := ParseIsolation("{"); err == nil {
		t.Error("a truncated isolation is accepted")
	}
}

func TestProgramsThatNeedASandboxDoNotRunWithout(t *testing.T) {
	needs := protocol.Sandbox{Required: true}
	if _, err := (Isolation{Sandbox: needs}).resolve(t.Context()); err == nil {
		t.Error("programs run without a sandbox")
	}
	t.Setenv("PATH", t.TempDir()) // without bwrap
	if _, err := (Isolation{Find: FindAuto, Sandbox: needs}).resolve(t.Context()); err == nil {
		t.Error("programs run on a node without sandboxes")
	}
	if _, err := (Isolation{Sandbox: protocol.Sandbox{Required: true, Image: "fold:1"}}).resolve(t.Context()); err == nil {
		t.Error("programs of an image run without a runtime")
	}
	for _, fine := range []Isolation{{}, {Find: FindAuto}, {Bubblewrap: "/usr/bin/bwrap", Sandbox: needs}} {
		if _, err := fine.resolve(t.Context()); err != nil {
			t.Errorf("%+v: %v", fine, err)
		}
	}
}

// TestContainersAreSandboxes needs no bubblewrap, and fakes runtimes that are never
// started.
func TestContainersAreSandboxes(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, tt := range []struct{ kind, image, runtime string }{
		{"docker", "fold:1", "auto"},
		{"podman", "fold:1", "auto"},
		{"docker", "fold:1", "docker"},
		{"apptainer", "/opt/fold.sif", "auto"},
	} {
		must.OK(t, os.WriteFile(filepath.Join(dir, tt.kind), []byte("#!/bin/false\n"), 0o755))
		i := Isolation{Find: FindAuto, Sandbox: protocol.Sandbox{Required: true, Image: tt.image}, Containers: container.Options{Runtime: tt.runtime}}
		if got, err := i.resolve(t.Context()); err != nil || string(got.Runtime.Kind) != tt.kind || got.Kind() != tt.kind {
			t.Errorf("%+v: %+v, %v", tt, got, err)
		}
		i.Containers.Runtime = container.Off
		if _, err := i.resolve(t.Context()); err == nil {
			t.Errorf("%+v: programs run although containers are off", tt)
		}
	}
}
