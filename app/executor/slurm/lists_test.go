package slurm

import (
	"os"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

// TestListsOfArraysAreReadOnce removes a list after it was read.
func TestListsOfArraysAreReadOnce(t *testing.T) {
	dir := t.TempDir()
	before := &lists{dir: dir, prefix: "molrun"}
	name := before.newArray()
	written, err := before.writeList(name, "", []app.Task{{Token: "a", Dir: "/a"}, {Token: "b", Dir: "/b"}})
	must.OK(t, err)
	l := &lists{dir: dir, prefix: "molrun"}
	for range 2 {
		if row, ok, err := l.findToken("b"); err != nil || !ok || row != written[1] {
			t.Errorf("found %+v, %v, want %+v (%v)", row, ok, written[1], err)
		}
		must.OK(t, os.RemoveAll(dir))
	}
}

// TestRefusedArrayIsTriedInHalves uses a cluster whose settings can't be read.
func TestRefusedArrayIsTriedInHalves(t *testing.T) {
	c, _ := deaf(t)
	s := &submitter{client: c}
	const many = 1 << 20
	if got := s.smaller(t.Context(), many, &sizeError{}); got != many/2 {
		t.Errorf("%d tasks are tried, want half of %d", got, many)
	}
	if got, most := s.smaller(t.Context(), many, &sizeError{long: true}), c.ArraySize(t.Context()); got != most {
		t.Errorf("%d tasks are tried, want the %d of the longest array", got, most)
	}
}
