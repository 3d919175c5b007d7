package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/test/must"
)

// TestJobsGetCPUsOfTheirOwn leases CPUs of cores with two threads each.
func TestJobsGetCPUsOfTheirOwn(t *testing.T) {
	s := newSlots(app.Capacity{CPUs: 8, Cores: [][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}}}, true)
	var leased []placement.Devices
	for _, c := range []struct {
		cpus int
		want []int
	}{
		{2, []int{0, 4}},    // a whole core
		{1, []int{1}},       // an idle core rather than CPU 5
		{1, []int{2}},       // another idle core
		{3, []int{3, 5, 7}}, // a whole core first
		{0, nil},
		{1, []int{6}},
		{1, nil}, // no free CPU
	} {
		got := s.lease(placement.Resources{CPUs: c.cpus})
		must.Equal(t, fmt.Sprintf("%d CPUs", c.cpus), got.CPUs, c.want)
		leased = append(leased, got)
	}
	s.release(placement.Resources{CPUs: 1}, leased[2])
	if got := s.lease(placement.Resources{CPUs: 1}); !slices.Equal(got.CPUs, []int{2}) {
		t.Errorf("after a release: %v", got.CPUs)
	}
	other := s.clone()
	other.release(placement.Resources{CPUs: 2}, leased[0])
	if got := s.lease(placement.Resources{CPUs: 2}); got.CPUs != nil {
		t.Errorf("a copy has released %v", got.CPUs)
	}
}

// TestUnpinnedExecutors checks that no CPUs are leased without known cores.
func TestUnpinnedExecutors(t *testing.T) {
	for _, bounded := range []bool{true, false} {
		s := newSlots(app.Capacity{CPUs: 4}, bounded)
		if got := s.lease(placement.Resources{CPUs: 2}); got.CPUs != nil {
			t.Errorf("bounded %v: %v", bounded, got.CPUs)
		}
	}
}

// TestNoCPUIsLeasedTwiceWhileOthersIdle leases and releases at random.
func TestNoCPUIsLeasedTwiceWhileOthersIdle(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var cores [][]int
		for i := range 1 + rng.IntN(8) {
			cores = append(cores, []int{2 * i, 2*i + 1}[:1+rng.IntN(2)])
		}
		total := len(slices.Concat(cores...))
		s := newSlots(app.Capacity{CPUs: total, Cores: cores}, true)
		var held []placement.Devices
		for range 60 {
			if n := 1 + rng.IntN(3); rng.IntN(2) == 0 && n <= total-len(used(held)) {
				held = append(held, s.lease(placement.Resources{CPUs: n}))
				if got := held[len(held)-1].CPUs; len(got) != n {
					t.Fatalf("seed %d: %d CPUs: %v", seed, n, got)
				}
			} else if len(held) > 0 {
				i := rng.IntN(len(held))
				s.release(placement.Resources{CPUs: len(held[i].CPUs)}, held[i])
				held = slices.Delete(held, i, i+1)
			}
			if all := used(held); len(slices.Compact(slices.Clone(all))) != len(all) {
				t.Fatalf("seed %d: %v", seed, fmt.Sprint(held))
			}
		}
	}
}

func used(held []placement.Devices) (cpus []int) {
	for _, d := range held {
		cpus = append(cpus, d.CPUs...)
	}
	slices.Sort(cpus)
	return cpus
}
