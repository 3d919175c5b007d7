package app

import (
	"testing"

	"molrun/app/base/fault"
	"molrun/app/test/must"
)

func TestExpansionsMayTake192MiBAtOnce(t *testing.T) {
	f := &ownFiles{plan: &plan{core: &core{}}}
	must.OK(t, f.Reserve(192<<20))
	must.Equal(t, "a byte more", fault.CodeOf(f.Reserve(1)), fault.Unavailable)
}
