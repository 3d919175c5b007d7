package cgidp

import (
	"fmt"
	"math"

	"molrun/app/engine/input"
)

// warnings returns the reasons why the results of a sequence might be unreliable. They do
// not prevent the run.
func (s *Settings) warnings(q *Sequence) []string {
	texts := input.ConditionWarnings(s.Conditions)
	add := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	n := len(q.Residues)
	if expected := s.expectedError(q); expected > 0.05 {
		add("the run is short: expect an error of Rg of about %.0f %%; about %d steps reach 2 %%",
			100*expected, s.stepsForError(n, 0.02))
	}
	if n > 500 {
		add("%d residues: chains longer than 500 are slow to sample, and few are entirely disordered", n)
	}
	return append(texts, input.Warnings(q.Residues)...)
}

// Sampling of Rg, measured for chains of 24 to 140 residues: its standard deviation is
// about a fifth of its mean, and its autocorrelation time is about 60 steps per residue.
const (
	spreadOfRg     = 0.2
	stepsPerSample = 120.0 // per residue: twice the autocorrelation time
)

// expectedSamples returns the expected number of independent samples of Rg.
func (s *Settings) expectedSamples(q *Sequence) float64 {
	kept := float64(s.Replicas) * float64(q.Steps-s.discarded(q.Steps))
	return kept / (stepsPerSample * float64(len(q.Residues)))
}

// expectedError returns the expected relative standard error of the mean Rg.
func (s *Settings) expectedError(q *Sequence) float64 {
	return spreadOfRg / math.Sqrt(s.expectedSamples(q))
}

// stepsForError returns the number of steps for a relative error, rounded up to 10,000.
func (s *Settings) stepsForError(residues int, relative float64) int64 {
	kept := stepsPerSample * float64(residues) * math.Pow(spreadOfRg/relative, 2)
	steps := kept / (1 - s.Equilibration) / float64(s.Replicas)
	return int64(math.Ceil(steps/10_000)) * 10_000
}
