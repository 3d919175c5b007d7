package cgidp

import (
	"molrun/app/engine/input"
)

// reader takes settings, sequences among them.
type reader struct{ *input.ChainReader }

// Parse checks settings given as JSON, in which null stands for absent, and fills
// in defaults. If the settings use fasta, the argument fasta is the content of
// that file; while it is nil, the sequences are not checked and Run will refuse.
// Parse returns all faults at once; without faults, the settings are not nil.
func Parse(settings, fasta []byte) (*Settings, []input.Fault) {
	values, wrong := input.NewReader(settings, keys)
	if wrong != nil {
		return nil, []input.Fault{*wrong}
	}
	r := &reader{&input.ChainReader{Reader: values, Most: maxSequences}}
	sequences := r.sequences(r.sources(fasta))
	c := r.Conditions()
	s := &Settings{
		Sequences:      sequences,
		Cores:          int(r.Integer(input.Cores)),
		Temperature:    c.Temperature,
		PH:             c.PH,
		IonicStrength:  c.IonicStrength,
		Equilibration:  r.Number(input.Equilibration),
		Replicas:       int(r.Integer(limitReplicas)),
		Seed:           uint64(r.Integer(input.Seed)),
		SampleEvery:    r.Integer(limitSampleEvery),
		Friction:       c.Friction,
		ChargedTermini: c.ChargedTermini,
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
func Check(settings, fasta []byte) []input.Fault {
	_, faults := Parse(settings, fasta)
	return faults
}

// Lengths of runs.
const (
	defaultStepsPerResidue = 20_000
	defaultLeastSteps      = 500_000
	maxFrames              = 20_000
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
	r.checkFrameEvery(every, shortest, longest)
	r.checkSamples(s, shortest)
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

func (r *reader) checkFrameEvery(every, shortest, longest int64) {
	switch {
	case every == 0:
	case every > shortest:
		r.Fault(input.Loc("frame_every"), input.Conflict, "frame_every is %d, but the run has %d steps: no frame would be saved; choose at most %d",
			every, shortest, shortest)
	case longest/every > maxFrames:
		r.Fault(input.Loc("frame_every"), input.Conflict, "frame_every of %d saves %d frames in %d steps; at most %d are possible: choose at least %d",
			every, longest/every, longest, maxFrames, (longest+maxFrames-1)/maxFrames)
	}
}

func (r *reader) checkSamples(s *Settings, steps int64) {
	if s.SampleEvery > 0 && steps/s.SampleEvery <= s.discarded(steps)/s.SampleEvery {
		r.Fault(input.Loc("sample_every"), input.Conflict, "sample_every of %d leaves no sample after equilibration in %d steps; choose at most %d",
			s.SampleEvery, steps, steps-s.discarded(steps))
	}
}
