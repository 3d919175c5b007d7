package cli

import (
	"context"
	"os"

	"molrun/app/algorithm"
	"molrun/app/executor/slurm"
	"molrun/app/placement"
)

// lookAtSlurm looks at the cluster, if jobs may run on one. It runs a small job
// there.
func lookAtSlurm(ctx context.Context, p *patient) []finding {
	if !p.config.Slurm.On() {
		if p.wantsSlurm() {
			return say(wrong, "algorithms are to run there, but no cluster is configured; set slurm.shared_dir, or give them another executor")
		}
		return say(fine, "no job is to run there")
	}
	if err := sharedFolder(p.config.Slurm.SharedDir, p.data); err != nil {
		return say(wrong, "%s", message(err))
	}
	program, err := os.Executable()
	if err != nil {
		return say(doubtful, "find this program: %v", err)
	}
	var found []finding
	options := slurmOptions(p.config, program, nil, nil)
	for _, f := range slurm.Check(ctx, options, p.placements()...) {
		grade := map[slurm.Grade]result{slurm.Fine: fine, slurm.Doubtful: doubtful, slurm.Wrong: wrong}[f.Grade]
		found = append(found, finding{Result: grade, Text: f.Text})
	}
	if os.Geteuid() == 0 {
		found = append(found, say(doubtful, "molrun runs as root, and so do its jobs on the cluster; give it an account of its own, the same on all nodes")...)
	}
	return found
}

// placements are all where the configuration sends jobs on the cluster, first
// the one that holds where no rule does.
func (p *patient) placements() []placement.Placement {
	routing := p.config.Routing()
	all := []placement.Placement{routing.Placement}
	for _, r := range routing.Rules {
		if r.Executor != placement.Local {
			all = append(all, r.Placement.Over(routing.Placement))
		}
	}
	return all
}

func (p *patient) wantsSlurm() bool {
	catalogue, err := loadCatalogue(p.config.Algorithms, func(algorithm.Mistake) {})
	if err != nil {
		return false
	}
	for _, typ := range catalogue.Types() {
		for _, a := range catalogue.Versions(typ) {
			if a.Executor == placement.Slurm {
				return true
			}
		}
	}
	return false
}
