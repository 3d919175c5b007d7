// Package result turns a program's output into the result of its job. It copies the
// attempt's directory back if the task ran on other machines, makes the output directory
// the result, resolves links within it, removes whatever can't be kept and records why,
// lists the files, and makes everything durable. It works on directories and files only,
// without access to services or executors.
//
// All output of a program is untrusted: links can lead anywhere, names can contain any
// bytes, modes can lock the service out, sparse files can have any size.
package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/base/durable"
	"molrun/app/task"
)

// Names in a job's directory, next to the attempt directories.
const (
	resultDir    = "result"
	recordFile   = "job.json"
	manifestFile = "manifest.json"
)

// logName is the public name of the log among a job's files.
const logName = "log.txt"

// Manifests reads and writes the lists of jobs' files. A manifest is written once, when
// everything it lists is durable.
type Manifests interface {
	Manifest(id app.JobID) (*app.Manifest, error)
	WriteManifest(id app.JobID, m *app.Manifest) error
	PutManifest(id app.JobID, m *app.Manifest) error // like WriteManifest, but the caller syncs the disk
}

// InvalidOutputError explains to the job's user why a result can't be kept.
type InvalidOutputError string

func (u InvalidOutputError) Error() string { return string(u) }

// MissingOutputError tells the job's user which output is missing.
type MissingOutputError string

func (l MissingOutputError) Error() string { return string(l) }

// Collection creates the result of a job whose program has finished. Each step detects
// what was already done: if a collection is interrupted, another one continues and
// reaches the same end state.
type Collection struct {
	Job       app.JobID
	Dir       string          // the job's directory
	Attempt   int             // number of the finished attempt
	Outcome   *app.Outcome    // outcome of that attempt
	Ran       string          // where that attempt ran; "" means in Dir
	Algorithm *algorithm.File // nil if it can't be read; then there are no metrics
	Warnings  []string        // warnings of its programs
	MaxFiles  int             // maximum number of files and directories in a result
	Manifests Manifests
	Record    func(app.Ending) (app.Record, error) // the job's final record
	Unsynced  bool                                 // do not sync: the caller syncs the disk before recording the end
	Check     func() error                         // an error interrupts the collection
	Log       zerolog.Logger

	digester *digester
	files    []string // files of the result, as paths below resultDir
	left     app.LeftOut
	manifest app.Manifest
	ending   app.Ending
}

// Collect collects the result and returns the ending to record. The error is
// InvalidOutputError if the result can't be kept, and MissingOutputError if it is
// incomplete.
func (c *Collection) Collect() (app.Ending, error) {
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

// steps returns the steps to do, in order. Once there is a manifest the result is
// complete, and only the remaining steps are repeated.
func (c *Collection) steps() []step {
	steps := []step{
		{"keep the output directory", c.keepOutput},
		{"inspect the result", c.inspect},
		{"list the result", c.readFiles},
		{"look for the outputs", c.lookForOutputs},
		{"read the metrics", c.summarize},
		{"write the record", c.writeRecord},
		{"write the manifest", c.writeManifest},
	}
	if m, err := c.Manifests.Manifest(c.Job); err == nil {
		c.manifest = *m
		steps = []step{{"read what was left out", c.readLeftOut}, {"read the metrics", c.summarize}}
	}
	return append(steps, step{"remove the work directories", c.removeWork})
}

func (c *Collection) attemptDir() string { return filepath.Join(c.Dir, strconv.Itoa(c.Attempt)) }

func (c *Collection) resultDir() string { return filepath.Join(c.Dir, resultDir) }

// keepOutput renames the program's output directory to the result directory.
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

// openOutput returns the output directory of an attempt, or "" if there is none. Anything
// else at its path is an InvalidOutputError.
func openOutput(attemptDir string) (string, error) {
	work := filepath.Join(attemptDir, task.WorkDir)
	out := filepath.Join(work, task.OutDir)
	for _, dir := range []string{attemptDir, work, out} {
		if found, err := openDir(dir); !found || err != nil {
			if info, absent := os.Lstat(out); dir == out && absent == nil && !info.IsDir() {
				return "", InvalidOutputError(fmt.Sprintf("The program replaced its output folder {out} with %s. It must write its files into that folder.", kindOf(info.Mode())))
			}
			return "", err
		}
	}
	return out, nil
}

// openDir makes a directory accessible, regardless of the mode that the program set, and
// reports whether it exists. An I/O error does not count as absence: a faulty disk must
// not make a result empty.
func openDir(path string) (bool, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !info.IsDir() {
		return false, err
	}
	return true, os.Chmod(path, 0o700)
}

// readFiles reads every file once for its size and digests, and makes it durable unless
// Unsynced is set.
func (c *Collection) readFiles() error {
	log, err := os.OpenFile(filepath.Join(c.attemptDir(), task.LogFile), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(logLeftOut(log, c.left), log.Close()); err != nil {
		return err
	}
	c.digester = newDigester(c.Check, !c.Unsynced)
	for i, name := range publicNames(c.files) {
		err := c.addFile(name, filepath.Join(resultDir, c.files[i]))
		if err != nil {
			return err
		}
	}
	return c.addFile(logName, filepath.Join(strconv.Itoa(c.Attempt), task.LogFile))
}

// lookForOutputs rejects a result without the outputs that the algorithm file requires.
func (c *Collection) lookForOutputs() error {
	if c.Algorithm == nil {
		return nil
	}
	missing := c.Algorithm.Outputs.Missing(func(yield func(string, int64) bool) {
		for _, f := range c.manifest.Files {
			if f.Name != logName && !yield(f.Name, f.Size) {
				return
			}
		}
	})
	if missing != "" {
		return MissingOutputError(missing)
	}
	return nil
}

func (c *Collection) addFile(name, path string) error {
	f, err := c.digester.file(filepath.Join(c.Dir, path))
	if err != nil {
		return err
	}
	f.Name, f.Path = name, filepath.ToSlash(path)
	c.manifest.Files = append(c.manifest.Files, f)
	return nil
}

// publicNames returns the names of a result's files for clients: their paths, except for
// files that have the name of one of the service's own files, or are in a folder of that
// name. Case is ignored, because not all systems on which archives are unpacked
// distinguish JOB.JSON from job.json.
func publicNames(files []string) []string {
	names := slices.Clone(files)
	moved := map[string]string{}
	for i, f := range files {
		top, _, _ := strings.Cut(f, "/")
		if !strings.EqualFold(top, recordFile) && !strings.EqualFold(top, logName) {
			continue
		}
		if moved[top] == "" {
			moved[top] = moveBelowOutput(files, top)
		}
		names[i] = moved[top] + strings.TrimPrefix(f, top)
	}
	return names
}

// moveBelowOutput puts name into the directory output, or output~2 and so on if the program itself
// has a file of that name there.
func moveBelowOutput(files []string, name string) string {
	taken := func(dir string) bool {
		return slices.ContainsFunc(files, func(f string) bool {
			return f == dir || f == dir+"/"+name || strings.HasPrefix(f, dir+"/"+name+"/")
		})
	}
	dir := "output"
	for n := 2; taken(dir); n++ {
		dir = fmt.Sprintf("output~%d", n)
	}
	return dir + "/" + name
}

// summarize fills in the ending's information about the result.
func (c *Collection) summarize() error {
	c.ending = app.Ending{Outcome: c.Outcome, LeftOut: c.leftOut(), Warnings: c.Warnings}
	for _, f := range c.manifest.Files {
		if strings.HasPrefix(f.Path, resultDir+"/") {
			c.ending.ResultBytes += f.Size
		}
	}
	if c.Algorithm == nil {
		return nil
	}
	root, err := os.OpenRoot(c.resultDir())
	if err != nil {
		return err
	}
	results, problems := c.Algorithm.Metrics.ReadMetrics(root.FS())
	for _, p := range problems {
		c.Log.Debug().Str("problem", p).Msg("could not read a metric")
	}
	c.ending.Results = results
	return root.Close()
}

// writeRecord writes the job's final record next to the result.
func (c *Collection) writeRecord() error {
	record, err := c.Record(c.ending)
	if err != nil {
		return err
	}
	job, err := os.OpenRoot(c.Dir)
	if err != nil {
		return err
	}
	write := durable.Replace
	if c.Unsynced {
		write = durable.Put
	}
	if err := errors.Join(write(job, recordFile, record), job.Close()); err != nil {
		return err
	}
	return c.addFile(recordFile, recordFile)
}

// writeManifest makes the names of all files durable, then writes the list of them.
func (c *Collection) writeManifest() error {
	slices.SortFunc(c.manifest.Files, func(a, b app.ManifestFile) int { return strings.Compare(a.Name, b.Name) })
	if c.Unsynced {
		return c.Manifests.PutManifest(c.Job, &c.manifest)
	}
	if err := c.syncDirs(); err != nil {
		return err
	}
	return c.Manifests.WriteManifest(c.Job, &c.manifest)
}

// syncDirs syncs the directories that contain files of the manifest, and the parent of
// the job's directory. The job's directory itself was synced with the record.
func (c *Collection) syncDirs() (err error) {
	jobs, err := os.OpenRoot(filepath.Dir(c.Dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, jobs.Close()) }()
	job := filepath.Base(c.Dir)
	dirs := map[string]bool{".": true, filepath.Join(job, strconv.Itoa(c.Attempt)): true, filepath.Join(job, resultDir): true}
	for _, f := range c.files {
		for dir := filepath.Dir(f); dir != "."; dir = filepath.Dir(dir) {
			dirs[filepath.Join(job, resultDir, dir)] = true
		}
	}
	for dir := range dirs {
		if err := durable.SyncDir(jobs, dir); err != nil {
			return err
		}
	}
	return nil
}

// removeWork removes the work directories of all attempts, and temporary files of a
// record or manifest left by a crash.
func (c *Collection) removeWork() error {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+recordFile+".") || strings.HasPrefix(e.Name(), "."+manifestFile+".") {
			if err := os.Remove(filepath.Join(c.Dir, e.Name())); err != nil {
				return err
			}
		}
		if _, err := strconv.Atoi(e.Name()); err != nil || !e.IsDir() {
			continue
		}
		if err := RemoveWork(filepath.Join(c.Dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// RemoveWork removes an attempt's work directory.
func RemoveWork(attemptDir string) error {
	return RemoveTree(filepath.Join(attemptDir, task.WorkDir))
}

// ReturnOutput moves a result that can't be kept back to the output directory, where it
// is subject to the retention of work directories.
func ReturnOutput(attemptDir string) error {
	result := filepath.Join(filepath.Dir(attemptDir), resultDir)
	out := filepath.Join(attemptDir, task.WorkDir, task.OutDir)
	if IsDir(out) || !IsDir(result) {
		return nil
	}
	return os.Rename(result, out)
}

// Discard removes an earlier attempt's unfinished collection.
func Discard(jobDir string) error {
	return errors.Join(
		os.RemoveAll(filepath.Join(jobDir, manifestFile)),
		os.RemoveAll(filepath.Join(jobDir, recordFile)),
		os.RemoveAll(filepath.Join(jobDir, resultDir)),
	)
}
