package doctor

import (
	"context"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/algorithm/builtin"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/server/host"
)

func checkAlgorithms(ctx context.Context, in *installation) []Finding {
	var found []Finding
	kept := in.keptAlgorithms(ctx)
	catalogue, err := builtin.Catalogue(in.config.Algorithms, in.config.Catalogue, func(m algorithm.Mistake) {
		found = append(found, finding(Problem, "%s%s", m, kept[m.File])...)
	})
	if err != nil {
		return finding(Problem, "%s", fault.Text(err))
	}
	here, _ := host.Inspect(in.config) // undetected hardware counts as absent
	ready, catalogued := 0, 0
	for _, typ := range catalogue.Types() {
		for _, a := range catalogue.Versions(typ) {
			missing := here.Missing(a)
			if len(missing) == 0 {
				ready++
				continue
			}
			if a.BuiltIn && a.Folder != nil { // most machines have few of the catalogue's programs
				catalogued++
				continue
			}
			found = append(found, finding(Problem, "%s %s is not ready: %s", a.Type, a.Version, strings.Join(missing, "; "))...)
		}
	}
	switch {
	case found == nil && catalogued > 0:
		return finding(OK, "%d are ready; programs of %d others in the catalogue are not installed (molrun algorithms list)", ready, catalogued)
	case found == nil:
		return finding(OK, "%d are ready", ready)
	}
	return found
}

// keptAlgorithms maps each file with errors to a note on the version that the running
// service offers instead.
func (in *installation) keptAlgorithms(ctx context.Context) map[string]string {
	kept := map[string]string{}
	if !in.running {
		return kept
	}
	read, err := host.Control(in.data).Algorithms(ctx)
	if err != nil {
		return kept // the service is too busy to respond
	}
	for _, m := range read.Mistakes {
		if m.Kept != "" {
			kept[m.File] = "; the service keeps using " + m.Kept + " as it was before until it restarts"
		}
	}
	return kept
}

// wantsSlurm reports whether any algorithm must run on a cluster.
func wantsSlurm(folder string) bool {
	catalogue, err := builtin.Catalogue(folder, nil, func(algorithm.Mistake) {})
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
