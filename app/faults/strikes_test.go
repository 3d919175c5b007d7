package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"molrun/app/executor/slurm/cluster"
	"molrun/web/client"
)

// strike is one kind of fault that meets a service and its cluster under load.
type strike struct {
	name string
	// when is the moment of an order: "before" or "after" an sbatch. line says
	// what happens then.
	when string
	line func(s *site, r *rand.Rand) string
	// hit does the rest, under load; false says that there was no occasion.
	hit  func(g *campaign) bool
	ends bool // it ends the service
	long bool // it takes minutes, and is left out of short campaigns
}

// strikes are all kinds. Those of a campaign take turns.
var strikes = []strike{
	{
		// Its state is saved up to a second later: the job is acknowledged and
		// forgotten, and the next one gets its number.
		name: "controller killed right after a submission", when: "after",
		line: func(s *site, _ *rand.Rand) string {
			return fmt.Sprintf("kill -KILL %d", s.cluster.Process(s.t, cluster.Controller))
		},
		hit: func(g *campaign) bool {
			if !g.obeyed("after", occasion) {
				return false
			}
			time.Sleep(upTo(g.random, 3*time.Second))
			g.cluster.Up(g.t, cluster.Controller)
			return true
		},
	},
	{
		// sbatch gives up after ten seconds, and the job comes to be after that.
		name: "controller stalled during a submission", when: "before",
		line: func(s *site, _ *rand.Rand) string {
			return fmt.Sprintf("kill -STOP %d", s.cluster.Process(s.t, cluster.Controller))
		},
		hit: func(g *campaign) bool {
			if !g.obeyed("before", occasion) {
				return false
			}
			time.Sleep(11*time.Second + upTo(g.random, 5*time.Second))
			must(g.t, syscall.Kill(g.cluster.Process(g.t, cluster.Controller), syscall.SIGCONT))
			return true
		},
	},
	{
		name: "controller restarted",
		hit: func(g *campaign) bool {
			g.cluster.Stop(g.t, cluster.Controller)
			time.Sleep(upTo(g.random, 5*time.Second))
			g.cluster.Up(g.t, cluster.Controller)
			return true
		},
	},
	{
		name: "accounting down",
		hit: func(g *campaign) bool {
			g.cluster.Kill(g.t, cluster.Accounting)
			time.Sleep(3*time.Second + upTo(g.random, 12*time.Second))
			g.cluster.Up(g.t, cluster.Accounting)
			return true
		},
	},
	{
		name: "node crashed",
		hit: func(g *campaign) bool {
			node := g.busyNode()
			if node == "" {
				return false
			}
			g.cluster.CrashNode(g.t, node)
			if g.random.IntN(2) == 0 { // or it is back before anybody notices
				g.untilDown(node)
			}
			g.cluster.Up(g.t, node)
			return true
		},
	},
	{
		// The jobs of the node live on, though Slurm takes them for dead.
		name: "node cut off past its timeout",
		hit: func(g *campaign) bool {
			node := g.busyNode()
			if node == "" {
				return false
			}
			g.cluster.Kill(g.t, node)
			g.untilDown(node)
			time.Sleep(upTo(g.random, 20*time.Second))
			g.cluster.Up(g.t, node)
			return true
		},
	},
	{
		// A minute after it is given up nobody waits for its files any more.
		name: "node cut off for minutes", long: true,
		hit: func(g *campaign) bool {
			node := g.submitLong()
			if node == "" {
				return false
			}
			g.cluster.Kill(g.t, node)
			g.untilDown(node)
			time.Sleep(longAway)
			g.cluster.Up(g.t, node)
			return true
		},
	},
	{
		name: "service killed between a submission and its record", ends: true, when: "after",
		line: func(*site, *rand.Rand) string { return "kill -KILL $PPID" },
		hit: func(g *campaign) bool {
			if !g.obeyed("after", occasion) {
				return false
			}
			g.await()
			return true
		},
	},
	{
		name: "service killed", ends: true,
		hit: func(g *campaign) bool {
			time.Sleep(upTo(g.random, 2*time.Second))
			g.kill()
			return true
		},
	},
	{
		name: "service stopped", ends: true,
		hit: func(g *campaign) bool {
			time.Sleep(upTo(g.random, 2*time.Second))
			if !g.ended() {
				g.stop()
			}
			return true
		},
	},
	{
		name: "sbatch killed", when: "before",
		line: func(_ *site, r *rand.Rand) string {
			return fmt.Sprintf("limit='timeout -s KILL 0.%03d'", 1+r.IntN(30))
		},
		hit: func(g *campaign) bool { return g.obeyed("before", occasion) },
	},
}

// longAway is how long a node is cut off at most. It is longer than the minute
// for which files of a task are awaited whose node is down, and shorter than a
// long job.
const longAway = 90 * time.Second

// occasion is how long a fault waits for a submission.
const occasion = 10 * time.Second

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// busyNode gives a node that runs a job, "" where none does soon.
func (s *site) busyNode() string {
	for begin := time.Now(); time.Since(begin) < occasion; time.Sleep(100 * time.Millisecond) {
		for _, line := range s.inSlurm() {
			if fields := strings.Fields(line); len(fields) == 4 && fields[2] == "RUNNING" {
				return fields[3]
			}
		}
	}
	return ""
}

// untilDown waits until Slurm has given up on a node. That may be drained too,
// which sinfo would show alone: where a job could not be begun.
func (s *site) untilDown(node string) {
	s.t.Helper()
	s.eventually("node "+node+" is down", func() bool {
		time.Sleep(200 * time.Millisecond)
		return strings.Contains(s.cluster.Run(s.t, "scontrol", "--oneliner", "show", "node", node), " State=DOWN")
	})
}

// submitLong submits a job that outlives longAway and gives its node once it
// runs; "" where the service is gone.
func (g *campaign) submitLong() (node string) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	w := worker{load: load{client: g.client(), ledger: g.ledger}, ctx: ctx}
	defer w.client.Close()
	s := shiftJob(fmt.Sprintf("r%d-long", g.round), int((longAway+longAway/2)/stepTakes), 0)
	g.ledger.note(func() { g.ledger.jobs[s.Name] = &jobFact{submission: s, kept: true} })
	for err := w.send(s); err == nil && node == ""; time.Sleep(100 * time.Millisecond) {
		var job *client.Job
		if job, err = w.client.Job(ctx, s.Name); err == nil && job.Status == "RUNNING" {
			node = g.nodeOf(job)
		}
	}
	return node
}

// nodeOf gives the node on which a job runs, "" where it no longer does.
func (s *site) nodeOf(job *client.Job) string {
	id, err := os.ReadFile(filepath.Join(s.shared, "attempts", job.ID, fmt.Sprint(job.Attempts), "claim", "job"))
	if err != nil {
		return ""
	}
	for _, line := range s.inSlurm() {
		if fields := strings.Fields(line); len(fields) == 4 && fields[0] == strings.TrimSpace(string(id)) {
			return fields[3]
		}
	}
	return ""
}
