package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app/executor/slurm/cluster"
)

// The cluster, the service and what is between them fail in turn, under load.
// Every job that was acknowledged comes to its one end, and no two of its
// attempts run at once.
func TestFaultsOfTheCluster(t *testing.T) {
	oneCluster(t)
	c := cluster.New(t, cluster.Knobs{Nodes: 3, CPUs: 16, MemoryMiB: 8000, MinJobAge: 10})
	s := newSite(t, c, "poll = \"500ms\"\nlost_after = \"10s\"\n")
	s.start()
	g := &campaign{site: s, ledger: newLedger(), random: rand.New(rand.NewPCG(*seed, 7)), faults: map[string]int{}, read: map[string]bool{}}
	begin := time.Now()
	for g.round = range *rounds {
		g.run()
		if t.Failed() {
			t.Fatalf("in round %d of seed %d:\n%s", g.round+1, *seed, s.log.tail())
		}
	}
	s.stop()
	s.check("--deep")
	t.Logf("%v, seed %d, %v", g, *seed, time.Since(begin).Round(time.Second))
}

var clusters sync.Mutex

// oneCluster lets a test run beside others, but not beside one that has a cluster,
// too: together they would be slow to start.
func oneCluster(t *testing.T) {
	t.Parallel()
	clusters.Lock()
	t.Cleanup(clusters.Unlock)
}

// campaign is rounds of faults, and what came of them.
type campaign struct {
	*site
	ledger *ledger
	random *rand.Rand
	round  int
	next   []strike        // that were not chosen yet since all were
	read   map[string]bool // jobs whose result was compared

	faults  map[string]int // by name
	missed  int            // that had no occasion
	verdict verdict
	tally
}

// tally is what all jobs together have been through.
type tally struct {
	jobs, completed, failed, stopped int
	attempts, resumed, repeated      int // repeated: attempts lost after their program had ended
	longest                          time.Duration
}

func (g *campaign) String() string {
	var kinds []string
	for _, name := range slices.Sorted(maps.Keys(g.faults)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", g.faults[name], name))
	}
	return fmt.Sprintf("%d rounds: %s; %d without occasion\nacknowledged %d, %v; %d jobs: %d completed, %d failed as they had to, %d stopped; "+
		"%d attempts, %d of them resumed, %d repeated after their end; longest time to an end %v",
		g.round+1, strings.Join(kinds, ", "), g.missed, g.ledger.acknowledged(), &g.verdict,
		g.jobs, g.completed, g.failed, g.stopped, g.attempts, g.resumed, g.repeated, g.longest.Round(time.Second))
}

// run is one round: one or two faults under load, then a look at what is left.
func (g *campaign) run() {
	g.t.Helper()
	begin := time.Now()
	all := g.choose()
	for _, k := range all {
		if k.when != "" {
			g.order(k.when, k.line(g.site, g.random))
		}
	}
	o := load{
		life: fmt.Sprintf("r%d", g.round), clients: 4, jobs: 6, seed: g.random.Uint64(),
		kind: anyShift, rows: 8, pause: 250 * time.Millisecond,
	}
	g.loadUntil(g.ledger, o, 10+g.random.IntN(20), 0, func() {
		for _, k := range all {
			g.hit(k)
		}
	})
	if g.site.ended() {
		if !slices.ContainsFunc(all, func(k strike) bool { return k.ends }) {
			g.t.Errorf("the service ended with %v", g.process.ProcessState)
		}
		g.start()
	}
	g.cluster.Up(g.t)
	g.settle(&g.verdict)
	g.verdict.report(g.t)
	g.t.Logf("round %d, %v: %s", g.round+1, time.Since(begin).Round(time.Second), names(all))
}

// choose takes the kinds in turn, each turn in another order; every third round
// meets two, of which not both wait for the same moment.
func (g *campaign) choose() []strike {
	if len(g.next) < 2 {
		more := slices.DeleteFunc(slices.Clone(strikes), func(k strike) bool {
			return !strings.Contains(k.name, *only) || k.long && *only == "" && *rounds < len(strikes)
		})
		if len(more) == 0 {
			g.t.Fatalf("no kind of fault has %q in its name", *only)
		}
		g.random.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
		g.next = append(g.next, more...)
	}
	n := 1
	if len(g.next) > 1 && g.random.IntN(3) == 0 && (g.next[0].when == "" || g.next[0].when != g.next[1].when) {
		n = 2
	}
	all := g.next[:n]
	g.next = g.next[n:]
	return all
}

func (g *campaign) hit(k strike) {
	if k.hit(g) {
		g.faults[k.name]++
	} else {
		g.missed++
	}
}

func names(all []strike) string {
	var words []string
	for _, k := range all {
		words = append(words, k.name)
	}
	return strings.Join(words, ", ")
}

// settle waits until all jobs are finished and compares everything with
// everything: the ledger with the records, the records with what the programs
// noted and with their results, all of them with what is left on the cluster.
func (g *campaign) settle(v *verdict) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), settled)
	defer cancel()
	c := g.client()
	defer c.Close()
	v.stuck = unfinished(ctx, g.t, c)
	if len(v.stuck) > 0 {
		return
	}
	g.verify(g.ledger, v, false)
	g.tally = tally{}
	g.inspect(c, v)
	g.lookAround(v)
	g.check("--deep")
}

// settled bounds the time from the last fault to the last job's end. A node
// that is gone is noticed after half a minute, files that it may have left are
// awaited for a minute, and the next attempt may meet the same.
const settled = 5 * time.Minute
