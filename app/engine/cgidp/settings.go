package cgidp

import (
	"math"
	"strings"
	"time"

	"molrun/app/engine/md"
)

// Settings are complete and within their bounds. Lengths of runs that depend on
// the number of residues are in each Sequence.
type Settings struct {
	Sequences []Sequence
	md.Conditions
	Cores         int     // replicas and sequences computed at once
	Equilibration float64 // fraction of the steps that is discarded
	Replicas      int     // independent runs of each sequence
	Seed          uint64
	SampleEvery   int64 // steps between samples of the observables

	Molrun string `json:"-"` // version of the program, for the results

	fasta string // reference to the FASTA file, if the sequences come from one
}

// Sequence is one chain to simulate, with the settings that depend on its length.
type Sequence struct {
	Name       string // unique; the folder of its results
	Residues   string // one-letter code, upper case
	Steps      int64  // per replica, equilibration included
	FrameEvery int64  // steps between frames of the trajectory
	Warnings   []string
}

// Warnings returns those of all sequences. A text that holds for several is given
// once; one that does not hold for all begins with the names it holds for.
func (s *Settings) Warnings() []string {
	var all []warned
	for _, q := range s.Sequences {
		all = append(all, warned{q.Name, q.Warnings})
	}
	return together(all)
}

// warned are the warnings about a sequence.
type warned struct {
	name  string
	texts []string
}

func together(all []warned) (texts []string) {
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

// Estimate returns about how long a run takes on an idle machine.
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

// cost is about how many seconds one replica takes on one core.
func (q *Sequence) cost() float64 {
	return float64(q.Steps) * 0.08e-6 * math.Pow(float64(len(q.Residues)), 1.1)
}

// discarded is the number of steps of equilibration.
func (s *Settings) discarded(steps int64) int64 {
	return int64(math.Round(s.Equilibration * float64(steps)))
}
