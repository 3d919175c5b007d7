// Package result turns what a program left into the result of its job. It
// brings the attempt's directory home if the task ran on other machines, makes
// the output directory the result, removes what can't be kept, lists the files
// and makes all of it durable. It knows directories and files, but no service
// and no executor.
//
// Whatever a program leaves is hostile: links that lead anywhere, names of any
// bytes, modes that lock the service out, sparse files of any size.
package result

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/task"
)

// Names in a job's directory, beside those of its attempts.
const (
	resultDir    = "result"
	recordFile   = "job.json"
	manifestFile = "manifest.json"
)

// Manifests reads and writes the lists of jobs' files. A manifest is written
// once, when everything that it lists is durable.
type Manifests interface {
	Manifest(id app.JobID) (*app.Manifest, error)
	WriteManifest(id app.JobID, m *app.Manifest) error
}

// Unfit says why a result can't be kept, in words for the job's user.
type Unfit string

func (u Unfit) Error() string { return string(u) }

// Collection makes the result of a job whose program is done. Each step finds
// out by itself what was done before: if a collection is interrupted, another
// one continues and comes to the same end.
type Collection struct {
	Job       app.JobID
	Dir       string          // the job's directory
	Attempt   int             // the one that is done
	Outcome   *app.Outcome    // of that attempt
	Algorithm *algorithm.File // nil if it can't be read; then there are no metrics
	MaxFiles  int             // files and directories that a result may have
	Manifests Manifests
	Record    func(app.Ending) (app.Record, error) // the job's final record
	Check     func() error                         // an error interrupts the collection
	Log       zerolog.Logger

	digester *digester
	files    []string // of the result, by path below resultDir
	manifest app.Manifest
	ending   app.Ending
}

// Run collects the result and returns the ending to record. The error is Unfit
// if the result can't be kept.
func (c *Collection) Run() (app.Ending, error) {
	for _, s := range c.steps() {
		if err := c.Check(); err != nil {
			return app.Ending{}, err
		}
		if err := s.do(); err != nil {
			return app.Ending{}, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return c.ending, nil
}

type step struct {
	name string
	do   func() error
}

// steps lists what to do, in order. Once there is a manifest the result is
// complete, and only the rest is done again.
func (c *Collection) steps() []step {
	steps := []step{
		{"keep the output directory", c.keepOutput},
		{"inspect the result", c.inspect},
		{"list the result", c.list},
		{"read the metrics", c.summarize},
		{"write the record", c.writeRecord},
		{"write the manifest", c.writeManifest},
	}
	if m, err := c.Manifests.Manifest(c.Job); err == nil {
		c.manifest = *m
		steps = []step{{"read the metrics", c.summarize}}
	}
	return append(steps, step{"remove the work directories", c.removeWork})
}

func (c *Collection) attemptDir() string { return filepath.Join(c.Dir, strconv.Itoa(c.Attempt)) }

func (c *Collection) resultDir() string { return filepath.Join(c.Dir, resultDir) }

// keepOutput renames the program's output directory to be the result. Anything
// else in its place, such as a link, is not a result.
func (c *Collection) keepOutput() error {
	if kept, err := openDir(c.resultDir()); kept || err != nil {
		return err
	}
	out, err := openOutput(c.attemptDir())
	switch {
	case err != nil:
		return err
	case out == "":
		c.Log.Warn().Msg("the program left no output directory")
		return os.Mkdir(c.resultDir(), 0o700)
	}
	return os.Rename(out, c.resultDir())
}

// removeWork removes the work directories of all attempts.
func (c *Collection) removeWork() error {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil || !e.IsDir() {
			continue
		}
		if err := RemoveWork(filepath.Join(c.Dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// GiveBack makes a result that can't be kept the output directory again, where
// retained work directories are looked after.
func GiveBack(attemptDir string) error {
	result := filepath.Join(filepath.Dir(attemptDir), resultDir)
	out := filepath.Join(attemptDir, task.WorkDir, task.OutDir)
	if IsDir(out) || !IsDir(result) {
		return nil
	}
	return os.Rename(result, out)
}

// Discard removes what an earlier attempt had begun to collect.
func Discard(jobDir string) error {
	return errors.Join(
		os.RemoveAll(filepath.Join(jobDir, manifestFile)),
		os.RemoveAll(filepath.Join(jobDir, recordFile)),
		os.RemoveAll(filepath.Join(jobDir, resultDir)),
	)
}
