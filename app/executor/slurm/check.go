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

// Finding is one result of Check: what it found and, where that is not fine, what
// to do.
type Finding struct {
	Grade Grade
	Text  string
}

// Grade says how good a finding is.
type Grade int

// The grades.
const (
	Fine     Grade = iota
	Doubtful       // jobs run, but not as well or as long as they could
	Wrong          // jobs don't run
)

// Check checks whether jobs can run on the cluster, with a short job at the first
// placement. It needs no Executor and disturbs none.
func Check(ctx context.Context, o Options, places ...placement.Placement) []Finding {
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

// checkup is one check of the cluster.
type checkup struct {
	options Options
	client  *client
	found   []Finding
}

func (c *checkup) addFinding(g Grade, format string, args ...any) {
	c.found = append(c.found, Finding{g, fmt.Sprintf(format, args...)})
}

// failed reports whether jobs can't run, as far as is known.
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
		c.addFinding(Wrong, "%s has no %s; install Slurm's commands, or name their folder by the setting slurm.path", c.options.Path, strings.Join(missing, ", "))
	}
}

// controller checks that the controller answers. The commands wait ten seconds
// for one that is down.
func (c *checkup) controller(ctx context.Context) {
	text, err := c.client.Ping(ctx)
	switch {
	case err != nil:
		c.addFinding(Wrong, "the controller does not answer (%v); look at slurmctld and munge, or name the right slurm.conf by the setting slurm.conf; jobs in Slurm go on meanwhile", err)
		return
	case !strings.Contains(text, "UP"):
		c.addFinding(Wrong, "the controller is down (%s); start slurmctld; jobs in Slurm go on meanwhile", strings.TrimSpace(text))
		return
	}
	version := "of an unknown version"
	if v, err := c.client.Version(ctx); err == nil {
		version = v
	}
	c.addFinding(Fine, "the controller answers; its commands are %s", version)
}

// settings checks the limits on jobs, and how long Slurm remembers them.
func (c *checkup) settings(ctx context.Context) {
	settings, err := c.client.Settings(ctx)
	if err != nil {
		c.addFinding(Doubtful, "the controller does not tell its settings: %v", err)
		return
	}
	if most, ok := leadingNumber(settings["MaxJobCount"]); ok && most <= c.options.MaxTasks {
		c.addFinding(Doubtful, "the cluster holds %d jobs of all users (MaxJobCount), so slurm.max_jobs = %d can be in others' way; lower it", most, c.options.MaxTasks)
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

// accounts checks that the accounts of the placements may be used and take as many
// jobs as are configured, if slurmctld enforces that.
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
			c.addFinding(Doubtful, "accounting does not tell the limits of the account: %v", err)
		case !a.Exists:
			name := cmp.Or(a.Account, "NAME")
			c.addFinding(Wrong, "the user %s has no association with the account %s, so Slurm refuses its jobs; add it: sacctmgr add user %s account=%s cluster=%s",
				a.User, name, a.User, name, settings["ClusterName"])
		case strings.Contains(enforced, "limits") && a.MaxSubmit > 0 && a.MaxSubmit < c.options.MaxTasks:
			c.addFinding(Doubtful, "the user %s may have %d jobs at once in the account %s (MaxSubmitJobs, GrpSubmitJobs), so slurm.max_jobs = %d is more than Slurm takes; lower it, or have the limit raised",
				a.User, a.MaxSubmit, a.Account, c.options.MaxTasks)
		}
	}
}

// partitions checks that the configured partitions exist.
func (c *checkup) partitions(ctx context.Context, places []placement.Placement) {
	known, err := c.client.Partitions(ctx)
	if err != nil {
		c.addFinding(Doubtful, "the controller does not tell its partitions: %v", err)
		return
	}
	for _, p := range places {
		for name := range strings.SplitSeq(p.Partition, ",") {
			if _, ok := known[name]; ok {
				continue
			}
			if name == "" {
				c.addFinding(Wrong, "the cluster has no default partition; name one by the setting slurm.partition")
			} else {
				c.addFinding(Wrong, "there is no partition %s; sinfo lists those that are", name)
			}
		}
	}
}

// runProbe runs a job that reads a file written here and writes one that is read
// here.
func (c *checkup) runProbe(ctx context.Context, place placement.Placement) {
	dir, err := os.MkdirTemp(c.options.SharedDir, ".probe-")
	if err != nil {
		c.addFinding(Wrong, "the shared folder can't be written to: %v", err)
		return
	}
	defer os.RemoveAll(dir)
	p := &probe{checkup: c, dir: dir, place: place}
	p.run(ctx)
}
