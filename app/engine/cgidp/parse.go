package cgidp

import (
	"molrun/app/base/fault"
	"molrun/app/engine/input"
)

// reader takes settings, sequences among them.
type reader struct{ *input.ChainReader }

// Parse checks settings given as JSON, in which null stands for absent, and fills
// in defaults. If the settings use fasta, the argument fasta is the content of
// that file; while it is nil, the sequences are not checked and Run will refuse.
// Parse returns all faults at once; without faults, the settings are not nil.
func Parse(settings, fasta []byte) (*Settings, []fault.Field) {
	chains, wrong := input.NewChainReader(settings, keys, "sequence", maxSequences)
	if wrong != nil {
		return nil, []fault.Field{*wrong}
	}
	r := &reader{chains}
	s := &Settings{
		Sequences:     r.sequences(r.sources(fasta)),
		Conditions:    r.Conditions(),
		Cores:         int(r.Integer(input.Cores)),
		Equilibration: r.Number(input.Equilibration),
		Replicas:      int(r.Integer(limitReplicas)),
		Seed:          uint64(r.Integer(input.Seed)),
		SampleEvery:   r.Integer(limitSampleEvery),
	}
	s.fasta, _ = r.Text("fasta")
	r.lengths(s)
	if len(r.Faults) > 0 {
		return nil, r.Faults
	}
	for i := range s.Sequences {
		s.Sequences[i].Warnings = s.warnings(&s.Sequences[i])
	}
	return s, nil
}

// Check returns the faults of settings.
func Check(settings, fasta []byte) []fault.Field {
	_, faults := Parse(settings, fasta)
	return faults
}

// Lengths of runs.
const (
	defaultStepsPerResidue = 20_000
	defaultLeastSteps      = 500_000
)

// lengths sets how long each sequence runs and how often frames are saved.
func (r *reader) lengths(s *Settings) {
	steps, every := r.Integer(limitSteps), r.Integer(limitFrameEvery)
	if steps == 0 && (r.Has("steps") || len(s.Sequences) == 0) {
		return // the faults have it already, or the sequences are not known
	}
	shortest, longest := steps, steps
	for i := range s.Sequences {
		q := &s.Sequences[i]
		q.setLengths(steps, every)
		if i == 0 {
			shortest = q.Steps
		}
		shortest, longest = min(shortest, q.Steps), max(longest, q.Steps)
	}
	if every > 0 {
		r.CheckFrames(every, shortest, longest)
	}
	if s.SampleEvery > 0 {
		r.CheckSamples(s.SampleEvery, shortest, s.discarded(shortest))
	}
}

// setLengths takes what is set, or, instead of 0, what suits the number of
// residues.
func (q *Sequence) setLengths(steps, frameEvery int64) {
	q.Steps, q.FrameEvery = steps, frameEvery
	if steps == 0 {
		q.Steps = max(defaultLeastSteps, defaultStepsPerResidue*int64(len(q.Residues)))
	}
	if frameEvery == 0 {
		q.FrameEvery = defaultFrameEvery(q.Steps)
	}
}

// defaultFrameEvery saves at most a thousand frames, at multiples of a thousand
// steps.
func defaultFrameEvery(steps int64) int64 {
	every := max(1000, (steps+999)/1000)
	return (every + 999) / 1000 * 1000
}
