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

// System is what the replicas of a part simulate. Write may be called while they compute, and takes
// their locks to read them; it is given all that have begun, and no other begins before it returns.
type System[R Replica] interface {
	New(number int) R                     // a replica before Start, or before Archive and Resume
	Gather(begun []R)                     // takes over from replicas that are finished, and frees what they need no more
	Archive(a *md.Archive)                // what replicas share
	Write(begun []R, complete bool) error // results so far
	Reset()                               // forgets what replicas share
}

// Part is the replicas of one system, with a folder of results and a checkpoint of its own.
type Part[R Replica] struct {
	System System[R]
	Name   string // of the sequence, for the log; "" if the part is the whole run
	Folder string
	Count  int     // of replicas
	Steps  int64   // of each
	Cost   float64 // of a replica, compared with those of other parts
	Hash   []byte  // of the settings that results depend on

	mu      sync.Mutex
	begun   []R
	ended   int
	started time.Time     // when this process began a replica; zero before
	wall    time.Duration // from the first start of a replica to the last end, without pauses

	saving  sync.Mutex // held while files are written, and while a replica begins; with
	written []written

	finished bool
}

// written is what a replica had written at the moment of a save.
type written struct {
	*Base
	rows   []byte
	frames int64
}

// Begun returns the replicas that have begun, in order; none once the part is finished.
func (p *Part[R]) Begun() []R {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.begun)
}

// Wall is the time from the first start of a replica to the last end or save, without pauses.
func (p *Part[R]) Wall() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wall
}

// elapsed needs the lock.
func (p *Part[R]) elapsed() time.Duration {
	if p.started.IsZero() {
		return p.wall
	}
	return time.Since(p.started)
}

// beginReplica returns a replica that is ready to run: a new one, or that of a checkpoint. It
// waits for a save in progress: a replica that began during it would change what replicas
// share while that is written.
func (p *Part[R]) beginReplica(number int) (r R, err error) {
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

// endReplica closes a replica and, after the last one, finishes the part. The checkpoint stays until
// all parts are finished.
func (p *Part[R]) endReplica(r R) error {
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

// saveSoFar writes the results and a checkpoint of a part that has begun and is not finished.
func (p *Part[R]) saveSoFar() error {
	p.saving.Lock()
	defer p.saving.Unlock()
	if len(p.Begun()) == 0 {
		return nil
	}
	return p.saveAll(false)
}

// saveAll replaces the results and the checkpoint, and keeps the one before. Whenever the machine
// stops, one of them is intact and the trajectories hold its frames.
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

// archive stores or restores all replicas. It needs the lock.
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

// archiveReplica archives what replicas share before the last one continues: of replicas that run
// one after the other, only the last one changes it.
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

// restore continues from the last usable checkpoint, if there is one, and removes those that
// are not usable.
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
			fmt.Fprintf(log, "%s goes on from %s, %s\n", who, name, p.stepsDone())
			return nil
		}
		fmt.Fprintf(log, "warning: %s%s cannot be used: %v\n", of, name, err)
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

// loadCheckpoint sets the part to a checkpoint. If it fails, the part has to be reset.
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
	if !a.Whole() || len(p.begun) == 0 {
		return errors.New("its length is wrong")
	}
	for _, r := range p.begun {
		if err := resume(r); err != nil {
			return err
		}
	}
	return nil
}

// reset closes the trajectories and leaves the part as new.
func (p *Part[R]) reset() {
	for _, r := range p.begun {
		if t := r.base().Trajectory; t.Opened() {
			t.Close() // without effect on new files
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

// Rows are the lines of timeseries.csv of each replica, for System.Write.
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

// WriteEnsemble writes some frames, evenly spaced among those from a first one on; while there
// are none, the last frame of each replica. It writes nothing before the first frame: readers
// take a file without models for a damaged one. It is for System.Write.
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
