package cgidp

import "molrun/app/engine/input"

// Numeric settings specific to this engine.
var (
	limitSteps       = input.Limit{Key: "steps", Low: 1000, High: 2e9, Advice: moreReplicas}
	limitReplicas    = input.Limit{Key: "replicas", Default: 1, Low: 1, High: 64}
	limitFrameEvery  = input.Limit{Key: "frame_every", Low: 100, High: 1e7, Unit: " steps"}
	limitSampleEvery = input.Limit{Key: "sample_every", Default: 200, Low: 10, High: 1e5, Unit: " steps"}
)

// keys lists the keys of all settings.
var keys = []string{
	"sequences", "fasta", "names", input.Cores.Key, input.Temperature.Key, input.PH.Key, input.IonicStrength.Key,
	limitSteps.Key, input.Equilibration.Key, limitReplicas.Key, input.Seed.Key, limitFrameEvery.Key,
	limitSampleEvery.Key, input.Friction.Key, "charged_termini",
}

func moreReplicas(l input.Limit, steps float64) string {
	if steps < l.High {
		return ""
	}
	return "use replicas for more"
}
