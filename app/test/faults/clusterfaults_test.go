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

	"molrun/app/client"
	"molrun/app/test/cluster"
	"molrun/app/test/must"
)

// clusterFault is a kind of fault that hits a service and its cluster under load.
type clusterFault struct {
	name string
	// when says whether a hook runs "before" or "after" an sbatch; line returns the
	// hook's shell command.
	when string
	line func(s *site, r *rand.Rand) string
	// hit injects the rest of the fault, under load. It returns false if that was not
	// possible.
	hit  func(g *campaign) bool
	ends bool // the fault makes the service exit
	long bool // the fault takes minutes; short campaigns skip it
	away bool // the fault makes the controller unavailable for a while
}

// fits reports whether two faults can be injected in one round.
func (k clusterFault) fits(other clusterFault) bool {
	return (k.when == "" || k.when != other.when) && !(k.away && other.away)
}

// clusterFaults lists all kinds of cluster faults.
var clusterFaults = []clusterFault{
	{
		// The controller saves its state up to a second late, so it acknowledges a job,
		// forgets it, and reuses its ID.
		name: "controller killed right after a submission", when: "after", away: true,
		line: func(s *site, _ *rand.Rand) string {
			return fmt.Sprintf("kill -KILL %d", s.cluster.Process(s.t, cluster.Controller))
		},
		hit: func(g *campaign) bool {
			if !g.hookRan("after", hookTimeout) {
				return false
			}
			time.Sleep(upTo(g.random, 3*time.Second))
			g.cluster.Up(g.t, cluster.Controller)
			return true
		},
	},
	{
		// sbatch times out after ten seconds, and the job is created after that.
		name: "controller stalled during a submission", when: "before", away: true,
		line: func(s *site, _ *rand.Rand) string {
			return fmt.Sprintf("kill -STOP %d", s.cluster.Process(s.t, cluster.Controller))
		},
		hit: func(g *campaign) bool {
			if !g.hookRan("before", hookTimeout) {
				return false
			}
			time.Sleep(11*time.Second + upTo(g.random, 5*time.Second))
			must.OK(g.t, syscall.Kill(g.cluster.Process(g.t, cluster.Controller), syscall.SIGCONT))
			return true
		},
	},
	{
		name: "controller restarted", away: true,
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
			if g.random.IntN(2) == 0 { // otherwise it returns before Slurm notices
				g.untilDown(node)
			}
			g.cluster.Up(g.t, node)
			return true
		},
	},
	{
		// The node's jobs keep running, although Slurm considers them dead.
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
		// The service stops waiting for the files a minute after Slurm has marked the
		// node down.
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
			if !g.hookRan("after", hookTimeout) {
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
		hit: func(g *campaign) bool { return g.hookRan("before", hookTimeout) },
	},
}

// longAway is the longest time for which a node is cut off. It is longer than the minute
// for which the service waits for the files of a node that is down, and shorter than a
// long job.
const longAway = 90 * time.Second

// hookTimeout is how long to wait for a submission that runs the hook, or for a busy
// node.
const hookTimeout = 10 * time.Second

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// busyNode returns a node that is running a job, or "" if there is none within
// hookTimeout.
func (s *site) busyNode() string {
	for begin := time.Now(); time.Since(begin) < hookTimeout; time.Sleep(100 * time.Millisecond) {
		for _, line := range s.inSlurm() {
			if fields := strings.Fields(line); len(fields) == 4 && fields[2] == "RUNNING" {
				return fields[3]
			}
		}
	}
	return ""
}

// untilDown waits until Slurm considers a node down. A node on which a job could not
// start is also drained, which is all that sinfo then shows.
func (s *site) untilDown(node string) {
	s.t.Helper()
	must.Become(s.t, "node "+node+" is down", func() bool {
		time.Sleep(200 * time.Millisecond)
		return strings.Contains(s.cluster.Run(s.t, "scontrol", "--oneliner", "show", "node", node), " State=DOWN")
	})
}

// submitLong submits a job that runs longer than longAway and returns its node once it is
// running, or "" if the service has exited.
func (g *campaign) submitLong() (node string) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	w := loadClient{load: load{client: g.client(), ledger: g.ledger}, ctx: ctx}
	defer w.client.Close()
	s := resumableJob(fmt.Sprintf("r%d-long", g.round), int((longAway+longAway/2)/stepTakes), 0)
	g.ledger.note(func() { g.ledger.jobs[s.Name] = &jobFact{submission: s, kept: true} })
	for err := w.send(s); err == nil && node == ""; time.Sleep(100 * time.Millisecond) {
		var job *client.Job
		if job, err = w.client.Job(ctx, s.Name); err == nil && job.Status == "RUNNING" {
			node = g.nodeOf(job)
		}
	}
	return node
}

// nodeOf returns the node on which a job is running, or "" if it is no longer running.
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
