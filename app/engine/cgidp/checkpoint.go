package cgidp

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A checkpoint is a line that names its format, the SHA-256 of the settings, an
// archive of the chain, and a CRC-32 of all that.
const (
	checkpointMark    = "molrun cg-idp checkpoint 1\n"
	checkpointFile    = "checkpoint.bin"
	oldCheckpointFile = "checkpoint.old.bin" // the one before, in case of damage
)

// settingsHash tells apart what gives other results. The number of cores does
// not, and warnings follow from the rest.
func (c *chain) settingsHash() []byte {
	s := *c.settings
	s.Cores = 0
	s.Sequences = slices.Clone(s.Sequences)
	for i := range s.Sequences {
		s.Sequences[i].Warnings = nil
	}
	text, err := json.Marshal([]any{engineVersion, c.index, s})
	if err != nil {
		panic(err) // numbers and strings
	}
	hash := sha256.Sum256(text)
	return hash[:]
}

// checkpoint holds all that is needed to go on.
func (c *chain) checkpoint() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.elapsed()
	a := &archive{bytes: append([]byte(checkpointMark), c.settingsHash()...)}
	c.archive(a)
	return binary.LittleEndian.AppendUint32(a.bytes, crc32.ChecksumIEEE(a.bytes))
}

// saveCheckpoint replaces the checkpoint and keeps the one before. Whenever the
// machine stops, one of them is whole and the trajectories hold its frames.
func (c *chain) saveCheckpoint() error {
	content := c.checkpoint()
	for _, r := range c.running() {
		if err := r.trajectory.file.Sync(); err != nil && !errors.Is(err, fs.ErrClosed) {
			return err
		}
	}
	current := filepath.Join(c.folder, checkpointFile)
	temporary, err := writeTemporary(current, content)
	if err != nil {
		return err
	}
	err = os.Rename(current, filepath.Join(c.folder, oldCheckpointFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(temporary, current); err != nil {
		return err
	}
	return syncFolder(c.folder)
}

// removeCheckpoints ends the possibility to go on.
func (c *chain) removeCheckpoints() error {
	for _, name := range []string{oldCheckpointFile, checkpointFile} {
		if err := os.Remove(filepath.Join(c.folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// restore goes back to the last checkpoint that can be used, if there is one,
// and removes those that cannot.
func (c *chain) restore(log io.Writer) error {
	failed := false
	for _, name := range []string{checkpointFile, oldCheckpointFile} {
		path := filepath.Join(c.folder, name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		err := c.load(path)
		if err == nil {
			fmt.Fprintf(log, "%s goes on from %s, %s\n", c.Name, name, c.standing())
			return writeFile(filepath.Join(c.folder, seriesFile), c.timeseries())
		}
		fmt.Fprintf(log, "warning: %s: %s cannot be used: %v\n", c.Name, name, err)
		c.forget()
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

// load sets the chain to a checkpoint. If it fails, the chain is of no use until
// it has been told to forget.
func (c *chain) load(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	a, err := c.open(content)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total = newPairSums(c.model.size())
	c.archive(a)
	if a.short || len(a.bytes) > 0 {
		return errors.New("its length is wrong")
	}
	for _, r := range c.replicas {
		if r == nil {
			continue
		}
		if err := r.wake(); err != nil {
			return err
		}
	}
	c.mergeFinished()
	return nil
}

// open checks what surrounds the archive.
func (c *chain) open(content []byte) (*archive, error) {
	body, ok := bytes.CutPrefix(content, []byte(checkpointMark))
	if !ok || len(body) < sha256.Size+4 {
		return nil, errors.New("it is no checkpoint of this version")
	}
	end := len(content) - 4
	if crc32.ChecksumIEEE(content[:end]) != binary.LittleEndian.Uint32(content[end:]) {
		return nil, errors.New("it is damaged")
	}
	if !bytes.Equal(body[:sha256.Size], c.settingsHash()) {
		return nil, errors.New("it belongs to other settings")
	}
	return &archive{bytes: body[sha256.Size : len(body)-4], reading: true}, nil
}

// forget closes what was opened and leaves the chain as new.
func (c *chain) forget() {
	for k, r := range c.replicas {
		if r != nil && r.trajectory.file != nil {
			r.trajectory.file.Close()
		}
		c.replicas[k] = nil
	}
	c.wall, c.merged, c.total = 0, 0, nil
}

// standing says how far the chain has come.
func (c *chain) standing() string {
	done, steps := 0, int64(0)
	for _, r := range c.running() {
		steps += r.step
		if r.done() {
			done++
		}
	}
	return fmt.Sprintf("with %d of %s finished and %d of %d steps done",
		done, plural(len(c.replicas), "replica"), steps, c.plan.steps*int64(len(c.replicas)))
}
