package slurm

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"molrun/app/algorithm/placement"
)

// Finding is one result of CheckCluster: the observation and, if there is a problem, how
// to fix it.
type Finding struct {
	Grade Grade
	Text  string
}

// Grade is the severity of a finding.
type Grade int

// The grades.
const (
	Fine     Grade = iota
	Doubtful       // jobs run, but not as well or as long as they could
	Wrong          // jobs do not run
)

// CheckCluster checks whether jobs can run on the cluster, with a short test job at the
// first placement. It needs no Executor and does not disturb a running one.
func CheckCluster(ctx context.Context, o Options, places ...placement.Placement) []Finding {
	o = o.withDefaults()
	if err := o.valid(); err != nil {
		return []Finding{{Wrong, err.Error()}}
	}
	c := &checkup{options: o, client: newClient(o)}
	if c.commands(); c.failed() {
		return c.found
	}
	if c.controller(ctx); c.failed() {
		return c.found
	}
	c.settings(ctx)
	c.accounts(ctx, places)
	c.partitions(ctx, places)
	if !c.failed() {
		c.runProbe(ctx, slices.Concat(places, []placement.Placement{{}})[0])
	}
	return c.found
}

// checkup is the state of one CheckCluster call.
type checkup struct {
	options Options
	client  *client
	found   []Finding
}

func (c *checkup) addFinding(g Grade, format string, args ...any) {
	c.found = append(c.found, Finding{g, fmt.Sprintf(format, args...)})
}

// failed reports whether jobs are known not to run.
func (c *checkup) failed() bool {
	return slices.ContainsFunc(c.found, func(f Finding) bool { return f.Grade == Wrong })
}

func (c *checkup) commands() {
	var missing []string
	for _, name := range Commands {
		if _, err := c.client.commandPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		c.addFinding(Wrong, "%s has no %s; install Slurm's commands, or set slurm.path to their folder", c.options.Path, strings.Join(missing, ", "))
	}
}

// controller checks that the controller responds. Slurm's commands wait ten seconds for a
// controller that is down.
func (c *checkup) controller(ctx context.Context) {
	text, err := c.client.Ping(ctx)
	switch {
	case err != nil:
		c.addFinding(Wrong, "the controller does not respond (%v); check slurmctld and munge, or set slurm.conf to the right file; jobs in Slurm keep running", err)
		return
	case !strings.Contains(text, "UP"):
		c.addFinding(Wrong, "the controller is down (%s); start slurmctld; jobs in Slurm keep running", strings.TrimSpace(text))
		return
	}
	version := "of an unknown version"
	if v, err := c.client.Version(ctx); err == nil {
		version = v
	}
	c.addFinding(Fine, "the controller responds; Slurm commands: %s", version)
}

// settings checks the limits on jobs, and how long Slurm remembers finished jobs.
func (c *checkup) settings(ctx context.Context) {
	settings, err := c.client.Settings(ctx)
	if err != nil {
		c.addFinding(Doubtful, "could not read the controller's settings: %v", err)
		return
	}
	if most, ok := leadingNumber(settings["MaxJobCount"]); ok && most <= c.options.MaxTasks {
		c.addFinding(Doubtful, "the cluster is limited to %d jobs in total (MaxJobCount), so slurm.max_jobs = %d can block other users; lower it", most, c.options.MaxTasks)
	}
	if !strings.HasSuffix(settings["AccountingStorageType"], "none") {
		return
	}
	enough := 10 * int(c.options.Poll/time.Second)
	age, _ := leadingNumber(settings["MinJobAge"])
	if age < enough {
		c.addFinding(Wrong, "there is no accounting (slurmdbd), and the controller forgets a job %d s after its end, before molrun has surely asked; set MinJobAge to %d or more, or set up accounting", age, enough)
		return
	}
	c.addFinding(Doubtful, "there is no accounting (slurmdbd): what ends while molrun is down for more than %d s (MinJobAge) counts as lost where its files don't tell the end", age)
}

// accounts checks that the accounts of the placements can be used and accept as many jobs
// as configured, if slurmctld enforces associations.
func (c *checkup) accounts(ctx context.Context, places []placement.Placement) {
	settings, err := c.client.Settings(ctx)
	enforced := settings["AccountingStorageEnforce"]
	if err != nil || !strings.Contains(enforced, "associations") {
		return
	}
	seen := map[string]bool{}
	for _, p := range places {
		if seen[p.Account] {
			continue
		}
		seen[p.Account] = true
		a, err := c.client.Association(ctx, settings["ClusterName"], p.Account)
		switch {
		case err != nil:
			c.addFinding(Doubtful, "could not read the account's limits from accounting: %v", err)
		case !a.Exists:
			name := cmp.Or(a.Account, "NAME")
			c.addFinding(Wrong, "user %s has no association with account %s, so Slurm rejects its jobs; add one: sacctmgr add user %s account=%s cluster=%s",
				a.User, name, a.User, name, settings["ClusterName"])
		case strings.Contains(enforced, "limits") && a.MaxSubmit > 0 && a.MaxSubmit < c.options.MaxTasks:
			c.addFinding(Doubtful, "user %s is limited to %d jobs at once in account %s (MaxSubmitJobs, GrpSubmitJobs), less than slurm.max_jobs = %d; lower it, or have the limit raised",
				a.User, a.MaxSubmit, a.Account, c.options.MaxTasks)
		}
	}
}

// partitions checks that the configured partitions exist.
func (c *checkup) partitions(ctx context.Context, places []placement.Placement) {
	known, err := c.client.Partitions(ctx)
	if err != nil {
		c.addFinding(Doubtful, "could not read the controller's partitions: %v", err)
		return
	}
	for _, p := range places {
		for name := range strings.SplitSeq(p.Partition, ",") {
			if _, ok := known[name]; ok {
				continue
			}
			if name == "" {
				c.addFinding(Wrong, "the cluster has no default partition; set slurm.partition")
			} else {
				c.addFinding(Wrong, "there is no partition %s; run sinfo to list partitions", name)
			}
		}
	}
}

// runProbe runs a test job that reads a file written here, and writes one to be read
// here.
func (c *checkup) runProbe(ctx context.Context, place placement.Placement) {
	dir, err := os.MkdirTemp(c.options.SharedDir, ".probe-")
	if err != nil {
		c.addFinding(Wrong, "the shared folder is not writable: %v", err)
		return
	}
	defer os.RemoveAll(dir)
	p := &probe{checkup: c, dir: dir, place: place}
	p.run(ctx)
}
