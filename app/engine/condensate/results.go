package condensate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"molrun/app/engine/md"
	"molrun/app/engine/plot"

	"molrun/app/engine/store"
	"molrun/app/engine/trajectory"
)

// profiles are those of the replicas that have some frames after equilibration; while there
// are none, those of equilibration, with evaluated false.
func (r *run) profiles() (all []*Profile, evaluated bool) {
	for _, rep := range r.replicas {
		if rep.profile.Frames() > 0 {
			all = append(all, rep.profile)
		}
	}
	if len(all) > 0 || len(r.replicas) == 0 || r.replicas[0].track == nil || r.replicas[0].track.Frames() == 0 {
		return all, true
	}
	return []*Profile{r.replicas[0].track}, false
}

// write replaces all files but trajectories and checkpoints.
func (r *run) write(complete bool) (*summary, error) {
	s := r.summary(complete)
	return s, errors.Join(
		store.WriteFile(filepath.Join(r.folder, seriesFile), append([]byte(seriesHeader), r.rows...)),
		store.WriteFile(filepath.Join(r.folder, centresFile), append([]byte(centresHeader), r.centred...)),
		r.writeProfile(s),
		r.writeHistory(),
		r.writeContacts(complete),
		r.writeEnsemble(),
		store.WriteFile(filepath.Join(r.folder, componentsFile), s.table()),
		store.WriteJSON(filepath.Join(r.folder, summaryFile), s),
		store.WriteJSON(filepath.Join(r.folder, metricsFile), s.metrics()),
	)
}

// writeProfile writes the concentrations along z, once there are any.
func (r *run) writeProfile(s *summary) error {
	all, _ := r.profiles()
	if r.Protocol != Slab || len(all) == 0 {
		return nil
	}
	picture := plot.Profile{Title: "Concentration along the box"}
	b := []byte("z_nm,total_mg_mL")
	for k, c := range r.Components {
		b = append(b, ","+c.Name+"_mM"...)
		picture.Curves = append(picture.Curves, plot.Curve{Name: r.Components[k].Name})
	}
	b = append(b, '\n')
	for _, layer := range Mean(all) {
		total, fields := 0.0, ""
		for k, level := range layer.MilliMol {
			mass := level * r.mix.Components[k].Model.TotalMass() / 1000
			total += mass
			fields += "," + strconv.FormatFloat(level, 'f', 6, 64)
			c := &picture.Curves[k]
			c.Z, c.Level = append(c.Z, layer.Z), append(c.Level, mass)
		}
		b = fmt.Appendf(b, "%.4f,%.5f%s\n", layer.Z, total, fields)
	}
	if s.phases.Separated {
		picture.Edges = []float64{s.phases.Lower.Z, s.phases.Upper.Z}
	}
	image, err := picture.SVG()
	return errors.Join(err,
		store.WriteFile(filepath.Join(r.folder, profileFile), b),
		store.WriteFile(filepath.Join(r.folder, profilePlot), image))
}

// writeHistory writes a row for each hundredth of the run so far, without a header.
func (r *run) writeHistory() error {
	rows := r.history.seen()
	if r.Protocol != Slab || rows == 0 {
		return nil
	}
	return store.WriteFile(filepath.Join(r.folder, historyFile), matrix(rows, r.history.bins, r.history.at))
}

// bigMap is how many values a map of contacts has that is written in the end only.
const bigMap = 250_000

// writeContacts writes a map for each two components, once there are frames.
func (r *run) writeContacts(complete bool) error {
	c := r.contacts
	if c.counts == nil || c.frames == 0 {
		return nil
	}
	for k, a := range r.Components {
		for l := k; l < len(r.Components); l++ {
			b := r.Components[l]
			if !complete && len(a.Residues)*len(b.Residues) > bigMap {
				continue
			}
			at := func(i, j int) float64 { return c.mean(k, l, i, j) }
			picture := plot.Map{
				Title: "Contacts between chains", Across: len(a.Residues), Up: len(b.Residues),
				AcrossLabel: "residue of " + a.Name, UpLabel: "residue of " + b.Name, Unit: "contacts of a residue of " + a.Name, At: at,
			}
			image, err := picture.PNG()
			path := filepath.Join(r.folder, contactName(a, b))
			err = errors.Join(err, store.WriteFile(path+".png", image),
				store.WriteFile(path+".csv", matrix(len(a.Residues), len(b.Residues), at)))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// matrix is a table without header: row i, column j.
func matrix(rows, columns int, at func(i, j int) float64) []byte {
	var b []byte
	for i := range rows {
		for j := range columns {
			if j > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendFloat(b, at(i, j), 'g', 5, 64)
		}
		b = append(b, '\n')
	}
	return b
}

// Structures in ensemble.pdb: so many at most, with so many atoms together.
const (
	maxModels = 100
	maxAtoms  = 200_000
)

// writeEnsemble writes evenly spaced frames after equilibration; before that, the last
// frame. It writes nothing before the first: readers take a file without models for a
// damaged one.
func (r *run) writeEnsemble() error {
	type frame struct {
		of    *replica
		index int64
	}
	var all []frame
	for _, rep := range r.replicas {
		frames := rep.trajectory.Frames
		first := min(r.plan.discarded/r.plan.frameEvery, frames-1)
		for k := max(0, first); k < frames; k++ {
			all = append(all, frame{rep, k})
		}
	}
	var models [][]md.Vec
	n := min(len(all), maxModels, max(1, maxAtoms/r.mix.Size()))
	for k := range n {
		picked := all[(2*k+1)*len(all)/(2*n)]
		x, err := r.readFrame(picked.of, picked.index)
		if err != nil {
			return err
		}
		models = append(models, x)
	}
	if n == 0 {
		return nil
	}
	return store.WriteFile(filepath.Join(r.folder, ensembleFile), trajectory.ModelsPDB(r.letters, models))
}

func (r *run) readFrame(rep *replica, index int64) ([]md.Vec, error) {
	file, err := os.Open(rep.trajectoryPath())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return trajectory.ReadFrame(file, r.mix.Size(), r.Box, index)
}
