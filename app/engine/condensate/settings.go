package condensate

import (
	"time"

	"molrun/app/engine/md"
)

// Protocol is what the box is for.
type Protocol string

// The protocols.
const (
	Slab   Protocol = "slab"   // a dense phase beside a dilute one, in a long box
	Bulk   Protocol = "bulk"   // one phase of a given concentration
	Dilute Protocol = "dilute" // a few chains that meet
)

// Settings are complete and within their bounds.
type Settings struct {
	Components    []Component
	Protocol      Protocol
	Box           md.Vec // nm
	Conditions    md.Conditions
	Steps         int64   // per replica, equilibration included
	Equilibration float64 // fraction of the steps that is discarded
	Replicas      int     // independent runs
	Seed          uint64
	SampleEvery   int64 // steps between samples of the observables
	FrameEvery    int64 // steps between frames of the trajectory
	Cores         int   // that share the work of a step
	Warnings      []string

	Molrun string `json:"-"` // version of the program, for the results

	fasta string // reference to the FASTA file, if the sequences come from one
}

// Component is a number of equal chains.
type Component struct {
	Name     string // unique
	Residues string // one-letter code, upper case
	Copies   int
}

// chains is the number of chains.
func (s *Settings) chains() int {
	n := 0
	for _, c := range s.Components {
		n += c.Copies
	}
	return n
}

// beads is the number of residues of all chains.
func (s *Settings) beads() int {
	n := 0
	for _, c := range s.Components {
		n += c.Copies * len(c.Residues)
	}
	return n
}

// longest is the number of residues of the longest chain.
func (s *Settings) longest() int {
	n := 0
	for _, c := range s.Components {
		n = max(n, len(c.Residues))
	}
	return n
}

// mixture returns the chains in their box.
func (s *Settings) mixture() *md.Mixture {
	var all []md.Component
	for _, c := range s.Components {
		all = append(all, md.Component{Model: md.NewModel(c.Residues, s.Conditions), Copies: c.Copies})
	}
	return md.NewMixture(all, s.Box)
}

// mass is that of all chains in g/mol.
func (s *Settings) mass() float64 {
	sum := 0.0
	for _, c := range s.Components {
		sum += float64(c.Copies) * md.NewModel(c.Residues, s.Conditions).TotalMass()
	}
	return sum
}

// What a step takes on one core, for each bead of a dense phase, and how much of the work
// another core takes over.
const (
	secondsOfBead = 0.31e-6
	efficiency    = 0.85
)

// Estimate returns about how long a run takes on an idle machine.
func (s *Settings) Estimate() time.Duration {
	cores := 1 + efficiency*float64(s.Cores-1)
	seconds := float64(s.Replicas) * float64(s.Steps) * float64(s.beads()) * secondsOfBead / cores
	return time.Duration(seconds * float64(time.Second))
}

// discarded is the number of steps of equilibration.
func (s *Settings) discarded() int64 { return int64(s.Equilibration*float64(s.Steps) + 0.5) }
