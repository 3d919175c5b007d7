package schedule

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/job/eta"
	"molrun/app/job/quota"
)

// limitedTo gives every user and the organization a quota.
func (b *board) limitedTo(user, organization quota.Quota) *board {
	b.turns.ShareLimits(NewLimits(func(_, email string) quota.Quota {
		if email == "" {
			return organization
		}
		return user
	}))
	return b
}

func TestUserRunsNoMoreThanTheLimit(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 16, GPUs: []string{"0", "1"}}).limitedTo(quota.Quota{CPUs: 4, GPUs: 1}, quota.Quota{CPUs: 6})
	for i := range 5 {
		b.add("ann", fmt.Sprintf("a%d", i), cpus(2))
	}
	d := b.deep("a0", "a1")
	want := eta.Reason{Text: `waiting: the limit of user "ann" is 4 CPUs at a time (4 in use)`, By: eta.UserLimit}
	for _, id := range []app.JobID{"a2", "a3", "a4"} {
		if got := d.Reasons[id]; got != want {
			t.Errorf("%s: %+v, want %+v", id, got, want)
		}
	}
	b.add("bob", "b0", cpus(2))
	b.add("bob", "b1", cpus(2))
	d = b.deep("b0")
	if got := d.Reasons["b1"]; got.By != eta.UserLimit || got.Text != `waiting: the limit of organization "lab" is 6 CPUs at a time (6 in use)` {
		t.Errorf("the organization's limit: %+v", got)
	}
	b.end("a0")
	b.deep("a2") // both run one job; ann started one less recently
	b.end("a1", "b0", "a2")
	b.shallow("b1", "a3", "a4")
	b.end("b1", "a3", "a4")
	b.queue = nil
	b.add("cy", "g0", placement.Resources{CPUs: 1, GPUs: 1})
	b.add("cy", "g1", placement.Resources{CPUs: 1, GPUs: 1})
	b.add("cy", "c0", cpus(1))
	d = b.deep("c0", "g0")
	if got := d.Reasons["g1"]; got.Text != `waiting: the limit of user "cy" is 1 GPU at a time (1 in use)` {
		t.Errorf("the limit of GPUs: %+v", got)
	}
}

// TestExecutorsShareLimits uses an executor without limits of its own, such as a cluster.
func TestExecutorsShareLimits(t *testing.T) {
	here, cluster := newBoard(t, app.Capacity{CPUs: 16}), newBoard(t, app.Capacity{})
	cluster.turns = NewFairShare(app.Capacity{}, false, time.Minute)
	here.limitedTo(quota.Quota{CPUs: 3}, quota.Quota{})
	cluster.turns.ShareLimits(here.turns.limits)
	here.add("ann", "h0", cpus(2))
	here.deep("h0")
	cluster.add("ann", "c0", cpus(2))
	cluster.add("ann", "c1", cpus(1))
	cluster.add("bob", "c2", cpus(3))
	cluster.deep("c1", "c2")
	here.end("h0")
	cluster.shallow("c0")
	here.add("ann", "h1", cpus(1))
	here.deep()
	cluster.turns.CountRunning(Lease{User: User{"lab", "cy"}, Needs: cpus(5)}) // after a restart with lower limits
	here.add("cy", "h2", cpus(1))
	here.deep()
}

func TestJobBeyondALoweredLimitWaitsAndHoldsUpNobody(t *testing.T) {
	b := newBoard(t, app.Capacity{CPUs: 16}).limitedTo(quota.Quota{CPUs: 2}, quota.Quota{})
	b.add("ann", "large", cpus(4))
	b.add("ann", "small", cpus(1))
	d := b.deep("small")
	if got := d.Reasons["large"]; got.By != eta.UserLimit || !strings.Contains(got.Text, `needs 4 CPUs, but the limit of user "ann" is 2 CPUs`) {
		t.Errorf("%+v", got)
	}
	b.now = b.now.Add(time.Hour)
	b.add("ann", "next", cpus(1))
	b.deep("next")
	if len(d.Impossible) > 0 {
		t.Errorf("rejected: %+v", d.Impossible)
	}
}

// After a while, the rest of a limit is kept for the job that has waited longest.
func TestSmallJobsDoNotPassALargeOneForEver(t *testing.T) {
	for name, limit := range map[string][2]quota.Quota{"of the user": {{CPUs: 4}, {}}, "of the organization": {{}, {CPUs: 4}}} {
		b := newBoard(t, app.Capacity{CPUs: 16}).limitedTo(limit[0], limit[1])
		b.add("ann", "a0", cpus(1))
		b.deep("a0")
		b.add("ann", "large", cpus(4))
		b.deep()
		b.add("ann", "a1", cpus(1))
		b.deep("a1") // overtakes the large job
		b.now = b.now.Add(11 * time.Minute)
		b.add("ann", "a2", cpus(1))
		d := b.deep()
		if got := d.Reasons["a2"]; !strings.HasSuffix(got.Text, "; the rest is reserved for a job that has waited longer") {
			t.Errorf("%s: %+v", name, got)
		}
		b.end("a0", "a1")
		b.deep("large")
		b.end("large")
		b.deep("a2")
	}
}

// TestLimitsHoldAndNobodyStarves runs random queues with random limits until they are
// empty.
func TestLimitsHoldAndNobodyStarves(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 15))
		quotas := map[string]quota.Quota{}
		for _, who := range []string{"", "ann", "bob", "cy"} {
			quotas[who] = quota.Quota{CPUs: r.IntN(3) * (2 + r.IntN(5)), GPUs: r.IntN(2) * (1 + r.IntN(2))}
		}
		b := newBoard(t, app.Capacity{CPUs: 8, GPUs: []string{"0", "1"}})
		b.turns.ShareLimits(NewLimits(func(_, email string) quota.Quota { return quotas[email] }))
		id := 0
		add := func() {
			who := []string{"ann", "bob", "cy"}[r.IntN(3)]
			needs := placement.Resources{CPUs: 1 + r.IntN(8), GPUs: max(0, r.IntN(5)-2)}
			if quota.Of(b.turns.limits.of).Beyond("lab", who, needs) == "" {
				id++
				b.addUrgent(who, fmt.Sprintf("%04d", id), 0, needs)
			}
		}
		for range 20 {
			add()
		}
		oldest, since := app.JobID(""), 0
		for round := 0; len(b.queue)+len(b.runs) > 0; round++ {
			b.play(r.IntN(3) > 0)
			used := map[string]placement.Resources{}
			for _, l := range b.runs {
				used[""], used[l.User.Email] = plus(used[""], l.Needs), plus(used[l.User.Email], l.Needs)
			}
			for who, u := range used {
				if q := quotas[who]; q.CPUs > 0 && u.CPUs > q.CPUs || q.GPUs > 0 && u.GPUs > q.GPUs {
					t.Fatalf("seed %d: %q has %+v of %+v", seed, who, u, q)
				}
			}
			if len(b.queue) > 0 && b.queue[0].ID != oldest {
				oldest, since = b.queue[0].ID, round
			}
			if len(b.queue) > 0 && round-since > 120 {
				t.Fatalf("seed %d: %s of %s starves with %+v, quotas %+v; limited %v", seed, oldest, b.queue[0].Email, b.queue[0].Needs, quotas, b.turns.limited)
			}
			b.now = b.now.Add(time.Minute)
			for _, job := range slices.Sorted(maps.Keys(b.runs)) { // sorted, so that the seed determines everything
				if r.IntN(3) == 0 {
					b.end(string(job))
				}
			}
			if round < 240 {
				add()
			}
		}
		if len(b.turns.limits.used) > 0 {
			t.Fatalf("seed %d: %+v in use by nobody", seed, b.turns.limits.used)
		}
	}
}
