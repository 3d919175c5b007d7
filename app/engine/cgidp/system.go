package cgidp

import (
	"molrun/app/engine/md"
)

const (
	maxRows     = 20_000 // of timeseries.csv
	pairSpacing = 1000   // least steps between samples of pairs
)

// system is what all replicas of one sequence share. It never changes.
type system struct {
	Sequence
	settings *Settings
	index    int // among the sequences
	model    *md.Model
	plan     plan
}

func newSystem(s *Settings, index int) *system {
	q := s.Sequences[index]
	return &system{
		Sequence: q,
		settings: s,
		index:    index,
		model:    md.NewModel(q.Residues, s.Conditions),
		plan:     newPlan(s, &q),
	}
}

// plan says what happens at which step.
type plan struct {
	steps       int64
	discarded   int64 // steps of equilibration
	sampleEvery int64
	frameEvery  int64
	rowEvery    int64 // samples between rows of timeseries.csv
	pairEvery   int64 // samples between those of pairs
}

func newPlan(s *Settings, q *Sequence) plan {
	samples := q.Steps / s.SampleEvery * int64(s.Replicas)
	return plan{
		steps:       q.Steps,
		discarded:   s.discarded(q.Steps),
		sampleEvery: s.SampleEvery,
		frameEvery:  q.FrameEvery,
		rowEvery:    max(1, (samples+maxRows-1)/maxRows),
		pairEvery:   (pairSpacing + s.SampleEvery - 1) / s.SampleEvery,
	}
}

// samples is the number of samples after equilibration.
func (p plan) samples() int64 { return p.steps/p.sampleEvery - p.discarded/p.sampleEvery }

// pairs is the number of samples of pairs after equilibration.
func (p plan) pairs() int64 { return (p.samples() + p.pairEvery - 1) / p.pairEvery }

// untilEvent is the number of steps from a step to the next sample or frame, or
// to the end.
func (p plan) untilEvent(step int64) int64 {
	return min(p.sampleEvery-step%p.sampleEvery, p.frameEvery-step%p.frameEvery, p.steps-step)
}
