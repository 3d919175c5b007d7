package condensate

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"molrun/app/engine/plot"
	"molrun/app/engine/store"
)

// results holds the replicas that have started, whose results so far it evaluates.
type results struct {
	*simulation
	replicas []*replica
}

// profiles returns the profiles of the replicas that have frames after equilibration. If
// there are none, it returns the equilibration profile of the first replica, if any, with
// evaluated false.
func (r *results) profiles() (all []*Profile, evaluated bool) {
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

// writeFiles rewrites all files except trajectories and checkpoints.
func (r *results) writeFiles(complete bool) (*summary, error) {
	s := r.summary(complete)
	return s, errors.Join(
		r.WriteSeries(seriesHeader),
		r.writeCentres(),
		r.writeProfile(s),
		r.writeHistory(),
		r.writeContacts(complete),
		r.WriteEnsemble(r.letters, r.plan.discarded/r.plan.frameEvery, min(maxModels, max(1, maxAtoms/r.mix.Size()))),
		store.WriteCSV(filepath.Join(r.Folder, componentsFile), s.table()),
		store.WriteJSON(filepath.Join(r.Folder, summaryFile), s),
		store.WriteJSON(filepath.Join(r.Folder, metricsFile), s.metrics()),
	)
}

func (r *results) writeCentres() error {
	b := []byte(centresHeader)
	for _, rep := range r.replicas {
		b = append(b, rep.centred...)
	}
	return store.WriteFile(filepath.Join(r.Folder, centresFile), b)
}

// writeProfile writes the concentration profile along z, if there is one.
func (r *results) writeProfile(s *summary) error {
	all, _ := r.profiles()
	if r.Protocol != Slab || len(all) == 0 {
		return nil
	}
	picture := plot.Profile{Title: "Concentration along the box, " + r.Settings.Conditions.Describe()}
	b := []byte("z_nm,total_mg_mL")
	for k, c := range r.Components {
		b = append(b, ","+c.Name+"_mM"...)
		picture.Curves = append(picture.Curves, plot.Curve{Name: r.Components[k].Name})
	}
	b = append(b, '\n')
	for _, layer := range Mean(all...) {
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
		store.WriteFile(filepath.Join(r.Folder, profileFile), b),
		store.WriteFile(filepath.Join(r.Folder, profilePlot), r.origin().SVG(image)))
}

// writeHistory writes one row for each hundredth of the run completed so far, without a
// header.
func (r *results) writeHistory() error {
	rows := r.history.filledRows()
	if r.Protocol != Slab || rows == 0 {
		return nil
	}
	return store.WriteMatrix(filepath.Join(r.Folder, historyFile), rows, r.history.bins, 'g', 5, r.history.at)
}

// largeMap is the number of values above which a contact map is written only at the end.
const largeMap = 250_000

// writeContacts writes one map per pair of components, if there are frames.
func (r *results) writeContacts(complete bool) error {
	c := r.contacts
	if c.counts == nil || c.frames == 0 {
		return nil
	}
	for k, a := range r.Components {
		for l := k; l < len(r.Components); l++ {
			b := r.Components[l]
			if !complete && len(a.Residues)*len(b.Residues) > largeMap {
				continue
			}
			at := func(i, j int) float64 { return c.mean(k, l, i, j) }
			picture := plot.Map{
				Title: "Contacts between chains", Across: len(a.Residues), Up: len(b.Residues),
				AcrossLabel: "residue of " + a.Name, UpLabel: "residue of " + b.Name, Unit: "contacts of a residue of " + a.Name, At: at,
			}
			image, err := picture.PNG()
			path := filepath.Join(r.Folder, contactName(a, b))
			err = errors.Join(err, store.WriteFile(path+".png", r.origin().PNG(image)),
				store.WriteMatrix(path+".csv", len(a.Residues), len(b.Residues), 'g', 5, at))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Maximum number of models in ensemble.pdb, and of atoms in all models.
const (
	maxModels = 100
	maxAtoms  = 200_000
)
