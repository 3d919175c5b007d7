package process

import (
	"os/exec"
	"testing"

	"molrun/app/test/must"
)

func TestOutputIsBounded(t *testing.T) {
	var o Output
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", "head -c 3000000 /dev/zero")
	c.Stdout = &o
	must.OK(t, c.Run())
	must.Equal(t, "bytes that are kept", len(o.Bytes()), maxOutput)
}
