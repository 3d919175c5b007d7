package cgidp

import (
	"molrun/app/base/fault"
	"molrun/app/engine/input"
)

// reader reads settings and sequences.
type reader struct{ *input.ChainReader }

// Parse checks JSON settings, in which null means absent, and fills in defaults. If the
// settings use fasta, the argument fasta is the content of that file; if it is nil, the
// sequences are not checked and Run fails. Parse returns all validation errors at once;
// if there are none, the settings are not nil.
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

// Check returns the validation errors of settings.
func Check(settings, fasta []byte) []fault.Field {
	_, faults := Parse(settings, fasta)
	return faults
}

// Default lengths of runs.
const (
	defaultStepsPerResidue = 20_000
	defaultLeastSteps      = 500_000
)

// lengths sets the number of steps and the frame interval of each sequence.
func (r *reader) lengths(s *Settings) {
	steps, every := r.Integer(limitSteps), r.Integer(limitFrameEvery)
	if steps == 0 && (r.Has("steps") || len(s.Sequences) == 0) {
		return // already reported, or the sequences are unknown
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

// setLengths sets the number of steps and the frame interval. A value of 0 means the
// default for the number of residues.
func (q *Sequence) setLengths(steps, frameEvery int64) {
	q.Steps, q.FrameEvery = steps, frameEvery
	if steps == 0 {
		q.Steps = max(defaultLeastSteps, defaultStepsPerResidue*int64(len(q.Residues)))
	}
	if frameEvery == 0 {
		q.FrameEvery = defaultFrameEvery(q.Steps)
	}
}

// defaultFrameEvery returns the interval that saves at most 1,000 frames, rounded up to a
// multiple of 1,000 steps.
func defaultFrameEvery(steps int64) int64 {
	every := max(1000, (steps+999)/1000)
	return (every + 999) / 1000 * 1000
}
