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

// A controller that crashes forgets the jobs of the last few seconds and reuses their
// IDs. A job is canceled while the controller is down, and its ID is then reused for a
// job of the same account that molrun did not submit. That job must not be canceled.
func TestReusedJobNumbersOnTheCluster(t *testing.T) {
	oneCluster(t)
	c := cluster.New(t, cluster.Knobs{Nodes: 2, CPUs: 4, MemoryMiB: 4000, NoGPUs: true})
	s := newSite(t, c, "poll = \"300ms\"\nlost_after = \"20s\"\n")
	s.start()
	done := 0
	for try := 0; done < *given; try++ {
		if try > 3**given+2 {
			t.Fatalf("the number was reused in %d of %d attempts", done, try)
		}
		begin := time.Now()
		g := &numberReuse{site: s, lab: s.client(), name: fmt.Sprintf("r%d", try), runs: done%2 == 0}
		if why := g.run(); why != "" {
			t.Logf("try %d: %s", try+1, why)
			continue
		}
		if t.Failed() {
			t.Fatalf("in try %d:\n%s", try+1, s.log.Tail())
		}
		done++
		t.Logf("try %d, %v: job %s of molrun (running: %v) was canceled; the other job with its number is still running", try+1, time.Since(begin).Round(time.Second), g.number, g.runs)
	}
	s.stop()
	s.check("--deep")
}

// numberReuse tests one crash after which the ID of a canceled job is reused.
type numberReuse struct {
	*site
	lab    *client.Client
	name   string // name of the job
	runs   bool   // whether the job was running before the crash, rather than pending
	number string
	node   string // node on which the job was running
	other  string // ID of the other job
}

// run returns the reason if the ID was not reused.
func (g *numberReuse) run() (why string) {
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

// afterwards is how long the other job is watched after molrun's job has ended. It is
// longer than the five seconds after which molrun repeats its cancel request.
const afterwards = 12 * time.Second

// submitSaved submits a held job, and returns once the controller has saved it. The
// controller saves no further job for the next five seconds.
func (g *numberReuse) submitSaved() time.Time {
	g.t.Helper()
	before := time.Now()
	g.cluster.Run(g.t, "sbatch", "--hold", "--job-name=before", "--output=/dev/null", "--wrap=true")
	must.Become(g.t, "the controller saves its state", func() bool { return g.savedAt().After(before) })
	return g.savedAt()
}

func (g *numberReuse) savedAt() time.Time {
	info, err := os.Stat(filepath.Join(filepath.Dir(filepath.Dir(g.cluster.Conf)), "ctld", "job_state"))
	if err != nil {
		return time.Time{} // the file is just being replaced
	}
	return info.ModTime()
}

// seen reports whether molrun knows the job's ID, and records the ID.
func (g *numberReuse) seen(ctx context.Context) bool {
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

// startOther starts the other job. It returns the reason if that job did not get the ID.
// The other job's name can begin like that of molrun's job.
func (g *numberReuse) startOther() (why string) {
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

func (g *numberReuse) otherRuns() bool { return g.stateOfOther() == "RUNNING" }

func (g *numberReuse) stateOfOther() string {
	return strings.TrimSpace(g.cluster.Run(g.t, "squeue", "--noheader", "--states=all", "--jobs="+g.other, "--format=%T"))
}

// clear cancels the jobs that molrun did not submit.
func (g *numberReuse) clear() {
	g.t.Helper()
	for _, name := range []string{"before", "theirs", "molrun-" + g.name} {
		g.cluster.Run(g.t, "scancel", "--quiet", "--name="+name)
	}
}
