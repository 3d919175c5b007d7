package cgidp

import (
	"errors"
	"io/fs"
	"math"

	"molrun/app/engine/md"
	"molrun/app/engine/store"
)

// finish writes the final results and frees what is no longer needed. The
// checkpoint stays until all sequences are finished.
func (c *chain) finish() error {
	c.saving.Lock()
	defer c.saving.Unlock()
	final, err := c.save()
	if err != nil {
		return err
	}
	c.final = final
	c.total = nil
	for _, r := range c.replicas {
		r.release()
	}
	return nil
}

// saveSoFar writes the results and a checkpoint of a chain that has begun and is
// not finished.
func (c *chain) saveSoFar() error {
	c.saving.Lock()
	defer c.saving.Unlock()
	if c.final != nil || len(c.begun()) == 0 {
		return nil
	}
	_, err := c.save()
	return err
}

// save writes all files but the trajectories, for the steps done so far.
func (c *chain) save() (*summary, error) {
	s, err := c.system.write(c.results())
	if err != nil {
		return nil, err
	}
	return s, c.saveCheckpoint()
}

// results pools what the replicas have shown so far.
func (c *chain) results() *results {
	res := &results{complete: c.complete(), pairs: md.NewPairSums(c.model.Size())}
	var rg, ree, kinetic []md.Series
	for _, r := range c.begun() {
		r.Lock()
		rg, ree, kinetic = append(rg, r.rg), append(ree, r.ree), append(kinetic, r.kinetic)
		res.steps += r.Step()
		res.busy += r.busy
		res.replicas = append(res.replicas, recorded{r.number, r.rows, r.trajectory.Frames})
		r.Unlock()
	}
	res.rg, res.ree, res.kinetic = md.Pool(rg), md.Pool(ree), md.Pool(kinetic)
	c.addPairs(res)
	res.rms = res.pairs.RMS()
	res.scaling = md.FitScaling(res.rms)
	res.nuSE = c.exponentError(res)
	return res
}

// exponentError is the standard error of the scaling exponent, NaN until all replicas are finished:
// it takes as many fits as there are parts of replicas.
func (c *chain) exponentError(res *results) float64 {
	if !res.complete || math.IsNaN(res.scaling.Nu) {
		return math.NaN()
	}
	var nu []md.Series
	for _, r := range c.begun() {
		nu = append(nu, r.parts.Nu())
	}
	return md.Pool(nu).SE
}

// addPairs adds the pairs of all replicas, finished or not, and the wall time.
func (c *chain) addPairs(res *results) {
	c.mu.Lock()
	defer c.mu.Unlock()
	res.wall = c.wall
	res.pairs.Merge(c.total)
	for _, r := range c.replicas[c.merged:] {
		if r != nil {
			r.Lock()
			res.pairs.Merge(r.pairs)
			r.Unlock()
		}
	}
}

// saveCheckpoint replaces the checkpoint and keeps the one before. Whenever the
// machine stops, one of them is intact and the trajectories hold its frames.
func (c *chain) saveCheckpoint() error {
	content := c.checkpoint()
	for _, r := range c.begun() {
		if err := r.trajectory.Sync(); err != nil && !errors.Is(err, fs.ErrClosed) {
			return err
		}
	}
	return store.WriteCheckpoint(c.folder, content)
}

func (c *chain) checkpoint() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.elapsed()
	return store.NewCheckpoint(checkpointMark, c.settingsHash(), c.archive)
}
