package md

import (
	"math/rand/v2"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// TestScrambleIsThatOfSplitMix64 checks the generator's first outputs for seed 0, so that
// equal seeds give equal runs in all versions.
func TestScrambleIsThatOfSplitMix64(t *testing.T) {
	const step = 0x9e3779b97f4a7c15
	var state uint64
	for n, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if state += step; scramble(state) != want {
			t.Errorf("output %d is %#x, want %#x", n, scramble(state), want)
		}
	}
}

func TestRandomNumbersAreThoseOfTheStandardLibrary(t *testing.T) {
	draws := 3_000_000 // about 10,000 from the tail
	if enginetest.RaceDetector {
		draws = 300_000
	}
	const seed, stream = 5, 77
	s, pcg := &Random{seed, stream}, rand.NewPCG(seed, stream)
	for range 1000 {
		if got, want := s.Uint64(), pcg.Uint64(); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	}
	want := rand.New(pcg)
	numbers := make([]float64, 300)
	for range draws / len(numbers) {
		s.normals(numbers)
		for _, n := range numbers {
			if w := want.NormFloat64(); n != w {
				t.Fatalf("%g, want %g", n, w)
			}
		}
	}
}

func TestRandomNumbersOfReplicasDiffer(t *testing.T) {
	const sequences, replicas = 64, 64
	seen := map[uint64]bool{}
	for sequence := range sequences {
		for replica := 1; replica <= replicas; replica++ {
			seen[NewRandom(1, sequence, replica).Uint64()] = true
		}
	}
	must.Equal(t, "sources", len(seen), sequences*replicas)
}
