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

// Replica is one run of a system; replicas differ by their random numbers. It embeds a Base, which
// is locked during Burst, Status and Archive.
type Replica interface {
	base() *Base
	Start() error          // places the chains and creates the trajectory
	Resume() error         // prepares what Archive has restored for the next step
	Burst() error          // computes some steps and records what is due
	Step() int64           // steps done
	Status() string        // ends a line of progress
	Archive(a *md.Archive) // all that the results and the next steps follow from, but the Base
}

// Base is what replicas of all engines have. While it is locked, the replica is between two bursts
// of steps, and may be read.
type Base struct {
	sync.Mutex
	Number     int // from 1
	Folder     string
	About      About
	Trajectory *trajectory.DCD
	Rows       []byte        // lines of timeseries.csv
	Busy       time.Duration // spent on steps

	reached atomic.Int64
}

func (b *Base) base() *Base { return b }

// Reached is the number of steps done at the end of the last burst. It needs no lock.
func (b *Base) Reached() int64 { return b.reached.Load() }

// Names of files.
const (
	TopologyFile = "top.pdb"
	ChainsFile   = "top.cif" // of several chains
	EnsembleFile = "ensemble.pdb"
	SeriesFile   = "timeseries.csv"
)

// TrajectoryName is the file of a replica, counted from 1.
func TrajectoryName(replica int) string {
	if replica == 1 {
		return "traj.dcd"
	}
	return fmt.Sprintf("traj_r%d.dcd", replica)
}

func (b *Base) trajectoryPath() string { return filepath.Join(b.Folder, TrajectoryName(b.Number)) }

// Create begins the trajectory, with a title and a line on what made it.
func (b *Base) Create(title string) error {
	return b.Trajectory.Create(b.trajectoryPath(), title, b.About.Origin.Short())
}

// Frame adds positions in nm to the trajectory, moved by -centre. The first ones are the
// topology, too, of chains with some residues.
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

// resume continues a restored replica.
func resume(r Replica) error {
	b := r.base()
	if err := b.Trajectory.Resume(b.trajectoryPath()); err != nil {
		return err
	}
	b.reached.Store(r.Step())
	return r.Resume()
}
