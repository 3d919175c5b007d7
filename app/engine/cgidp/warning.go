package cgidp

import (
	"fmt"
	"math"
	"strings"
)

// warnings tell what makes the results of a sequence doubtful. The run goes on.
func (s *Settings) warnings(q *Sequence) []string {
	texts := s.conditionWarnings()
	add := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	n := len(q.Residues)
	if expected := s.expectedError(q); expected > 0.05 {
		add("the run is short: expect an error of Rg of about %.0f %%; about %d steps reach 2 %%",
			100*expected, s.stepsForError(n, 0.02))
	}
	if n > 500 {
		add("%d residues: chains above 500 take long to sample, and few are disordered throughout", n)
	}
	if looksFolded(q.Residues) {
		add("the composition is typical of folded proteins (Uversky 2000); " +
			"the model has no secondary or tertiary structure and means nothing for folded domains")
	}
	if n >= 20 && strings.Trim(q.Residues, "ACGT") == "" {
		add("all residues are A, C, G or T: is this DNA? It is simulated as a protein")
	}
	return texts
}

func (s *Settings) conditionWarnings() []string {
	var texts []string
	if s.Temperature < 277 || s.Temperature > 323 {
		texts = append(texts, "the model was made for temperatures from 277 to 323 K; beyond, it extrapolates")
	}
	if s.PH < 5 || s.PH > 9 {
		texts = append(texts, "only histidine responds to pH in this model; outside pH 5 to 9 other residues do so in nature")
	}
	if s.IonicStrength > 0.5 {
		texts = append(texts, "above 0.5 mol/L of salt the Debye-Hückel description of charges is weak")
	}
	return texts
}

// Sampling of Rg, measured for chains of 24 to 140 residues: it spreads by about
// a fifth of its mean and forgets itself in about 60 steps per residue.
const (
	spreadOfRg     = 0.2
	stepsPerSample = 120.0 // per residue: twice the autocorrelation time
)

// expectedError is the relative standard error of the mean Rg to be expected.
func (s *Settings) expectedError(q *Sequence) float64 {
	kept := float64(s.Replicas) * float64(q.Steps-discarded(s.Equilibration, q.Steps))
	return spreadOfRg * math.Sqrt(stepsPerSample*float64(len(q.Residues))/kept)
}

// stepsForError is how many steps reach a relative error, up to a round number.
func (s *Settings) stepsForError(residues int, relative float64) int64 {
	kept := stepsPerSample * float64(residues) * math.Pow(spreadOfRg/relative, 2)
	steps := kept / (1 - s.Equilibration) / float64(s.Replicas)
	return int64(math.Ceil(steps/10_000)) * 10_000
}

// looksFolded is the charge-hydropathy plot of Uversky, Gillespie and Fink
// (Proteins 2000, 41, 415): folded proteins lie below the line.
func looksFolded(sequence string) bool {
	charge, mean := 0.0, 0.0
	for i := range len(sequence) {
		t := strings.IndexByte(residueLetters, sequence[i])
		charge += residues[t].charge
		mean += (hydropathy[t] + 4.5) / 9
	}
	n := float64(len(sequence))
	return math.Abs(charge)/n < 2.785*mean/n-1.151
}

// discarded is how many steps belong to equilibration.
func discarded(fraction float64, steps int64) int64 {
	return int64(math.Round(fraction * float64(steps)))
}
