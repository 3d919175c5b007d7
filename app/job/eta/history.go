package eta

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// MaxRuns is how many runs of a class are remembered: the last ones.
const MaxRuns = 64

const (
	// minRuns is how many runs an estimate needs.
	minRuns = 3
	// similar is how many runs an estimate of a size is made of: those of the most
	// similar size among the recent ones. Machines have busy hours, so old runs say
	// less, except for how time grows with size.
	similar = 7
	recent  = 12
	// around is how many runs, of the most similar size, show how time grows.
	around = 32
	// apart is the least ratio of two sizes that says how time grows with size.
	apart = 1.2
	// steepest is the strongest growth: time in proportion to size to that power.
	steepest = 3
)

// Run is a finished run. Runs of one class are comparable: of the same program, on
// machines of the same kind.
type Run struct {
	Size    float64 // as the algorithm's file computes it; 0: unknown
	Seconds float64
}

// History is what is known of the runs of a class.
type History struct {
	runs     []Run
	declared Declared
}

// NewHistory learns from runs of the class of that name, oldest first.
func NewHistory(class string, runs []Run) *History { return &History{runs, declaredOf(class)} }

// Estimate returns what the history says of a run of this size. If it has too few runs,
// that is what its class is said to take, or nothing.
func (h *History) Estimate(size float64) Estimate {
	if h == nil {
		return Estimate{}
	}
	scaled := h.scaled(size)
	declared := h.declared.secondsFor(size)
	switch {
	case len(scaled) >= minRuns:
	case declared > 0:
		return Estimate{seconds: []float64{declared}, declared: true}
	default:
		return Estimate{}
	}
	slices.Sort(scaled)
	return Estimate{seconds: scaled}
}

// scaled returns how long the runs of the most similar sizes would have taken at this
// size. If the size is unknown, it returns the runs of unknown size.
func (h *History) scaled(size float64) []float64 {
	var all []float64
	if size <= 0 {
		for _, r := range h.runs {
			if r.Size <= 0 {
				all = append(all, r.Seconds)
			}
		}
		return all
	}
	sized := slices.DeleteFunc(slices.Clone(h.runs), func(r Run) bool { return r.Size <= 0 })
	power := growth(closest(sized, size, around))
	for _, r := range closest(sized[max(0, len(sized)-recent):], size, similar) {
		all = append(all, r.Seconds*math.Pow(size/r.Size, power))
	}
	return all
}

// closest returns the n runs of the most similar size.
func closest(runs []Run, size float64, n int) []Run {
	sorted := slices.SortedStableFunc(slices.Values(runs), func(a, b Run) int {
		return cmp.Compare(distance(a.Size, size), distance(b.Size, size))
	})
	return sorted[:min(n, len(sorted))]
}

func distance(a, b float64) float64 { return math.Abs(math.Log(a / b)) }

// growth returns the median slope between all pairs of runs, in logarithms
// (Theil-Sen), and 1, in proportion, if their sizes hardly differ.
func growth(runs []Run) float64 {
	var slopes []float64
	for i, a := range runs {
		for _, b := range runs[:i] {
			if a.Size > 0 && b.Size > 0 && a.Seconds > 0 && b.Seconds > 0 && distance(a.Size, b.Size) >= math.Log(apart) {
				slopes = append(slopes, math.Log(a.Seconds/b.Seconds)/math.Log(a.Size/b.Size))
			}
		}
	}
	if len(slopes) < minRuns {
		return 1
	}
	slices.Sort(slopes)
	return min(max(median(slopes), 0), steepest)
}

// median returns the middle of sorted numbers.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Estimate is what past runs say of how long a job runs.
type Estimate struct {
	seconds  []float64 // how long each would have taken, sorted; empty: unknown
	declared bool      // it is not made of runs
}

// Known reports whether there is an estimate.
func (e Estimate) Known() bool { return len(e.seconds) > 0 }

// Runs returns how many runs the estimate is made of.
func (e Estimate) Runs() int {
	if e.declared {
		return 0
	}
	return len(e.seconds)
}

// Basis says what the estimate is made of, "" if there is none.
func (e Estimate) Basis(typ, version string) string {
	if !e.Known() {
		return ""
	}
	if e.declared {
		return fmt.Sprintf("the algorithm file of %s %s", typ, version)
	}
	return fmt.Sprintf("%d runs of %s %s", len(e.seconds), typ, version)
}

// Seconds returns the median run time, or the one that is said.
func (e Estimate) Seconds() float64 { return median(e.seconds) }

// Left returns how long a job still runs that has run for some time: the median of the
// runs that took longer; false if these are too few.
func (e Estimate) Left(elapsed float64) (seconds float64, known bool) {
	longer, _ := slices.BinarySearch(e.seconds, elapsed)
	rest := e.seconds[longer:]
	if len(rest) < minRuns {
		return 0, false
	}
	return median(rest) - elapsed, true
}
