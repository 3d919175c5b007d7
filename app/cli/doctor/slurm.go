package doctor

import (
	"context"
	"os"

	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/base/fault"
	"molrun/app/executor/slurm"
	"molrun/app/server/host"
)

// checkSlurm checks the cluster and runs a small job there, if jobs can run on a cluster.
func checkSlurm(ctx context.Context, in *installation) []Finding {
	if !in.config.Slurm.On() {
		if wantsSlurm(in.config.Algorithms) {
			return finding(Problem, "some algorithms require a cluster, but none is configured; set slurm.shared_dir, or give them another executor")
		}
		return finding(OK, "not configured")
	}
	if err := host.CheckSharedDir(in.config.Slurm.SharedDir, in.data); err != nil {
		return finding(Problem, "%s", fault.Text(err))
	}
	var found []Finding
	options := host.SlurmOptions(in.config)
	for _, f := range slurm.CheckCluster(ctx, options, placements(in.config.Routing())...) {
		grade := map[slurm.Grade]Result{slurm.Fine: OK, slurm.Doubtful: Warning, slurm.Wrong: Problem}[f.Grade]
		found = append(found, Finding{Result: grade, Text: f.Text})
	}
	if os.Geteuid() == 0 {
		found = append(found, finding(Warning, "molrun runs as root, and so do its jobs on the cluster; run it under a separate account that exists on all nodes")...)
	}
	return found
}

// placements returns every placement of jobs on the cluster, the default first.
func placements(routing routing.Table) []placement.Placement {
	all := []placement.Placement{routing.Placement}
	for _, r := range routing.Rules {
		if r.Executor != placement.Local {
			all = append(all, r.Placement.Over(routing.Placement))
		}
	}
	return all
}
