package cgidp

import (
	"math"
	"strings"
	"time"

	"molrun/app/engine/md"
)

// Settings are complete, valid settings. Run lengths that depend on the number of
// residues are in each Sequence.
type Settings struct {
	Sequences []Sequence
	md.Conditions
	Cores         int     // replicas and sequences computed in parallel
	Equilibration float64 // fraction of the steps to discard
	Replicas      int     // independent runs of each sequence
	Seed          uint64
	SampleEvery   int64 // steps between samples of the observables

	Molrun string `json:"-"` // version of molrun, for the results

	fasta string // reference to the FASTA file that holds the sequences, if any
}

// Sequence is one chain to simulate, with the settings that depend on its length.
type Sequence struct {
	Name       string // unique; also the name of its results folder
	Residues   string // one-letter code, upper case
	Steps      int64  // per replica, including equilibration
	FrameEvery int64  // steps between frames of the trajectory
	Warnings   []string
}

// Warnings returns the warnings about all sequences, without duplicates. A warning that
// does not apply to all sequences starts with the names of the affected sequences.
func (s *Settings) Warnings() []string {
	var all []warned
	for _, q := range s.Sequences {
		all = append(all, warned{q.Name, q.Warnings})
	}
	return mergeWarnings(all)
}

// warned holds the warnings about one sequence.
type warned struct {
	name  string
	texts []string
}

func mergeWarnings(all []warned) (texts []string) {
	names := map[string][]string{}
	for _, q := range all {
		for _, w := range q.texts {
			if names[w] == nil {
				texts = append(texts, w)
			}
			names[w] = append(names[w], q.name)
		}
	}
	for i, w := range texts {
		if len(names[w]) < len(all) {
			texts[i] = strings.Join(names[w], ", ") + ": " + w
		}
	}
	return texts
}

// Estimate returns the approximate duration of a run on an idle machine.
func (s *Settings) Estimate() time.Duration {
	total, longest := 0.0, 0.0
	for i := range s.Sequences {
		one := s.Sequences[i].cost()
		total += one * float64(s.Replicas)
		longest = max(longest, one)
	}
	seconds := max(longest, total/float64(s.Cores))
	return time.Duration(seconds * float64(time.Second))
}

// cost returns the approximate time of one replica on one core, in seconds.
func (q *Sequence) cost() float64 {
	return float64(q.Steps) * 0.08e-6 * math.Pow(float64(len(q.Residues)), 1.1)
}

// discarded returns the number of equilibration steps.
func (s *Settings) discarded(steps int64) int64 {
	return int64(math.Round(s.Equilibration * float64(steps)))
}
