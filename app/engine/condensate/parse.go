package condensate

import (
	"slices"

	"molrun/app/base/fault"
	"molrun/app/engine/input"
)

// reader takes settings, components among them.
type reader struct{ *input.ChainReader }

// Parse checks settings given as JSON, in which null stands for absent, and fills
// in defaults. If the settings use fasta, the argument fasta is the content of
// that file; while it is nil, the sequences are not checked and Run will refuse.
// Parse returns all faults at once; without faults, the settings are not nil.
func Parse(settings, fasta []byte) (*Settings, []fault.Field) {
	chains, wrong := input.NewChainReader(settings, keys, "component", maxComponents)
	if wrong != nil {
		return nil, []fault.Field{*wrong}
	}
	r := &reader{chains}
	s := &Settings{
		Components:    r.components(fasta),
		Protocol:      r.protocol(),
		Conditions:    r.Conditions(),
		Steps:         r.Integer(limitSteps),
		Equilibration: r.Number(limitEquilibration),
		Replicas:      int(r.Integer(limitReplicas)),
		Seed:          uint64(r.Integer(input.Seed)),
		SampleEvery:   r.Integer(limitSampleEvery),
		Cores:         int(r.Integer(input.Cores)),
	}
	s.fasta, _ = r.Text("fasta")
	r.checkAmount(s)
	r.lengths(s)
	r.box(s)
	if len(r.Faults) > 0 {
		return nil, r.Faults
	}
	if len(s.Components) > 0 {
		s.Warnings = s.warnings()
	}
	return s, nil
}

// Check returns the faults of settings.
func Check(settings, fasta []byte) []fault.Field {
	_, faults := Parse(settings, fasta)
	return faults
}

func (r *reader) protocol() Protocol {
	if !r.Has("protocol") {
		return Slab
	}
	text, ok := r.Text("protocol")
	switch {
	case !ok:
		r.Fault(input.Loc("protocol"), input.Type, "protocol must be text, not %s", input.KindOf(r.Raw("protocol")))
	case slices.Contains([]Protocol{Slab, Bulk, Dilute}, Protocol(text)):
		return Protocol(text)
	default:
		r.Fault(input.Loc("protocol"), input.Range, "there is no protocol %q; choose slab (a dense phase beside a dilute one), bulk (one phase of a given concentration) or dilute (a few chains that meet)", text)
	}
	return Slab
}

// checkAmount checks how much there is of all components together.
func (r *reader) checkAmount(s *Settings) {
	if len(s.Components) == 0 {
		return
	}
	at := input.Loc("components")
	if r.Has("fasta") {
		at = input.Loc(limitCopies.Key)
	}
	known := !slices.ContainsFunc(s.Components, func(c Component) bool { return c.Copies == 0 })
	switch n := s.chains(); {
	case known && n < minChains:
		r.Fault(at, input.Range, "there is one chain; give at least %d copies, or use cg-idp for a single chain", minChains)
	case n > maxChains:
		r.Fault(at, input.Range, "there are %d chains; at most %d can be simulated together: give fewer copies", n, maxChains)
	case s.Protocol == Dilute && n > maxDilute:
		r.Fault(at, input.Range, "there are %d chains; the protocol dilute is for at most %d: give fewer copies, or choose slab", n, maxDilute)
	}
	if n := s.beads(); n > maxBeads {
		r.Fault(at, input.Range, "all chains together have %d residues; at most %d can be simulated: give fewer copies", n, maxBeads)
	}
}

// Frames of a trajectory: about so many, of so many bytes, unless more are asked for.
const (
	defaultFrames = 1000
	defaultBytes  = 500e6
)

// lengths checks how often samples are taken and frames saved.
func (r *reader) lengths(s *Settings) {
	every := r.Integer(limitFrameEvery)
	if s.Steps == 0 || s.SampleEvery == 0 {
		return
	}
	kept := s.Steps - s.discarded()
	if !r.Has(limitSampleEvery.Key) {
		s.SampleEvery = max(int64(limitSampleEvery.Low), min(s.SampleEvery, kept/leastSamples))
	}
	if !r.CheckSamples(s.SampleEvery, s.Steps, s.discarded()) {
		return
	}
	if every == 0 {
		s.FrameEvery = s.defaultFrameEvery()
		return
	}
	faults := len(r.Faults)
	r.CheckFrames(every, s.Steps, s.Steps)
	if len(r.Faults) == faults && every%s.SampleEvery != 0 {
		r.Fault(input.Loc("frame_every"), input.Conflict, "frame_every of %d is no multiple of sample_every, which is %d: frames are centred on what is sampled; choose %d",
			every, s.SampleEvery, (every/s.SampleEvery+1)*s.SampleEvery)
	}
	s.FrameEvery = every
}

// leastSamples are what a run has at least, unless the settings say otherwise.
const leastSamples = 200

// defaultFrameEvery is a multiple of SampleEvery.
func (s *Settings) defaultFrameEvery() int64 {
	frames := int64(defaultFrames)
	if n := int64(s.beads()); n > 0 {
		frames = max(20, min(frames, int64(defaultBytes)/(12*n)))
	}
	every := (s.Steps + frames - 1) / frames
	every = (every + s.SampleEvery - 1) / s.SampleEvery * s.SampleEvery
	return min(every, s.Steps/s.SampleEvery*s.SampleEvery)
}
