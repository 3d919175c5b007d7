package cgidp

import (
	"slices"

	"molrun/app/engine/store"
)

// checkpointMark is the first line of a checkpoint.
const checkpointMark = "molrun cg-idp checkpoint 2\n"

// settingsHash distinguishes settings that give different results. The number of
// cores makes no difference, and warnings follow from the rest.
func (s *system) settingsHash() []byte {
	settings := *s.settings
	settings.Cores = 0
	settings.Sequences = slices.Clone(settings.Sequences)
	for i := range settings.Sequences {
		settings.Sequences[i].Warnings = nil
	}
	return store.SettingsHash(engineVersion, s.index, settings)
}
