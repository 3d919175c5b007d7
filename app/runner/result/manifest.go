package result

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"molrun/app"
	"molrun/app/durable"
	"molrun/app/task"
)

// logName is what clients call the log among a job's files.
const logName = "log.txt"

// list reads every file once for its size and digests and makes it durable.
func (c *Collection) list() error {
	log, err := os.OpenFile(filepath.Join(c.attemptDir(), task.LogFile), os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	if err := log.Close(); err != nil { // it only had to be there
		return err
	}
	c.digester = newDigester(c.Check)
	for i, name := range publicNames(c.files) {
		err := c.add(name, filepath.Join(resultDir, c.files[i]))
		if err != nil {
			return err
		}
	}
	return c.add(logName, filepath.Join(strconv.Itoa(c.Attempt), task.LogFile))
}

func (c *Collection) add(name, path string) error {
	f, err := c.digester.file(filepath.Join(c.Dir, path))
	if err != nil {
		return err
	}
	f.Name, f.Path = name, filepath.ToSlash(path)
	c.manifest.Files = append(c.manifest.Files, f)
	return nil
}

// digester reads files for their digests.
type digester struct {
	check  func() error
	crc    hash.Hash32
	sha    hash.Hash
	buffer []byte
}

func newDigester(check func() error) *digester {
	return &digester{check, crc32.NewIEEE(), sha256.New(), make([]byte, 256<<10)}
}

// file reads a file to its end, in one pass, and makes its content durable.
func (d *digester) file(path string) (m app.ManifestFile, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	d.crc.Reset()
	d.sha.Reset()
	for {
		n, err := f.Read(d.buffer)
		d.crc.Write(d.buffer[:n])
		d.sha.Write(d.buffer[:n])
		m.Size += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = d.check()
		}
		if err != nil {
			return m, err
		}
	}
	m.CRC32, m.SHA256 = d.crc.Sum32(), hex.EncodeToString(d.sha.Sum(nil))
	return m, f.Sync()
}

// publicNames returns what clients call the files of a result: their paths,
// except for those that have a name of the service's own files.
func publicNames(files []string) []string {
	taken := make(map[string]bool, len(files))
	for _, f := range files {
		taken[f] = true
	}
	names := slices.Clone(files)
	for i, f := range files {
		if f == recordFile || f == logName {
			names[i] = below(taken, f)
			taken[names[i]] = true
		}
	}
	return names
}

// below puts name into the directory output, or if the program itself has a
// file of either name into output~2 and so on.
func below(taken map[string]bool, name string) string {
	dir := "output"
	for n := 2; taken[dir] || taken[dir+"/"+name]; n++ {
		dir = fmt.Sprintf("output~%d", n)
	}
	return dir + "/" + name
}

// summarize fills in what the job's record will say about the result.
func (c *Collection) summarize() error {
	c.ending = app.Ending{Outcome: c.Outcome}
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
	results, problems := c.Algorithm.Metrics.Read(root.FS())
	for _, p := range problems {
		c.Log.Debug().Str("problem", p).Msg("a metric can't be read")
	}
	c.ending.Results = results
	return root.Close()
}

// writeRecord puts the job's final record beside the result.
func (c *Collection) writeRecord() error {
	record, err := c.Record(c.ending)
	if err != nil {
		return err
	}
	job, err := os.OpenRoot(c.Dir)
	if err != nil {
		return err
	}
	if err := errors.Join(durable.Replace(job, recordFile, record), job.Close()); err != nil {
		return err
	}
	return c.add(recordFile, recordFile)
}

// writeManifest makes the names of all files durable, then the list of them.
func (c *Collection) writeManifest() error {
	if err := c.syncDirs(); err != nil {
		return err
	}
	slices.SortFunc(c.manifest.Files, func(a, b app.ManifestFile) int { return strings.Compare(a.Name, b.Name) })
	return c.Manifests.WriteManifest(c.Job, &c.manifest)
}

// syncDirs syncs the directories that hold names of files in the manifest, and
// the one that holds the job's. The job's own was synced with the record.
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
