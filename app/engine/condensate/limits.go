package condensate

import (
	"molrun/app/engine/input"
	"molrun/app/engine/md"
)

// Limits on the system size.
const (
	maxComponents = 8
	minChains     = 2
	maxChains     = 500
	maxBeads      = 100_000
)

// Numeric settings specific to this engine.
var (
	limitCopies        = input.Limit{Key: "copies", Default: 100, Low: 1, High: maxChains}
	limitSteps         = input.Limit{Key: "steps", Default: 5e6, Low: 1000, High: 2e9}
	limitEquilibration = withPreset(input.Equilibration, 0.25)
	limitReplicas      = input.Limit{Key: "replicas", Default: 1, Low: 1, High: 16}
	limitFrameEvery    = input.Limit{Key: "frame_every", Low: 10, High: 1e8, Unit: " steps"}
	limitSampleEvery   = input.Limit{Key: "sample_every", Default: 500, Low: 10, High: 1e6, Unit: " steps"}
	limitEdge          = input.Limit{Key: "box_nm", Low: md.MinBoxEdge, High: 1000, Unit: " nm"}
	limitConcentration = input.Limit{Key: "concentration_mg_mL", Low: 0.01, High: 1000, Unit: " mg/mL"}
)

func withPreset(l input.Limit, preset float64) input.Limit {
	l.Default = preset
	return l
}

// keys lists the keys of all settings.
var keys = []string{
	"components", "fasta", limitCopies.Key, "protocol", limitEdge.Key, limitConcentration.Key, input.Cores.Key,
	input.Temperature.Key, input.PH.Key, input.IonicStrength.Key, limitSteps.Key, limitEquilibration.Key,
	limitReplicas.Key, input.Seed.Key, limitFrameEvery.Key, limitSampleEvery.Key, input.Friction.Key, "charged_termini",
}
