package condensate

import (
	"time"

	"molrun/app/engine/md"
)

// Protocol is the kind of simulation.
type Protocol string

// Protocols.
const (
	Slab   Protocol = "slab"   // coexisting dense and dilute phases in a long box
	Bulk   Protocol = "bulk"   // one phase at a given concentration
	Dilute Protocol = "dilute" // a few chains in solution
)

// Settings are complete, valid settings.
type Settings struct {
	Components    []Component
	Protocol      Protocol
	Box           md.Vec // nm
	Conditions    md.Conditions
	Steps         int64   // per replica, including equilibration
	Equilibration float64 // fraction of the steps to discard
	Replicas      int     // independent runs
	Seed          uint64
	SampleEvery   int64 // steps between samples of the observables
	FrameEvery    int64 // steps between frames of the trajectory
	Cores         int   // cores that share the work of a step
	Warnings      []string

	Molrun string `json:"-"` // version of molrun, for the results

	fasta string // reference to the FASTA file that holds the sequences, if any
}

// Component is a number of identical chains.
type Component struct {
	Name     string // unique
	Residues string // one-letter code, upper case
	Copies   int
}

func (s *Settings) chains() int {
	n := 0
	for _, c := range s.Components {
		n += c.Copies
	}
	return n
}

// beads returns the number of residues of all chains.
func (s *Settings) beads() int {
	n := 0
	for _, c := range s.Components {
		n += c.Copies * len(c.Residues)
	}
	return n
}

// longest returns the number of residues of the longest chain.
func (s *Settings) longest() int {
	n := 0
	for _, c := range s.Components {
		n = max(n, len(c.Residues))
	}
	return n
}

// mixture returns the chains and their box.
func (s *Settings) mixture() *md.Mixture {
	var all []md.Component
	for _, c := range s.Components {
		all = append(all, md.Component{Model: md.NewModel(c.Residues, s.Conditions), Copies: c.Copies})
	}
	return md.NewMixture(all, s.Box)
}

// mass returns the mass of all chains in g/mol.
func (s *Settings) mass() float64 {
	sum := 0.0
	for _, c := range s.Components {
		sum += float64(c.Copies) * md.NewModel(c.Residues, s.Conditions).TotalMass()
	}
	return sum
}

// The time of a step on one core, per bead of a dense phase, and the parallel efficiency
// of each additional core.
const (
	secondsOfBead = 0.31e-6
	efficiency    = 0.85
)

// Estimate returns the approximate duration of a run on an idle machine.
func (s *Settings) Estimate() time.Duration {
	cores := 1 + efficiency*float64(s.Cores-1)
	seconds := float64(s.Replicas) * float64(s.Steps) * float64(s.beads()) * secondsOfBead / cores
	return time.Duration(seconds * float64(time.Second))
}

// discarded returns the number of equilibration steps.
func (s *Settings) discarded() int64 { return int64(s.Equilibration*float64(s.Steps) + 0.5) }
