package placement

import "testing"

func TestOnlyThePlacementWithoutAnyFieldIsEmpty(t *testing.T) {
	t.Parallel()
	if !(Placement{}).Empty() {
		t.Error("the zero placement is not empty")
	}
	for _, p := range []Placement{{Partition: "p"}, {Account: "a"}, {QOS: "q"}, {Constraint: "c"}, {Options: []string{"--exclusive"}}} {
		if p.Empty() {
			t.Errorf("%+v is empty", p)
		}
	}
}
