package condensate

import (
	"math"

	"molrun/app/engine/md"
)

const (
	historyRows = 100 // maximum; each row covers an equal part of the run
	historyBins = 400 // maximum, along z
	leastBin    = 0.5 // nm, minimum width
)

// history is the concentration profile along z over the course of the run, summed over
// replicas.
type history struct {
	*system
	bins   int
	frames []int64     // per row
	mass   [][]float64 // sums in g/mol
}

func newHistory(y *system) *history {
	h := &history{system: y, bins: max(1, min(historyBins, int(y.Box.Z/leastBin)))}
	h.frames = make([]int64, min(historyRows, y.plan.steps/y.plan.sampleEvery))
	for range h.frames {
		h.mass = append(h.mass, make([]float64, h.bins))
	}
	return h
}

// addSample adds a sample, shifted along z by moved.
func (h *history) addSample(step int64, x []md.Vec, moved float64) {
	samples := h.plan.steps / h.plan.sampleEvery
	row := (step/h.plan.sampleEvery - 1) * int64(len(h.frames)) / samples
	h.frames[row]++
	mass := h.mass[row]
	for k := range h.mix.Chains() {
		model := h.mix.Chain(k)
		for i, v := range md.PartOf(h.mix, x, k) {
			z := (v.Z + moved) / h.Box.Z
			mass[min(h.bins-1, int((z-math.Floor(z))*float64(h.bins)))] += model.Mass(i)
		}
	}
}

// at returns the concentration in mg/mL.
func (h *history) at(row, bin int) float64 {
	volume := h.Box.X * h.Box.Y * h.Box.Z / float64(h.bins)
	return h.mass[row][bin] / float64(h.frames[row]) / volume * milligramsPerMillilitre
}

// filledRows returns the number of leading rows that have frames.
func (h *history) filledRows() int {
	n := 0
	for n < len(h.frames) && h.frames[n] > 0 {
		n++
	}
	return n
}

func (h *history) archive(a *md.Archive) {
	for k := range h.frames {
		a.Integer(&h.frames[k])
		for i := range h.mass[k] {
			a.Float(&h.mass[k][i])
		}
	}
}
