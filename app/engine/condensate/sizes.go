package condensate

import (
	"math"

	"molrun/app/engine/md"
)

// sizeBlocks is the number of blocks of a replica's production for block averaging.
const sizeBlocks = 32

// sizes accumulates the radius of gyration of chains by their position along z, since the
// phases are known only at the end.
type sizes struct {
	*system
	bins   int
	frames int64
	count  []float64 // by block, component and layer
	sum    []float64 // nm
}

func newSizes(y *system) *sizes {
	s := &sizes{system: y, bins: max(1, min(historyBins, int(y.Box.Z)))}
	n := sizeBlocks * len(y.Components) * s.bins
	s.count, s.sum = make([]float64, n), make([]float64, n)
	return s
}

// addFrame adds a frame, given the center and the radius of gyration of each chain.
func (s *sizes) addFrame(centres []md.Vec, radii []float64) {
	block := int(min(sizeBlocks-1, s.frames*sizeBlocks/s.plan.samples()))
	s.frames++
	for k, c := range centres {
		bin := min(s.bins-1, max(0, int((c.Z/s.Box.Z+0.5)*float64(s.bins))))
		at := (block*len(s.Components)+s.kindOf[k])*s.bins + bin
		s.count[at]++
		s.sum[at] += radii[k]
	}
}

// meanSize returns the mean radius of gyration of a component in part of the box, with
// its error from block averaging.
func meanSize(replicas []*sizes, component int, in func(z float64) bool) md.Estimate {
	var all []md.Series
	for _, s := range replicas {
		series := md.NewSeries(sizeBlocks)
		for block := range sizeBlocks {
			var n, sum float64
			for bin := range s.bins {
				if z := ((float64(bin)+0.5)/float64(s.bins) - 0.5) * s.Box.Z; in(z) {
					at := (block*len(s.Components)+component)*s.bins + bin
					n, sum = n+s.count[at], sum+s.sum[at]
				}
			}
			if n > 0 {
				series.Add(sum / n)
			}
		}
		if series.Count() > 0 {
			all = append(all, series)
		}
	}
	if len(all) == 0 {
		return unknown
	}
	return toSamples(md.Pool(all), float64(replicas[0].plan.samples())/sizeBlocks)
}

// unknown is an estimate that the run does not determine.
var unknown = md.Estimate{Mean: math.NaN(), SE: math.NaN(), SD: math.NaN(), Independent: math.NaN(), Time: math.NaN(), Drift: math.NaN()}

func (s *sizes) archive(a *md.Archive) {
	a.Integer(&s.frames)
	for _, all := range [][]float64{s.count, s.sum} {
		for k := range all {
			a.Float(&all[k])
		}
	}
}
