package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/cluster"
	"molrun/app/test/must"
)

// A controller that crashes forgets the jobs of the last seconds and gives their
// numbers away again. A job is cancelled while the controller is down; its number
// then goes to a job of the same account that is none of molrun's, and that job has
// to live.
func TestNumbersGivenAwayOnTheCluster(t *testing.T) {
	oneCluster(t)
	c := cluster.New(t, cluster.Knobs{Nodes: 2, CPUs: 4, MemoryMiB: 4000, NoGPUs: true})
	s := newSite(t, c, "poll = \"300ms\"\nlost_after = \"20s\"\n")
	s.start()
	done := 0
	for try := 0; done < *given; try++ {
		if try > 3**given+2 {
			t.Fatalf("in %d of %d tries the number was given away", done, try)
		}
		begin := time.Now()
		g := &giveaway{site: s, lab: s.client(), name: fmt.Sprintf("r%d", try), runs: done%2 == 0}
		if why := g.run(); why != "" {
			t.Logf("try %d: %s", try+1, why)
			continue
		}
		if t.Failed() {
			t.Fatalf("in try %d:\n%s", try+1, s.log.Tail())
		}
		done++
		t.Logf("try %d, %v: job %s of molrun (running: %v) was cancelled; the other job with its number lives", try+1, time.Since(begin).Round(time.Second), g.number, g.runs)
	}
	s.stop()
	s.check("--deep")
}

// giveaway is one crash after which the number of a cancelled job is given away.
type giveaway struct {
	*site
	lab    *client.Client
	name   string // of the job
	runs   bool   // it ran before the crash; otherwise it waited
	number string
	node   string // on which it ran
	other  string // the number of the other job
}

// run returns why the number was not given away, if it was not.
func (g *giveaway) run() (why string) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), 2*patience)
	defer cancel()
	defer g.clear()
	if !g.runs {
		g.cluster.Run(g.t, "scontrol", "update", "PartitionName=main", "State=DOWN")
	}
	saved := g.submitSaved()
	_, err := g.lab.Submit(ctx, resumableJob(g.name, 10_000, 0))
	must.OK(g.t, err)
	must.Become(g.t, "molrun has seen its job", func() bool { return g.seen(ctx) })
	must.OK(g.t, syscall.Kill(g.cluster.Process(g.t, cluster.Controller), syscall.SIGKILL))
	forgotten := g.savedAt().Equal(saved)
	if g.runs && forgotten {
		g.cluster.CrashNode(g.t, g.node)
	}
	_, err = g.lab.Cancel(ctx, g.name)
	must.OK(g.t, err)
	g.cluster.Up(g.t)
	g.cluster.Run(g.t, "scontrol", "update", "PartitionName=main", "State=UP")
	if !forgotten {
		_, err := g.lab.Wait(ctx, g.name)
		must.OK(g.t, err)
		return "the controller had saved the job"
	}
	if why := g.startOther(); why != "" {
		return why
	}
	job, err := g.lab.Wait(ctx, g.name)
	must.OK(g.t, err)
	if job.Status != "FAILED" || job.Failure.Code != "STOPPED" {
		g.t.Errorf("the cancelled job is %s, %+v", job.Status, job.Failure)
	}
	for begin := time.Now(); time.Since(begin) < afterwards; time.Sleep(500 * time.Millisecond) {
		if !g.otherRuns() {
			g.t.Errorf("the job %s, which got the number of a cancelled job, is %q", g.other, g.stateOfOther())
			return ""
		}
	}
	return ""
}

// afterwards is how long the other job is watched after molrun's has ended. molrun
// repeats its request to cancel every five seconds.
const afterwards = 12 * time.Second

// submitSaved submits a job that waits, and returns when the controller saved it.
// For five seconds, it saves no other.
func (g *giveaway) submitSaved() time.Time {
	g.t.Helper()
	before := time.Now()
	g.cluster.Run(g.t, "sbatch", "--hold", "--job-name=before", "--output=/dev/null", "--wrap=true")
	must.Become(g.t, "the controller saves its state", func() bool { return g.savedAt().After(before) })
	return g.savedAt()
}

func (g *giveaway) savedAt() time.Time {
	info, err := os.Stat(filepath.Join(filepath.Dir(filepath.Dir(g.cluster.Conf)), "ctld", "job_state"))
	if err != nil {
		return time.Time{} // it is being replaced
	}
	return info.ModTime()
}

// seen reports whether molrun knows the job's number, and notes that.
func (g *giveaway) seen(ctx context.Context) bool {
	job, err := g.lab.Job(ctx, g.name)
	must.OK(g.t, err)
	for _, line := range g.inSlurm() {
		fields := append(strings.Fields(line), "")
		if strings.HasPrefix(fields[1], "molrun-") {
			g.number, g.node = fields[0], fields[3]
		}
	}
	if g.runs {
		return job.Status == "RUNNING" && g.node != ""
	}
	return g.number != "" && strings.Contains(job.StatusReason, "as job "+g.number)
}

// startOther starts the other job, and returns why it did not get the number, if it
// did not. Its name may begin like those of molrun.
func (g *giveaway) startOther() (why string) {
	g.t.Helper()
	args := []string{"--parsable", "--job-name=molrun-" + g.name, "--mem=64M", "--output=/dev/null", "--wrap=sleep 600"}
	if g.runs {
		args = append(args, "--exclude="+g.node, "--job-name=theirs")
	}
	g.other = strings.TrimSpace(g.cluster.Run(g.t, "sbatch", args...))
	if g.other != g.number {
		return fmt.Sprintf("the next job is %s instead of %s", g.other, g.number)
	}
	must.Become(g.t, "the other job runs", g.otherRuns)
	return ""
}

func (g *giveaway) otherRuns() bool { return g.stateOfOther() == "RUNNING" }

func (g *giveaway) stateOfOther() string {
	return strings.TrimSpace(g.cluster.Run(g.t, "squeue", "--noheader", "--states=all", "--jobs="+g.other, "--format=%T"))
}

// clear cancels what is not molrun's.
func (g *giveaway) clear() {
	g.t.Helper()
	for _, name := range []string{"before", "theirs", "molrun-" + g.name} {
		g.cluster.Run(g.t, "scancel", "--quiet", "--name="+name)
	}
}
