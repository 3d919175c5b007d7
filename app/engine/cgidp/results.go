package cgidp

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"molrun/app/engine/md"
	"molrun/app/engine/plot"
	"molrun/app/engine/store"
	"molrun/app/engine/trajectory"
)

// results are what the replicas of a system have shown so far.
type results struct {
	complete         bool
	rg, ree, kinetic md.Estimate
	pairs            *md.PairSums
	rms              []float64
	scaling          md.Scaling
	nuSE             float64
	steps            int64         // of all replicas
	busy             time.Duration // of all replicas
	wall             time.Duration
	replicas         []recorded // those that have begun
}

// recorded is what a replica has written.
type recorded struct {
	number int    // from 1
	rows   []byte // lines of timeseries.csv
	frames int64  // of its trajectory
}

// write replaces all files of a system but trajectories and checkpoints.
func (s *system) write(res *results) (*summary, error) {
	sum := s.summary(res)
	err := errors.Join(
		s.writeTimeseries(res),
		s.writeEnsemble(res),
		s.writePairs(res),
		s.writeRgPlot(res),
		store.WriteJSON(filepath.Join(s.folder, summaryFile), sum),
	)
	return sum, err
}

func (s *system) writeTimeseries(res *results) error {
	b := []byte(seriesHeader)
	for _, r := range res.replicas {
		b = append(b, r.rows...)
	}
	return store.WriteFile(filepath.Join(s.folder, seriesFile), b)
}

// maxModels is the largest number of structures in ensemble.pdb.
const maxModels = 100

// frame is a place in a trajectory.
type frame struct {
	replica int // from 1
	index   int64
}

// ensembleFrames are evenly spaced among those after equilibration; before that,
// they are the last frames of the replicas.
func (s *system) ensembleFrames(res *results) []frame {
	var all []frame
	for _, r := range res.replicas {
		first := min(s.plan.discarded/s.plan.frameEvery, r.frames-1)
		for k := max(0, first); k < r.frames; k++ {
			all = append(all, frame{r.number, k})
		}
	}
	models := min(maxModels, len(all))
	picked := make([]frame, models)
	for k := range picked {
		picked[k] = all[(2*k+1)*len(all)/(2*models)]
	}
	return picked
}

// writeEnsemble writes nothing before the first frame: readers take a file without
// models for a damaged one.
func (s *system) writeEnsemble(res *results) error {
	var models [][]md.Vec
	for _, f := range s.ensembleFrames(res) {
		x, err := s.readFrame(f)
		if err != nil {
			return err
		}
		models = append(models, x)
	}
	if len(models) == 0 {
		return nil
	}
	return store.WriteFile(filepath.Join(s.folder, ensembleFile), trajectory.ModelsPDB([]string{s.Residues}, models))
}

func (s *system) readFrame(f frame) ([]md.Vec, error) {
	file, err := os.Open(filepath.Join(s.folder, trajectoryName(f.replica)))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return trajectory.ReadFrame(file, s.model.Size(), md.Vec{}, f.index)
}

// writePairs writes the averages over pairs, once there are any.
func (s *system) writePairs(res *results) error {
	if res.pairs.Frames() == 0 {
		return nil
	}
	n := s.model.Size()
	picture, err := plot.DistanceMap(s.Name, n, res.pairs.MeanDistance)
	if err != nil {
		return err
	}
	files := []struct {
		name    string
		content []byte
	}{
		{distanceFile, matrix(n, res.pairs.MeanDistance)},
		{contactFile, matrix(n, res.pairs.Contact)},
		{scalingFile, scalingTable(res.rms, res.scaling)},
		{distancePlotFile, picture},
	}
	for _, t := range files {
		if err := store.WriteFile(filepath.Join(s.folder, t.name), t.content); err != nil {
			return err
		}
	}
	return nil
}

// matrix is a table without header: row i, column j.
func matrix(n int, at func(i, j int) float64) []byte {
	var b []byte
	for i := range n {
		for j := range n {
			if j > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendFloat(b, at(i, j), 'f', 4, 64)
		}
		b = append(b, '\n')
	}
	return b
}

func scalingTable(rms []float64, fit md.Scaling) []byte {
	var b bytes.Buffer
	b.WriteString("separation,rms_distance_nm,fit_nm\n")
	for s := 1; s < len(rms); s++ {
		b.WriteString(strconv.Itoa(s) + "," + store.Decimals(rms[s]) + "," + store.Decimals(fit.At(s)) + "\n")
	}
	return b.Bytes()
}

// writeRgPlot writes nothing before the first sample.
func (s *system) writeRgPlot(res *results) error {
	g := plot.Rg{
		Title:     s.Name,
		Replicas:  s.settings.Replicas,
		Steps:     s.plan.steps,
		Discarded: s.plan.discarded,
		Mean:      res.rg.Mean,
		SE:        res.rg.SE,
	}
	for _, r := range res.replicas {
		if curve := rgCurve(r.rows); len(curve) > 0 {
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
	return store.WriteFile(filepath.Join(s.folder, rgPlotFile), content)
}

// rgCurve takes steps and Rg from rows of timeseries.csv.
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
