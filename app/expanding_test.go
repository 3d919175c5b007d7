package app

import (
	"testing"

	"molrun/app/base/fault"
)

func TestExpansionsMayTake192MiBAtOnce(t *testing.T) {
	f := &ownFiles{plan: &plan{core: &core{}}}
	if err := f.Reserve(192 << 20); err != nil {
		t.Errorf("192 MiB: %v", err)
	}
	if err := f.Reserve(1); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a byte more: %v", err)
	}
}
