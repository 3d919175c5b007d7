package faults

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app/test/cluster"
	"molrun/app/test/must"
)

// The cluster, the service and the commands between them fail in turn, under load. Every
// acknowledged job must finish exactly once, and its attempts must not overlap.
func TestFaultsOfTheCluster(t *testing.T) {
	oneCluster(t)
	g := &campaign{ledger: newLedger(), random: rand.New(rand.NewPCG(*seed, 7)), faults: map[string]int{}, read: map[string]bool{}, verdict: verdict{mayRepeat: true}}
	t.Cleanup(func() { // logged last, since a long report might be truncated
		if t.Failed() {
			t.Logf("round %d of seed %d, %s, failed:\n%s", g.round+1, *seed, names(g.now), strings.Join(g.verdict.findings(), "\n"))
		}
	})
	// A controller that was stalled for 16 seconds must not conclude that all nodes have
	// been silent for too long, or that jobs are missing because a busy machine starts
	// them late.
	c := cluster.New(t, cluster.Knobs{Nodes: 3, CPUs: 16, MemoryMiB: 8000, MinJobAge: 10, SlurmdTimeout: 25, BatchStart: 30})
	s := newSite(t, c, "poll = \"500ms\"\nlost_after = \"10s\"\n")
	s.start()
	g.site = s
	begin := time.Now()
	for g.round = range *rounds {
		g.run()
		if t.Failed() {
			return
		}
	}
	s.stop()
	s.check("--deep")
	workers := s.workers()
	t.Logf("%v, seed %d, %v; %d jobs of Slurm, %d of them workers", g, *seed, time.Since(begin).Round(time.Second), sum(s.arrays()), workers)
	if workers == 0 {
		t.Error("no rows shared a job of Slurm")
	}
}

var clusters sync.Mutex

// oneCluster runs a test in parallel with other tests, except those that also use a
// cluster, because several clusters at once would start slowly.
func oneCluster(t *testing.T) {
	t.Parallel()
	clusters.Lock()
	t.Cleanup(clusters.Unlock)
}

// campaign is a sequence of fault rounds, with their results.
type campaign struct {
	*site
	ledger *ledger
	random *rand.Rand
	round  int
	now    []clusterFault  // faults in this round
	next   []clusterFault  // kinds of faults left in the current pass over all kinds
	read   map[string]bool // jobs whose results were compared

	faults  map[string]int // number of injected faults by name
	missed  int            // faults that could not be injected
	jobs    int
	verdict verdict
}

func (g *campaign) String() string {
	var kinds []string
	for _, name := range slices.Sorted(maps.Keys(g.faults)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", g.faults[name], name))
	}
	return fmt.Sprintf("%d rounds: %s; %d not injected\nacknowledged %d, %v; %d jobs",
		g.round+1, strings.Join(kinds, ", "), g.missed, g.ledger.acknowledged(), &g.verdict, g.jobs)
}

// workers returns the number of Slurm jobs that were submitted as workers, each of which
// runs several jobs of a batch.
func (s *site) workers() (n int) {
	lists, err := filepath.Glob(filepath.Join(s.shared, "submissions", "*"))
	must.OK(s.t, err)
	for _, list := range lists {
		text := must.Read(s.t, list)
		n += strings.Count(text, s.shared+"/workers/")
	}
	return n
}

// run runs one round: it injects one or two faults under load and then makes all
// comparisons.
func (g *campaign) run() {
	g.t.Helper()
	begin := time.Now()
	g.choose()
	all := g.now
	for _, k := range all {
		if k.when != "" {
			g.setHook(k.when, k.line(g.site, g.random))
		}
	}
	o := load{
		name: fmt.Sprintf("r%d", g.round), clients: 4, jobs: 6, seed: g.random.Uint64(),
		kind: randomResumable, rows: 8, pause: 250 * time.Millisecond,
	}
	g.submitShortBatch(o)
	g.loadUntil(g.ledger, o, 10+g.random.IntN(20), 0, func() {
		for _, k := range all {
			g.hit(k)
		}
	})
	if g.site.ended() {
		if !slices.ContainsFunc(all, func(k clusterFault) bool { return k.ends }) {
			g.t.Errorf("the service ended with %v", g.process.ProcessState)
		}
		g.start()
	}
	g.cluster.Up(g.t)
	g.compareAll(&g.verdict)
	g.verdict.report(g.t)
	g.t.Logf("round %d, %v: %s", g.round+1, time.Since(begin).Round(time.Second), names(all))
}

// submitShortBatch submits a batch whose jobs share Slurm jobs. In the first round they
// always do, because the algorithm file declares them short. In later rounds they do if
// this machine is not too busy to run each within two seconds. Whether the jobs in the
// clients' own batches share Slurm jobs depends on the runtimes of the few jobs before
// them.
func (g *campaign) submitShortBatch(o load) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	o.client, o.ledger = g.client(), g.ledger
	defer o.client.Close()
	w := loadClient{load: o, ctx: ctx}
	must.OK(g.t, w.submitRows(o.name+"-brief", "brief", briefJob))
}

// choose chooses the faults of a round. It uses every kind once before it shuffles them
// again. About every third round has two faults; their hooks must differ, and at most one
// can make the controller unavailable.
func (g *campaign) choose() {
	if len(g.next) < 2 {
		more := slices.DeleteFunc(slices.Clone(clusterFaults), func(k clusterFault) bool {
			return !strings.Contains(k.name, *only) || k.long && *only == "" && *rounds < len(clusterFaults)
		})
		if len(more) == 0 {
			g.t.Fatalf("no kind of fault has %q in its name", *only)
		}
		g.random.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
		g.next = append(g.next, more...)
	}
	n := 1
	if len(g.next) > 1 && g.random.IntN(3) == 0 && g.next[0].fits(g.next[1]) {
		n = 2
	}
	g.now = slices.Clone(g.next[:n])
	g.next = g.next[n:]
	// A hook acts on any submission and can make the controller unavailable. Faults
	// without a hook ask the controller for a node, so they are injected once the
	// controller is available again.
	slices.SortStableFunc(g.now, func(a, b clusterFault) int { return cmp.Compare(b.when, a.when) })
}

func (g *campaign) hit(k clusterFault) {
	if k.hit(g) {
		g.faults[k.name]++
	} else {
		g.missed++
	}
}

func names(all []clusterFault) string {
	var words []string
	for _, k := range all {
		words = append(words, k.name)
	}
	return strings.Join(words, ", ")
}

// compareAll waits until all jobs are finished. It then compares the ledger with the job
// records, and the records with the diary and the results, and checks that nothing
// remains on the cluster.
func (g *campaign) compareAll(v *verdict) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), finishTimeout)
	defer cancel()
	c := g.client()
	defer c.Close()
	v.stuck = unfinished(ctx, g.t, c)
	if len(v.stuck) > 0 {
		return
	}
	g.verify(g.ledger, v, false)
	g.jobs = 0
	g.inspect(c, v)
	g.checkLeftovers(v)
	g.check("--deep")
}

// finishTimeout limits the time from the last fault to the end of the last job. Slurm
// detects a missing node after half a minute, the service waits another minute for the
// node's files, and the next attempt can fail as well.
const finishTimeout = 5 * time.Minute
