package cgidp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"molrun/app/base/unit"
	"molrun/app/engine/md"
	"molrun/app/engine/store"
)

// restore continues from the last usable checkpoint, if there is one, and removes
// those that are not usable.
func (c *chain) restore(log io.Writer) error {
	failed := false
	for _, name := range []string{store.CheckpointFile, store.OldCheckpointFile} {
		path := filepath.Join(c.folder, name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		err := c.load(path)
		if err == nil {
			fmt.Fprintf(log, "%s goes on from %s, %s\n", c.Name, name, c.stepsDone())
			return c.writeTimeseries(c.results())
		}
		fmt.Fprintf(log, "warning: %s: %s cannot be used: %v\n", c.Name, name, err)
		c.reset()
		failed = true
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if failed {
		fmt.Fprintf(log, "warning: %s starts from the beginning\n", c.Name)
	}
	return nil
}

// load sets the chain to a checkpoint. If it fails, the chain has to be reset.
func (c *chain) load(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	a, err := store.OpenCheckpoint(checkpointMark, content, c.settingsHash())
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total = md.NewPairSums(c.model.Size())
	c.archive(a)
	if !a.Whole() {
		return errors.New("its length is wrong")
	}
	for _, r := range c.replicas {
		if r == nil {
			continue
		}
		if err := r.resume(); err != nil {
			return err
		}
	}
	c.mergeFinished()
	return nil
}

// reset closes the trajectories and leaves the chain as new.
func (c *chain) reset() {
	for k, r := range c.replicas {
		if r != nil && r.trajectory.Opened() {
			r.trajectory.Close()
		}
		c.replicas[k] = nil
	}
	c.wall, c.merged, c.total = 0, 0, nil
}

func (c *chain) stepsDone() string {
	done, steps := 0, int64(0)
	for _, r := range c.begun() {
		steps += r.Step()
		if r.done() {
			done++
		}
	}
	return fmt.Sprintf("with %d of %s finished and %d of %d steps done",
		done, unit.Count(len(c.replicas), "replica"), steps, c.plan.steps*int64(len(c.replicas)))
}
