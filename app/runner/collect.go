package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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

// collection makes the result of a completed job out of what its program left.
// It goes step by step, and each step finds out by itself what was done
// before: whenever it is cut short, a new one goes on and ends the same.
type collection struct {
	job     *app.Job
	dirs    Dirs
	dir     string          // of the job
	attempt int             // that completed
	outcome *app.Outcome    // how
	alg     *algorithm.File // nil where its definition can't be read: then there are no metrics
	limit   int             // of files and folders
	record  func(*app.Job, app.Ending) (app.Record, error)
	check   func() error // whether to go on
	log     zerolog.Logger

	hasher   *hasher
	files    []string // of the result, by path below resultDir
	manifest app.Manifest
	ending   app.Ending
}

// run collects everything and gives the ending to record.
func (c *collection) run() (app.Ending, error) {
	for _, s := range c.steps() {
		if err := c.check(); err != nil {
			return app.Ending{}, err
		}
		if err := s.do(); err != nil {
			return app.Ending{}, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return c.ending, nil
}

type collectStep struct {
	name string
	do   func() error
}

// steps lists the steps in order. Once the manifest is there the result is
// complete, and only the rest is done again.
func (c *collection) steps() []collectStep {
	c.hasher = newHasher(c.check)
	steps := []collectStep{
		{"keep the output folder", c.keepOutput},
		{"look through the result", c.tidy},
		{"list the result", c.list},
		{"read the metrics", c.conclude},
		{"write the record", c.writeRecord},
		{"write the manifest", c.writeManifest},
	}
	if m, err := c.dirs.Manifest(c.job.ID); err == nil {
		c.manifest = *m
		steps = []collectStep{{"read the metrics", c.conclude}}
	}
	return append(steps, collectStep{"clear the work directories", c.clear})
}

func (c *collection) attemptDir() string { return filepath.Join(c.dir, strconv.Itoa(c.attempt)) }

func (c *collection) resultDir() string { return filepath.Join(c.dir, resultDir) }

// keepOutput renames the program's output folder to be the result. What is no
// folder of its own, such as a link in its place, is no result.
func (c *collection) keepOutput() error {
	if kept, err := openFolder(c.resultDir()); kept || err != nil {
		return err
	}
	out, err := openOutput(c.attemptDir())
	switch {
	case err != nil:
		return err
	case out == "":
		c.log.Warn().Msg("the program left no output folder")
		return os.Mkdir(c.resultDir(), 0o700)
	}
	return os.Rename(out, c.resultDir())
}

// openOutput gives the output folder of an attempt, "" where there is none.
func openOutput(attemptDir string) (string, error) {
	work := filepath.Join(attemptDir, task.WorkDir)
	out := filepath.Join(work, outDir)
	for _, dir := range []string{attemptDir, work, out} {
		if found, err := openFolder(dir); !found || err != nil {
			return "", err
		}
	}
	return out, nil
}

// openFolder makes a folder usable, whatever mode its program gave it, and
// reports whether there is one. Only what is known to be absent is: a fault of
// the disk must not make a result empty.
func openFolder(path string) (bool, error) {
	info, err := os.Lstat(path)
	if notExist(err) {
		return false, nil
	}
	if err != nil || !info.IsDir() {
		return false, err
	}
	return true, os.Chmod(path, 0o700)
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// tidy removes from the result what is no file of its own and finds the files.
func (c *collection) tidy() error {
	root, err := os.OpenRoot(c.resultDir())
	if err != nil {
		return err
	}
	t := tidying{root: root, limit: c.limit}
	err = t.folder(".", 0)
	if err == nil {
		err = t.settleShared(filepath.Join(c.attemptDir(), task.WorkDir))
	}
	err = errors.Join(err, root.Close())
	if len(t.dropped) > 0 || t.more > 0 {
		c.log.Warn().Strs("paths", t.dropped).Int("more", t.more).Msg("left out of the result: no regular files of its own")
	}
	c.files = t.files
	return err
}

// list reads every file once for its size and digests and makes it durable.
func (c *collection) list() error {
	log := filepath.Join(c.attemptDir(), task.LogFile)
	if err := touch(log); err != nil {
		return err
	}
	for i, name := range resultNames(c.files) {
		err := c.add(name, filepath.Join(resultDir, c.files[i]))
		if err != nil {
			return err
		}
	}
	return c.add(logName, filepath.Join(strconv.Itoa(c.attempt), task.LogFile))
}

func (c *collection) add(name, path string) error {
	f, err := c.hasher.file(filepath.Join(c.dir, path))
	if err != nil {
		return err
	}
	f.Name, f.Path = name, filepath.ToSlash(path)
	c.manifest.Files = append(c.manifest.Files, f)
	return nil
}

// conclude sums up what the job's record will say of the result.
func (c *collection) conclude() error {
	c.ending = app.Ending{Outcome: c.outcome}
	for _, f := range c.manifest.Files {
		if strings.HasPrefix(f.Path, resultDir+"/") {
			c.ending.ResultBytes += f.Size
		}
	}
	if c.alg == nil {
		return nil
	}
	root, err := os.OpenRoot(c.resultDir())
	if err != nil {
		return err
	}
	results, problems := c.alg.Metrics.Read(root.FS())
	for _, p := range problems {
		c.log.Debug().Str("problem", p).Msg("a metric can't be read")
	}
	c.ending.Results = results
	return root.Close()
}

// writeRecord puts the job's record as it will be beside the result.
func (c *collection) writeRecord() error {
	record, err := c.record(c.job, c.ending)
	if err != nil {
		return err
	}
	if err := writeWhole(c.dir, recordFile, record); err != nil {
		return err
	}
	return c.add(recordFile, recordFile)
}

// writeManifest makes all names durable, then the list of them.
func (c *collection) writeManifest() error {
	if err := c.syncFolders(); err != nil {
		return err
	}
	slices.SortFunc(c.manifest.Files, func(a, b app.ManifestFile) int { return strings.Compare(a.Name, b.Name) })
	return c.dirs.WriteManifest(c.job.ID, &c.manifest)
}

func (c *collection) syncFolders() error {
	folders := map[string]bool{c.dir: true, c.attemptDir(): true, c.resultDir(): true, filepath.Dir(c.dir): true}
	for _, f := range c.files {
		for dir := filepath.Dir(f); dir != "."; dir = filepath.Dir(dir) {
			folders[filepath.Join(c.resultDir(), dir)] = true
		}
	}
	for dir := range folders {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// clear removes the work directories of all attempts.
func (c *collection) clear() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil || !e.IsDir() {
			continue
		}
		if err := removeWork(filepath.Join(c.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// giveBack undoes keepOutput.
func giveBack(attemptDir string) error {
	result := filepath.Join(filepath.Dir(attemptDir), resultDir)
	out := filepath.Join(attemptDir, task.WorkDir, outDir)
	if isDir(out) || !isDir(result) {
		return nil
	}
	return os.Rename(result, out)
}

// removeWork removes an attempt's work directory, whatever modes its program
// gave to folders in it.
func removeWork(attemptDir string) error {
	return removeTree(filepath.Join(attemptDir, task.WorkDir))
}

func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700) // RemoveAll tells if that was not enough
		}
		return nil
	})
	return os.RemoveAll(dir)
}
