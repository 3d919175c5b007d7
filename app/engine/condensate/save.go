package condensate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"molrun/app/engine/store"
)

// checkpointMark is the first line of a checkpoint.
const checkpointMark = "molrun cg-condensate checkpoint 1\n"

// settingsHash distinguishes settings that give different results. The number of
// cores makes no difference, and warnings follow from the rest.
func (y *system) settingsHash() []byte {
	settings := *y.Settings
	settings.Cores, settings.Warnings = 0, nil
	return store.SettingsHash(engineVersion, settings)
}

// save writes all files but the trajectories, for the steps done so far, and a checkpoint.
func (r *run) save(complete bool) (*summary, error) {
	s, err := r.write(complete)
	if err != nil {
		return nil, err
	}
	for _, rep := range r.replicas {
		if err := rep.trajectory.Sync(); err != nil && !errors.Is(err, fs.ErrClosed) {
			return nil, err
		}
	}
	return s, store.WriteCheckpoint(r.folder, store.NewCheckpoint(checkpointMark, r.settingsHash(), r.archive))
}

// archive stores or restores all that the results and the next steps follow from.
func (r *run) archive(a *store.Archive) {
	a.Duration(&r.busy)
	begun := int64(len(r.replicas))
	a.Integer(&begun)
	for k := range int(min(begun, int64(r.Replicas))) {
		if a.Reading() {
			r.replicas = append(r.replicas, newReplica(r.system, k+1))
		}
		r.replicas[k].archive(a, r.team)
	}
	r.contacts.archive(a)
	r.history.archive(a)
	a.Text(&r.rows)
	a.Text(&r.centred)
}

// restore continues from the last usable checkpoint, if there is one, and removes those that
// are not usable.
func (r *run) restore() error {
	failed := false
	for _, name := range []string{store.CheckpointFile, store.OldCheckpointFile} {
		path := filepath.Join(r.folder, name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		err := r.load(path)
		if err == nil {
			last := r.replicas[len(r.replicas)-1]
			fmt.Fprintf(r.log, "goes on from %s, with %d of %d steps of replica %d done\n", name, last.step(), r.plan.steps, last.number)
			return nil
		}
		fmt.Fprintf(r.log, "warning: %s cannot be used: %v\n", name, err)
		r.reset()
		failed = true
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if failed {
		fmt.Fprintln(r.log, "warning: the run starts from the beginning")
	}
	return nil
}

// load sets the run to a checkpoint. If it fails, the run has to be reset.
func (r *run) load(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	a, err := store.OpenCheckpoint(checkpointMark, content, r.settingsHash())
	if err != nil {
		return err
	}
	r.archive(a)
	if !a.Whole() || len(r.replicas) == 0 {
		return errors.New("its length is wrong")
	}
	for _, rep := range r.replicas {
		if err := rep.resume(); err != nil {
			return err
		}
	}
	return nil
}
