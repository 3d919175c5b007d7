package doctor

import (
	"context"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/algorithms"
	"molrun/app/fault"
	"molrun/app/host"
	"molrun/app/placement"
)

func checkAlgorithms(_ context.Context, in *installation) []Finding {
	var found []Finding
	catalogue, err := algorithms.Catalogue(in.config.Algorithms, func(m algorithm.Mistake) {
		found = append(found, say(Problem, "%s", m)...)
	})
	if err != nil {
		return say(Problem, "%s", fault.Text(err))
	}
	here, _ := host.Of(in.config) // what was not detected counts as absent
	ready := 0
	for _, typ := range catalogue.Types() {
		for _, a := range catalogue.Versions(typ) {
			missing := here.Missing(a)
			if len(missing) == 0 {
				ready++
				continue
			}
			found = append(found, say(Problem, "%s %s is not ready: %s", a.Type, a.Version, strings.Join(missing, "; "))...)
		}
	}
	if found == nil {
		return say(OK, "%d are ready", ready)
	}
	return found
}

// wantsSlurm reports whether an algorithm has to run on a cluster.
func wantsSlurm(folder string) bool {
	catalogue, err := algorithms.Catalogue(folder, func(algorithm.Mistake) {})
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
