package condensate

import (
	"molrun/app/engine/input"
	"molrun/app/engine/md"
)

// Bounds of what is simulated together.
const (
	maxComponents = 8
	minChains     = 2
	maxChains     = 500
	maxBeads      = 100_000
)

// Numeric settings of this engine alone.
var (
	limitCopies        = input.Limit{Key: "copies", Preset: 100, Low: 1, High: maxChains}
	limitSteps         = input.Limit{Key: "steps", Preset: 5e6, Low: 1000, High: 2e9}
	limitEquilibration = withPreset(input.Equilibration, 0.25)
	limitReplicas      = input.Limit{Key: "replicas", Preset: 1, Low: 1, High: 16}
	limitFrameEvery    = input.Limit{Key: "frame_every", Low: 10, High: 1e8, Unit: " steps"}
	limitSampleEvery   = input.Limit{Key: "sample_every", Preset: 500, Low: 10, High: 1e6, Unit: " steps"}
	limitEdge          = input.Limit{Key: "box_nm", Low: md.LeastBox, High: 1000, Unit: " nm"}
	limitConcentration = input.Limit{Key: "concentration_mg_mL", Low: 0.01, High: 1000, Unit: " mg/mL"}
)

func withPreset(l input.Limit, preset float64) input.Limit {
	l.Preset = preset
	return l
}

// keys are all settings there are.
var keys = []string{
	"components", "fasta", limitCopies.Key, "protocol", limitEdge.Key, limitConcentration.Key, input.Cores.Key,
	input.Temperature.Key, input.PH.Key, input.IonicStrength.Key, limitSteps.Key, limitEquilibration.Key,
	limitReplicas.Key, input.Seed.Key, limitFrameEvery.Key, limitSampleEvery.Key, input.Friction.Key, "charged_termini",
}
