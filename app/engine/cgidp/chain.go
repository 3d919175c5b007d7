package cgidp

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// maxModels is how many structures ensemble.pdb holds at most.
const maxModels = 100

// chain is the simulation of one sequence: its replicas and the folder of its
// results.
type chain struct {
	Sequence
	settings *Settings
	index    int // among the sequences
	model    *model
	plan     plan
	folder   string
	started  time.Time     // if this process has begun a replica
	wall     time.Duration // from the first start of a replica to the last end, pauses apart

	mu       sync.Mutex
	replicas []*replica // nil until started
	merged   int        // replicas whose pairs are in total, always the first ones
	total    *pairSums

	saving sync.Mutex // held while files are written
	final  *summary   // nil until all replicas are finished
}

func newChain(s *Settings, index int, dir string) *chain {
	q := s.Sequences[index]
	return &chain{
		Sequence: q,
		settings: s,
		index:    index,
		model:    newModel(q.Residues, s.conditions()),
		plan:     newPlan(s, &q),
		folder:   filepath.Join(dir, q.Name),
		replicas: make([]*replica, s.Replicas),
	}
}

// begin makes a replica ready to run, unless a checkpoint did so.
func (c *chain) begin(number int) (*replica, error) {
	if r := c.replica(number); r != nil {
		return r, nil
	}
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return nil, err
	}
	r, err := c.newReplica(number)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total == nil {
		c.total = newPairSums(c.model.size())
	}
	c.replicas[number-1] = r
	return r, nil
}

// replica is nil if it has not begun. The first one asked for starts the clock.
func (c *chain) replica(number int) *replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started.IsZero() {
		c.started = time.Now().Add(-c.wall)
	}
	return c.replicas[number-1]
}

// elapsed needs the lock.
func (c *chain) elapsed() time.Duration {
	if c.started.IsZero() {
		return c.wall
	}
	return time.Since(c.started)
}

// pending are the numbers of the replicas that are not finished.
func (c *chain) pending() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var numbers []int
	for k, r := range c.replicas {
		if r == nil || !r.finished() {
			numbers = append(numbers, k+1)
		}
	}
	return numbers
}

// end closes a replica and tells whether that completed the chain.
func (c *chain) end(r *replica) (complete bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.elapsed()
	before := c.merged
	c.mergeFinished()
	return before < c.merged && c.merged == len(c.replicas), r.trajectory.close()
}

// mergeFinished adds up the pairs of replicas in the order of their numbers,
// whichever ends first, since the sum depends on it in the last digits. It needs
// the lock.
func (c *chain) mergeFinished() {
	for c.merged < len(c.replicas) {
		next := c.replicas[c.merged]
		if next == nil || !next.finished() {
			break
		}
		c.total.merge(next.pairs)
		next.pairs = nil
		c.merged++
	}
}

// finished tells whether all steps of a replica are done.
func (r *replica) finished() bool {
	r.Lock()
	defer r.Unlock()
	return r.done()
}

// complete tells whether all replicas are finished.
func (c *chain) complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.merged == len(c.replicas)
}

// running are the replicas that were started, in order.
func (c *chain) running() []*replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.replicas), func(r *replica) bool { return r == nil })
}

// finish writes the final results and frees what is no longer needed. The
// checkpoint stays until all sequences are finished.
func (c *chain) finish() error {
	c.saving.Lock()
	defer c.saving.Unlock()
	final, err := c.save()
	if err != nil {
		return err
	}
	if err := c.saveCheckpoint(); err != nil {
		return err
	}
	c.final = &final
	c.total = nil
	for _, r := range c.replicas {
		r.rows, r.field = nil, nil
	}
	return nil
}

// saveSoFar writes the results and a checkpoint of a chain that has begun and is
// not finished.
func (c *chain) saveSoFar() error {
	c.saving.Lock()
	defer c.saving.Unlock()
	if c.final != nil || len(c.running()) == 0 {
		return nil
	}
	if _, err := c.save(); err != nil {
		return err
	}
	return c.saveCheckpoint()
}

// save writes all files but the trajectories, for the steps done so far.
func (c *chain) save() (summary, error) {
	res := c.results()
	s := c.summary(res)
	return s, errors.Join(
		writeFile(filepath.Join(c.folder, seriesFile), c.timeseries()),
		c.saveEnsemble(),
		c.saveMaps(res),
		c.saveRgPlot(res),
		writeJSON(filepath.Join(c.folder, summaryFile), s),
	)
}

func (c *chain) timeseries() []byte {
	b := []byte(seriesHeader)
	for _, r := range c.running() {
		r.Lock()
		b = append(b, r.rows...)
		r.Unlock()
	}
	return b
}

// frame is a place in a trajectory.
type frame struct {
	replica int // from 1
	index   int64
}

// ensembleFrames are evenly spaced among those after equilibration; without any,
// it is the last frame of each replica.
func (c *chain) ensembleFrames() []frame {
	var all []frame
	for _, r := range c.running() {
		r.Lock()
		frames := r.trajectory.frames
		r.Unlock()
		first := min(c.plan.discarded/c.plan.frameEvery, frames-1)
		for k := max(0, first); k < frames; k++ {
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

// saveEnsemble writes nothing before the first frame: readers take a file without
// models for a damaged one.
func (c *chain) saveEnsemble() error {
	var models [][]vec
	for _, f := range c.ensembleFrames() {
		x, err := c.readFrame(f)
		if err != nil {
			return err
		}
		models = append(models, x)
	}
	if len(models) == 0 {
		return nil
	}
	return writeFile(filepath.Join(c.folder, ensembleFile), ensemblePDB(c.model.types, models))
}

func (c *chain) readFrame(f frame) ([]vec, error) {
	file, err := os.Open(filepath.Join(c.folder, trajectoryName(f.replica)))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readFrame(file, c.model.size(), f.index)
}

// saveMaps writes what is known of pairs, once there is something.
func (c *chain) saveMaps(res results) error {
	if res.pairs.frames == 0 {
		return nil
	}
	picture, err := c.distancePlot(res.pairs)
	if err != nil {
		return err
	}
	files := []struct {
		name    string
		content []byte
	}{
		{distanceFile, matrix(c.model.size(), res.pairs.meanDistance)},
		{contactFile, matrix(c.model.size(), res.pairs.contact)},
		{scalingFile, scalingTable(res.rms, res.scaling)},
		{distancePlotFile, picture},
	}
	for _, t := range files {
		if err := writeFile(filepath.Join(c.folder, t.name), t.content); err != nil {
			return err
		}
	}
	return nil
}

func (c *chain) saveRgPlot(res results) error {
	content, err := c.rgPlot(res)
	if err != nil || content == nil {
		return err
	}
	return writeFile(filepath.Join(c.folder, rgPlotFile), content)
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

func scalingTable(rms []float64, fit scaling) []byte {
	var b bytes.Buffer
	b.WriteString("separation,rms_distance_nm,fit_nm\n")
	for s := 1; s < len(rms); s++ {
		b.WriteString(strconv.Itoa(s) + "," + decimals(rms[s]) + "," + decimals(fit.at(s)) + "\n")
	}
	return b.Bytes()
}
