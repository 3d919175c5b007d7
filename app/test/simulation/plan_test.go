package simulation

import (
	"math/rand/v2"
	"time"
)

// plan is derived from a seed. Each step has its own seed, so that steps can be removed
// without changing the others.
type plan struct {
	seed         uint64
	reserveAfter time.Duration // value of the runner's ReserveAfter
	steps        []step
}

type step struct {
	kind *kind
	seed uint64
}

func (s step) rng() *rand.Rand { return rand.New(rand.NewPCG(s.seed, 0)) }

// planOf derives the plan of a seed.
func planOf(seed uint64) plan {
	rng := rand.New(rand.NewPCG(seed, 2))
	p := plan{seed: seed, reserveAfter: []time.Duration{time.Minute, 10 * time.Minute}[rng.IntN(2)]}
	some := someKinds(rng)
	for range 20 + rng.IntN(40) {
		p.steps = append(p.steps, step{some[rng.IntN(len(some))], rng.Uint64()})
	}
	return p
}

// someKinds returns the kinds of steps for one plan, each repeated according to its
// weight. Some kinds are left out, which makes rare ones frequent.
func someKinds(rng *rand.Rand) (all []*kind) {
	well := rng.IntN(3) == 0
	for i := range kinds {
		k := &kinds[i]
		if k.sort != always && rng.IntN(3) == 0 || k.sort == trouble && well {
			continue
		}
		for range k.weight {
			all = append(all, k)
		}
	}
	return all
}

// without returns the plan without some of its steps.
func (p plan) without(from, to int) plan {
	p.steps = append(append([]step{}, p.steps[:from]...), p.steps[to:]...)
	return p
}

// shrink removes steps as long as the plan still fails. It runs at most tries plans.
func shrink(p plan, tries int, fails func(plan) bool) plan {
	for size := len(p.steps) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(p.steps); {
			if tries--; tries < 0 {
				return p
			}
			if shorter := p.without(from, from+size); fails(shorter) {
				p = shorter
			} else {
				from += size
			}
		}
	}
	return p
}
