package eta

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// MaxRuns is the number of most recent runs stored per class.
const MaxRuns = 64

const (
	// minRuns is the minimum number of runs for an estimate.
	minRuns = 3
	// similar is the number of runs that an estimate is based on: of the recent runs,
	// those of the most similar size. Machines have busy hours, so older runs are used
	// only to determine how the run time scales with size.
	similar = 7
	recent  = 12
	// scalingRuns is the number of runs used to estimate the scaling: those of the most
	// similar size.
	scalingRuns = 32
	// minSizeRatio is the minimum ratio of two sizes used to estimate the scaling.
	minSizeRatio = 1.2
	// maxExponent is the maximum scaling exponent.
	maxExponent = 3
)

// Run is a finished run. Runs of one class are comparable: of the same program, on
// machines of the same kind.
type Run struct {
	Size    float64 // computed by the algorithm file; 0 means unknown
	Seconds float64
}

// History holds the past runs of a class.
type History struct {
	runs     []Run
	declared Declared
}

// NewHistory returns a history of runs, oldest first, of the class with that name.
func NewHistory(class string, runs []Run) *History { return &History{runs, declaredOf(class)} }

// Estimate returns an estimate for a run of this size. With too few past runs it is the
// declared run time of the class, or unknown.
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

// scaled returns the run times of the most similarly sized runs, scaled to this size. If
// the size is unknown, it returns those of the runs of unknown size.
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
	power := growth(closest(sized, size, scalingRuns))
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

// growth returns the median slope of log time over log size for all pairs of runs
// (Theil–Sen), limited to 0 to maxExponent, or 1 (proportional) if too few pairs differ
// clearly in size.
func growth(runs []Run) float64 {
	var slopes []float64
	for i, a := range runs {
		for _, b := range runs[:i] {
			if a.Size > 0 && b.Size > 0 && a.Seconds > 0 && b.Seconds > 0 && distance(a.Size, b.Size) >= math.Log(minSizeRatio) {
				slopes = append(slopes, math.Log(a.Seconds/b.Seconds)/math.Log(a.Size/b.Size))
			}
		}
	}
	if len(slopes) < minRuns {
		return 1
	}
	slices.Sort(slopes)
	return min(max(median(slopes), 0), maxExponent)
}

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Estimate is an estimate of a job's run time.
type Estimate struct {
	seconds  []float64 // scaled past run times, sorted; empty means unknown
	declared bool      // whether it is the declared run time, not based on past runs
}

// Known reports whether there is an estimate.
func (e Estimate) Known() bool { return len(e.seconds) > 0 }

// Runs returns the number of runs that the estimate is based on.
func (e Estimate) Runs() int {
	if e.declared {
		return 0
	}
	return len(e.seconds)
}

// Basis describes what the estimate is based on; "" if there is none.
func (e Estimate) Basis(typ, version string) string {
	if !e.Known() {
		return ""
	}
	if e.declared {
		return fmt.Sprintf("the algorithm file of %s %s", typ, version)
	}
	return fmt.Sprintf("%d runs of %s %s", len(e.seconds), typ, version)
}

// Seconds returns the median run time, or the declared one.
func (e Estimate) Seconds() float64 { return median(e.seconds) }

// Left returns the remaining run time of a job after the elapsed time: the median of the
// runs that took longer, minus elapsed. It returns false if there are too few such runs.
func (e Estimate) Left(elapsed float64) (seconds float64, known bool) {
	longer, _ := slices.BinarySearch(e.seconds, elapsed)
	rest := e.seconds[longer:]
	if len(rest) < minRuns {
		return 0, false
	}
	return median(rest) - elapsed, true
}
