package run

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"molrun/app/engine/md"
	"molrun/app/engine/store"
	"molrun/app/engine/trajectory"
)

// Replica is one independent run of a system; replicas differ in their random numbers. It
// embeds a Base, which is locked during Burst, Status and Archive.
type Replica interface {
	base() *Base
	Start() error          // places the chains and creates the trajectory
	Resume() error         // prepares the state restored by Archive for the next step
	Burst() error          // computes some steps and records the data due
	Step() int64           // completed steps
	Status() string        // end of a progress line
	Archive(a *md.Archive) // state that determines results and further steps, except Base
}

// Base is the part of a replica common to all engines. While it is locked, the replica is
// between two bursts and can be read.
type Base struct {
	sync.Mutex
	Number     int // from 1
	Folder     string
	About      About
	Trajectory *trajectory.DCD
	Rows       []byte        // rows of timeseries.csv
	Busy       time.Duration // time spent on steps

	reached atomic.Int64
}

func (b *Base) base() *Base { return b }

// Reached returns the number of steps completed at the end of the last burst. It needs no
// lock.
func (b *Base) Reached() int64 { return b.reached.Load() }

// Names of result files.
const (
	TopologyFile = "top.pdb"
	ChainsFile   = "top.cif" // for several chains
	EnsembleFile = "ensemble.pdb"
	SeriesFile   = "timeseries.csv"
)

// TrajectoryName returns the file name of the trajectory of a replica, counted from 1.
func TrajectoryName(replica int) string {
	if replica == 1 {
		return "traj.dcd"
	}
	return fmt.Sprintf("traj_r%d.dcd", replica)
}

func (b *Base) trajectoryPath() string { return filepath.Join(b.Folder, TrajectoryName(b.Number)) }

// Create creates the trajectory, with a title and a line of provenance.
func (b *Base) Create(title string) error {
	return b.Trajectory.Create(b.trajectoryPath(), title, b.About.Origin.Short())
}

// Frame adds positions in nm to the trajectory, shifted by -centre. The first frame of
// replica 1 is also written as the topology, with the residues of the chains.
func (b *Base) Frame(x []md.Vec, centre md.Vec, chains []string) error {
	if err := b.Trajectory.Append(x, centre); err != nil {
		return err
	}
	if b.Number > 1 || b.Trajectory.Frames > 1 {
		return nil
	}
	first := make([]md.Vec, len(x))
	for i := range first {
		first[i] = md.Vec{}.AddScaled(trajectory.Angstrom, x[i].Sub(centre))
	}
	if len(chains) > 1 {
		if err := store.WriteFile(filepath.Join(b.Folder, ChainsFile), b.About.mmCIF(chains, first)); err != nil {
			return err
		}
	}
	return store.WriteFile(filepath.Join(b.Folder, TopologyFile), append(b.About.heading(), trajectory.PDB(chains, first)...))
}

func (b *Base) archive(a *md.Archive) {
	a.Integer(&b.Trajectory.Frames)
	a.Text(&b.Rows)
	a.Duration(&b.Busy)
}

func burst(r Replica) error {
	b := r.base()
	b.Lock()
	defer b.Unlock()
	began := time.Now()
	err := r.Burst()
	b.Busy += time.Since(began)
	b.reached.Store(r.Step())
	return err
}

// resume resumes a restored replica.
func resume(r Replica) error {
	b := r.base()
	if err := b.Trajectory.Resume(b.trajectoryPath()); err != nil {
		return err
	}
	b.reached.Store(r.Step())
	return r.Resume()
}
