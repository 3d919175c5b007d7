package condensate

import (
	"slices"

	"molrun/app/base/fault"
	"molrun/app/engine/input"
)

// reader reads settings and components.
type reader struct{ *input.ChainReader }

// Parse checks JSON settings, in which null means absent, and fills in defaults. If the
// settings use fasta, the argument fasta is the content of that file; if it is nil, the
// sequences are not checked and Run fails. Parse returns all validation errors at once;
// if there are none, the settings are not nil.
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

// Check returns the validation errors of settings.
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
		r.Fault(input.Loc("protocol"), input.Range, "unknown protocol %q; choose slab (coexisting dense and dilute phases), bulk (one phase at a given concentration) or dilute (a few chains in solution)", text)
	}
	return Slab
}

// checkAmount checks the total numbers of chains and beads.
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

// Default trajectory size: about this many frames, within about this many bytes.
const (
	defaultFrames = 1000
	defaultBytes  = 500e6
)

// lengths checks the sampling and frame intervals.
func (r *reader) lengths(s *Settings) {
	every := r.Integer(limitFrameEvery)
	if s.Steps == 0 || s.SampleEvery == 0 {
		return
	}
	kept := s.Steps - s.discarded()
	if !r.Has(limitSampleEvery.Key) {
		s.SampleEvery = max(int64(limitSampleEvery.Low), min(s.SampleEvery, kept/minSamples))
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
		r.Fault(input.Loc("frame_every"), input.Conflict, "frame_every of %d is not a multiple of sample_every, which is %d: frames are centered using samples; choose %d",
			every, s.SampleEvery, (every/s.SampleEvery+1)*s.SampleEvery)
	}
	s.FrameEvery = every
}

// minSamples is the minimum number of samples, unless sample_every is set.
const minSamples = 200

// defaultFrameEvery returns the default frame interval, a multiple of SampleEvery.
func (s *Settings) defaultFrameEvery() int64 {
	frames := int64(defaultFrames)
	if n := int64(s.beads()); n > 0 {
		frames = max(20, min(frames, int64(defaultBytes)/(12*n)))
	}
	every := (s.Steps + frames - 1) / frames
	every = (every + s.SampleEvery - 1) / s.SampleEvery * s.SampleEvery
	return min(every, s.Steps/s.SampleEvery*s.SampleEvery)
}
