package md

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

func TestExp(t *testing.T) {
	for x := -745.0; x < 709; x += 0.0917 {
		if got, want := Exp(x), math.Exp(x); math.Abs(got-want) > 4.5e-16*want && want > 1e-300 {
			t.Errorf("exp %g is %g, want %g", x, got, want)
		}
	}
	for x, want := range map[float64]float64{0: 1, -800: 0, 800: math.Inf(1), math.Inf(1): math.Inf(1), math.Inf(-1): 0} {
		must.Equal(t, fmt.Sprintf("exp %g", x), Exp(x), want)
	}
	if !math.IsNaN(Exp(math.NaN())) {
		t.Error("exp of NaN is a number")
	}
	enginetest.Near(t, "a power", power(2, 0.5), math.Sqrt2, 1e-15)
}

const printMotion = "MD_TEST_PRINT_MOTION"

// motionSum returns a checksum that depends on every bit of Exp over a range and of a
// short trajectory of a charged chain.
func motionSum(t *testing.T) string {
	t.Helper()
	sum := fnv.New64a()
	add := func(v float64) { _ = binary.Write(sum, binary.LittleEndian, v) } // writing to a hash cannot fail
	for x := -4.0; x < 4; x += 0.001 {
		add(Exp(x))
	}
	d := NewDynamics(NewModel("DSHAKRHHGYKRKFHEKHHSHRGY", Conditions{Temperature: 293, PH: 6.3, IonicStrength: 0.15, Friction: 0.01, ChargedTermini: true}), NewRandom(1, 0, 1))
	must.OK(t, d.Start())
	must.OK(t, d.Advance(3000))
	for _, v := range d.Positions() {
		add(v.X)
		add(v.Y)
		add(v.Z)
	}
	return fmt.Sprintf("motion %x", sum.Sum64())
}

// Processors with and without fused multiply-add, and with different sets of vector
// instructions, compute the same bits.
func TestProcessorsGiveTheSameBits(t *testing.T) {
	if os.Getenv(printMotion) != "" {
		fmt.Println(motionSum(t))
		return
	}
	want := motionSum(t)
	for _, without := range []string{"cpu.fma=off", "cpu.avx=off", "cpu.avx2=off", "cpu.avx512f=off", "cpu.all=off"} {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcessorsGiveTheSameBits$")
		c.Env = append(os.Environ(), printMotion+"=1", "GODEBUG="+without)
		out, err := c.Output()
		must.OK(t, err)
		if !strings.Contains(string(out), want) {
			t.Errorf("with %s: %s, without: %s", without, out, want)
		}
	}
}
