package cgidp

import (
	"molrun/app/engine/md"
)

const (
	maxRows     = 20_000 // of timeseries.csv
	pairSpacing = 1000   // minimum number of steps between samples of pairs
)

// system is the immutable data shared by all replicas of one sequence.
type system struct {
	Sequence
	settings *Settings
	index    int // index of the sequence
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

// plan determines at which steps samples and frames are taken.
type plan struct {
	steps       int64
	discarded   int64 // equilibration steps
	sampleEvery int64
	frameEvery  int64
	rowEvery    int64 // samples between rows of timeseries.csv
	pairEvery   int64 // samples between samples of pairs
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

// samples returns the number of samples after equilibration.
func (p plan) samples() int64 { return p.steps/p.sampleEvery - p.discarded/p.sampleEvery }

// pairs returns the number of pair samples after equilibration.
func (p plan) pairs() int64 { return (p.samples() + p.pairEvery - 1) / p.pairEvery }

// untilEvent returns the number of steps to the next sample or frame, or to the end.
func (p plan) untilEvent(step int64) int64 {
	return min(p.sampleEvery-step%p.sampleEvery, p.frameEvery-step%p.frameEvery, p.steps-step)
}
