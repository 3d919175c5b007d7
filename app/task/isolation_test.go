package task

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"molrun/app/protocol"
)

func TestIsolationRoundTripsThroughTheCommandLine(t *testing.T) {
	i := Isolation{Bubblewrap: "/usr/bin/bwrap", Cgroup: "/sys/fs/cgroup", Processes: 3, Sandbox: protocol.Sandbox{Read: []string{"/opt/a b"}, Network: true}}
	got, err := ParseIsolation(i.String())
	if diff := cmp.Diff(i, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if none, err := ParseIsolation(""); none.Kind() != "none" || err != nil {
		t.Errorf("from an empty text: %+v, %v", none, err)
	}
	if _, err := ParseIsolation("{"); err == nil {
		t.Error("a truncated isolation is accepted")
	}
}
