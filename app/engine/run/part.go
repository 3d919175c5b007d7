package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"molrun/app/base/unit"
	"molrun/app/engine/md"
	"molrun/app/engine/store"
	"molrun/app/engine/trajectory"
)

// System is the system that the replicas of a part simulate. Write can be called while
// replicas are running, and locks them to read them. It is passed all replicas that have
// started, and no other replica starts before it returns.
type System[R Replica] interface {
	New(number int) R                     // creates a replica, for Start or for Archive and Resume
	Gather(begun []R)                     // merges finished replicas and releases memory they no longer need
	Archive(a *md.Archive)                // state shared by replicas
	Write(begun []R, complete bool) error // intermediate or final results
	Reset()                               // clears the state shared by replicas
}

// Part holds the replicas of one system, which have their own results folder and
// checkpoint.
type Part[R Replica] struct {
	System System[R]
	Name   string // sequence name, for the log; "" if the part is the whole run
	Folder string
	Count  int     // number of replicas
	Steps  int64   // per replica
	Cost   float64 // of a replica, relative to other parts
	Hash   []byte  // hash of the settings that affect results

	mu      sync.Mutex
	begun   []R
	ended   int
	started time.Time     // first start in this process, minus earlier wall time; zero before the first start
	wall    time.Duration // from the first start of a replica to the last end, excluding interruptions

	saving  sync.Mutex // held while files are written and while a replica starts; guards written
	written []written

	finished bool
}

// written is the state of a replica's output at the time of a save.
type written struct {
	*Base
	rows   []byte
	frames int64
}

// Begun returns the replicas that have started, in order, or none once the part has
// finished.
func (p *Part[R]) Begun() []R {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.begun)
}

// Wall returns the time from the first start of a replica to the last end or save,
// excluding interruptions.
func (p *Part[R]) Wall() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wall
}

// elapsed returns the current wall time. The caller must hold p.mu.
func (p *Part[R]) elapsed() time.Duration {
	if p.started.IsZero() {
		return p.wall
	}
	return time.Since(p.started)
}

// startReplica returns a replica that is ready to run: a new one, or one restored from a
// checkpoint. It waits for a save in progress, because a new replica would change the
// shared state while that is being written.
func (p *Part[R]) startReplica(number int) (r R, err error) {
	p.saving.Lock()
	defer p.saving.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started.IsZero() {
		p.started = time.Now().Add(-p.wall)
	}
	if number <= len(p.begun) {
		return p.begun[number-1], nil
	}
	if err := os.MkdirAll(p.Folder, 0o755); err != nil {
		return r, err
	}
	r = p.System.New(number)
	if err := r.Start(); err != nil {
		return r, err
	}
	p.begun = append(p.begun, r)
	return r, nil
}

// finishReplica closes a replica and, after the last one, finishes the part. The checkpoint
// is kept until all parts have finished.
func (p *Part[R]) finishReplica(r R) error {
	p.mu.Lock()
	p.wall = p.elapsed()
	p.ended++
	last := p.ended == p.Count
	p.System.Gather(p.begun)
	err := r.base().Trajectory.Close()
	p.mu.Unlock()
	if err != nil || !last {
		return err
	}
	p.saving.Lock()
	defer p.saving.Unlock()
	if err := p.saveAll(true); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished, p.begun, p.written = true, nil, nil
	p.System.Reset()
	return nil
}

// saveSoFar writes the results and a checkpoint of a part that has started but not
// finished.
func (p *Part[R]) saveSoFar() error {
	p.saving.Lock()
	defer p.saving.Unlock()
	if len(p.Begun()) == 0 {
		return nil
	}
	return p.saveAll(false)
}

// saveAll replaces the results and the checkpoint, and keeps the previous checkpoint. If
// the machine crashes at any time, one of the two checkpoints is intact and the
// trajectories contain its frames.
func (p *Part[R]) saveAll(complete bool) error {
	begun := p.Begun()
	p.written = nil
	for _, r := range begun {
		b := r.base()
		b.Lock()
		p.written = append(p.written, written{b, b.Rows, b.Trajectory.Frames})
		b.Unlock()
	}
	if err := p.System.Write(begun, complete); err != nil {
		return err
	}
	content := p.checkpoint()
	for _, r := range begun {
		if err := r.base().Trajectory.Sync(); err != nil && !errors.Is(err, fs.ErrClosed) {
			return err
		}
	}
	return writeCheckpoint(p.Folder, content)
}

func (p *Part[R]) checkpoint() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wall = p.elapsed()
	return newCheckpoint(p.Hash, p.archive)
}

// archive saves or restores all replicas. The caller must hold p.mu.
func (p *Part[R]) archive(a *md.Archive) {
	a.Duration(&p.wall)
	begun := int64(len(p.begun))
	a.Integer(&begun)
	last := min(int(begun), p.Count) - 1
	for k := range last + 1 {
		if a.Reading() {
			p.begun = append(p.begun, p.System.New(k+1))
		}
		p.archiveReplica(a, p.begun[k], k == last)
	}
}

// archiveReplica archives a replica and, with the last one, the shared state, because if
// replicas run one after another, only the last one changes it.
func (p *Part[R]) archiveReplica(a *md.Archive, r R, last bool) {
	b := r.base()
	b.Lock()
	defer b.Unlock()
	b.archive(a)
	r.Archive(a)
	if last {
		p.System.Archive(a)
	}
}

// restore resumes from the last usable checkpoint, if there is one, and removes unusable
// checkpoints.
func (p *Part[R]) restore(log io.Writer) error {
	of, who := "", "the run"
	if p.Name != "" {
		of, who = p.Name+": ", p.Name
	}
	failed := false
	for _, name := range []string{checkpointFile, oldCheckpointFile} {
		path := filepath.Join(p.Folder, name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		err := p.loadCheckpoint(path)
		if err == nil {
			fmt.Fprintf(log, "%s resumes from %s, %s\n", who, name, p.stepsDone())
			return nil
		}
		fmt.Fprintf(log, "warning: %scannot use %s: %v\n", of, name, err)
		p.reset()
		failed = true
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if failed {
		fmt.Fprintf(log, "warning: %s starts from the beginning\n", who)
	}
	return nil
}

// loadCheckpoint restores the part from a checkpoint. If it fails, the caller must reset
// the part.
func (p *Part[R]) loadCheckpoint(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	a, err := openCheckpoint(content, p.Hash)
	if err != nil {
		return err
	}
	p.archive(a)
	if !a.Complete() || len(p.begun) == 0 {
		return errors.New("wrong length")
	}
	for _, r := range p.begun {
		if err := resume(r); err != nil {
			return err
		}
	}
	return nil
}

// reset closes the trajectories and returns the part to its initial state.
func (p *Part[R]) reset() {
	for _, r := range p.begun {
		if t := r.base().Trajectory; t.Opened() {
			t.Close() // an error does not affect new files
		}
	}
	p.begun, p.wall = nil, 0
	p.System.Reset()
}

func (p *Part[R]) stepsDone() string {
	done, steps := 0, int64(0)
	for _, r := range p.begun {
		steps += r.Step()
		if r.Step() == p.Steps {
			done++
		}
	}
	return fmt.Sprintf("with %d of %s finished and %d of %d steps done",
		done, unit.Count(p.Count, "replica"), steps, p.Steps*int64(p.Count))
}

// Rows returns the rows of timeseries.csv by replica, for System.Write.
func (p *Part[R]) Rows() [][]byte {
	var all [][]byte
	for _, w := range p.written {
		all = append(all, w.rows)
	}
	return all
}

// WriteSeries writes timeseries.csv, for System.Write.
func (p *Part[R]) WriteSeries(header string) error {
	content := append([]byte(header), bytes.Join(p.Rows(), nil)...)
	return store.WriteFile(filepath.Join(p.Folder, SeriesFile), content)
}

// WriteEnsemble writes at most most frames, evenly spaced from frame first on, or the
// last frame of each replica if there are none yet. It writes nothing before the first
// frame, because other programs treat a file without models as damaged. It is for
// System.Write.
func (p *Part[R]) WriteEnsemble(chains []string, first int64, most int) error {
	type frame struct {
		of    *Base
		index int64
	}
	var all []frame
	for _, w := range p.written {
		for k := max(0, min(first, w.frames-1)); k < w.frames; k++ {
			all = append(all, frame{w.Base, k})
		}
	}
	models := make([][]md.Vec, min(most, len(all)))
	for k := range models {
		f := all[(2*k+1)*len(all)/(2*len(models))]
		var err error
		if models[k], err = f.of.Trajectory.Read(f.of.trajectoryPath(), f.index); err != nil {
			return err
		}
	}
	if len(models) == 0 {
		return nil
	}
	return store.WriteFile(filepath.Join(p.Folder, EnsembleFile), append(all[0].of.About.heading(), trajectory.ModelsPDB(chains, models)...))
}
