package cgidp

import (
	"bytes"
	"errors"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"molrun/app/engine/md"
	"molrun/app/engine/plot"
	"molrun/app/engine/store"
)

// results are the pooled results of the replicas so far.
type results struct {
	complete         bool
	converged        bool
	rg, ree, kinetic md.Estimate
	pairs            *md.PairSums
	rms              []float64
	scaling          md.Scaling
	nuSE             float64
	steps            int64         // of all replicas
	busy             time.Duration // of all replicas
	wall             time.Duration
}

// results pools the results of the replicas so far.
func (c *chain) results(replicas []*replica, complete bool) *results {
	res := &results{complete: complete, pairs: md.NewPairSums(c.system.model.Size()), wall: c.Wall()}
	var rg, ree, kinetic []md.Series
	for _, r := range replicas {
		r.Lock()
		rg, ree, kinetic = append(rg, r.rg), append(ree, r.ree), append(kinetic, r.kinetic)
		res.steps += r.Step()
		res.busy += r.Busy
		r.Unlock()
	}
	res.rg, res.ree, res.kinetic = md.Pool(rg), md.Pool(ree), md.Pool(kinetic)
	c.addPairs(res, replicas)
	res.rms = res.pairs.RMS()
	res.scaling = md.FitScaling(res.rms)
	exponent := exponentError(res, replicas)
	if res.converged = complete && c.system.isConverged(res.rg, res.ree); !res.converged {
		res.rg, res.ree, res.kinetic, exponent = res.rg.Widened(), res.ree.Widened(), res.kinetic.Widened(), exponent.Widened()
	}
	res.nuSE = exponent.SE
	return res
}

// exponentError returns an estimate with the standard error of the scaling exponent. It
// is NaN until all replicas have finished, because it requires one fit per block of each
// replica.
func exponentError(res *results, replicas []*replica) md.Estimate {
	if !res.complete || math.IsNaN(res.scaling.Nu) {
		return md.Estimate{SE: math.NaN(), Drift: math.NaN()}
	}
	var nu []md.Series
	for _, r := range replicas {
		nu = append(nu, r.parts.Nu())
	}
	return md.Pool(nu)
}

// addPairs adds the pairs of all replicas, finished or not.
func (c *chain) addPairs(res *results, replicas []*replica) {
	c.mu.Lock()
	defer c.mu.Unlock()
	res.pairs.Merge(c.total)
	for _, r := range replicas {
		r.Lock()
		if r.pairs != nil {
			res.pairs.Merge(r.pairs)
		}
		r.Unlock()
	}
}

// maxModels is the maximum number of models in ensemble.pdb.
const maxModels = 100

// writeFiles rewrites all files of a chain except trajectories and checkpoints.
func (c *chain) writeFiles(res *results) (*summary, error) {
	y, sum := c.system, c.system.summary(res)
	return sum, errors.Join(
		c.WriteSeries(seriesHeader),
		c.WriteEnsemble([]string{y.Residues}, y.plan.discarded/y.plan.frameEvery, maxModels),
		c.writePairs(res),
		c.writeRgPlot(res),
		store.WriteJSON(filepath.Join(c.Folder, summaryFile), sum),
	)
}

// writePairs writes the pair averages, if there are any.
func (c *chain) writePairs(res *results) error {
	if res.pairs.Frames() == 0 {
		return nil
	}
	n := c.system.model.Size()
	picture, err := plot.DistanceMap(c.Name, n, res.pairs.MeanDistance)
	if err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(c.Folder, name) }
	return errors.Join(
		store.WriteMatrix(in(distanceFile), n, n, 'f', 4, res.pairs.MeanDistance),
		store.WriteMatrix(in(contactFile), n, n, 'f', 4, res.pairs.Contact),
		store.WriteFile(in(scalingFile), scalingTable(res.rms, res.scaling)),
		store.WriteFile(in(distancePlotFile), c.system.origin().PNG(picture)),
	)
}

func scalingTable(rms []float64, fit md.Scaling) []byte {
	var b bytes.Buffer
	b.WriteString("separation,rms_distance_nm,fit_nm\n")
	for s := 1; s < len(rms); s++ {
		b.WriteString(strconv.Itoa(s) + "," + store.Decimals(rms[s]) + "," + store.Decimals(fit.At(s)) + "\n")
	}
	return b.Bytes()
}

// writeRgPlot plots Rg. It writes nothing before the first sample.
func (c *chain) writeRgPlot(res *results) error {
	g := plot.Rg{
		Title:     c.Name + ", " + c.system.settings.Describe(),
		Replicas:  c.Count,
		Steps:     c.Steps,
		Discarded: c.system.plan.discarded,
		Mean:      res.rg.Mean,
		SE:        res.rg.SE,
	}
	for _, rows := range c.Rows() {
		if curve := rgCurve(rows); len(curve) > 0 {
			g.Curves = append(g.Curves, curve)
		}
	}
	if len(g.Curves) == 0 {
		return nil
	}
	content, err := g.SVG()
	if err != nil {
		return err
	}
	return store.WriteFile(filepath.Join(c.Folder, rgPlotFile), c.system.origin().SVG(content))
}

// rgCurve extracts steps and Rg from rows of timeseries.csv.
func rgCurve(rows []byte) []plot.Point {
	var curve []plot.Point
	for line := range strings.Lines(string(rows)) {
		fields := strings.SplitN(line, ",", 5)
		if len(fields) < 5 {
			continue
		}
		step, _ := strconv.ParseFloat(fields[0], 64)
		rg, _ := strconv.ParseFloat(fields[3], 64)
		curve = append(curve, plot.Point{Step: step, Rg: rg})
	}
	return curve
}
