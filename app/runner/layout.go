package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/base/fault"
	"molrun/app/runner/result"
	"molrun/app/runner/schedule"
	"molrun/app/task"
)

// rejection is the error that a job can't be started, with a message for its user.
type rejection struct {
	failure app.Failure
	cause   error // for the log
}

func (r *rejection) Error() string { return r.failure.Message }
func (r *rejection) Unwrap() error { return r.cause }

func cannotStart(message string, cause error) *rejection {
	return &rejection{app.Failure{Code: app.FailedCannotStart, Message: message}, cause}
}

// layout holds everything needed to create the content of an attempt's directory.
type layout struct {
	dir       string // the attempt's directory, as its task sees it
	jobDir    string
	job       *app.Job
	lease     schedule.Lease
	storage   int64 // bytes that the job is allowed to write; 0 means no limit
	algorithm *algorithm.File
	program   string // path of this binary, as the task sees it
	options   *Options
	inputPath func(app.Reference) (string, error)
	version   string       // the version of the program; "" if unknown
	folder    string       // the algorithm's folder, as the task sees it
	check     func() error // called while copying files; an error aborts the copy
	unsynced  bool         // true for a job in a worker: if the machine crashes before it begins, its files are created again
}

// writeContent creates the directory's content, task.json last. Nothing else is synced:
// if the machine crashes before the task has begun, everything is created again.
func (l *layout) writeContent() error {
	paths := algorithm.Paths{
		Work:         filepath.Join(l.dir, task.WorkDir),
		Out:          filepath.Join(l.dir, task.WorkDir, task.OutDir),
		In:           filepath.Join(l.dir, task.WorkDir, task.InDir),
		SettingsFile: filepath.Join(l.dir, task.WorkDir, task.SettingsFile),
		Folder:       l.folder,
		Program:      l.program,
	}
	if err := l.makeWork(paths); err != nil {
		return fmt.Errorf("make the work directory: %w", err)
	}
	var err error
	if paths.Files, err = l.copyInputs(); err != nil {
		return err
	}
	paths.Facts = l.job.Private.Facts
	if l.algorithm.Resumable && l.job.Attempts > 1 {
		// If the last attempt's directory is a link, nothing was fetched from it, and the
		// link's target is about to be removed.
		last := filepath.Join(l.jobDir, fmt.Sprint(l.job.Attempts-1))
		if err := result.CopyOutput(paths.Out, last, l.check); err != nil {
			return fmt.Errorf("copy the last attempt's output: %w", err)
		}
	}
	return l.writeTask(paths)
}

// makeWork creates the work directory without the inputs. It first removes the leftovers
// of an earlier preparation, and those of an earlier attempt's unfinished collection.
func (l *layout) makeWork(p algorithm.Paths) error {
	err := errors.Join(
		os.RemoveAll(filepath.Join(l.dir, task.SpecFile)),
		os.RemoveAll(p.Work),
		result.Discard(l.jobDir),
	)
	if err != nil {
		return err
	}
	for _, dir := range []string{p.Work, p.Out, p.In, filepath.Join(p.Work, task.TempDir)} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	return os.WriteFile(p.SettingsFile, l.job.Private.Normalized, 0o600)
}

// copyInputs copies the job's files into the work directory and returns their paths by
// setting name.
func (l *layout) copyInputs() (map[string][]string, error) {
	paths := make(map[string][]string, len(l.job.Private.References))
	names := inputNames{algorithm: l.algorithm, taken: map[string]bool{}}
	for i, ref := range l.job.Private.References {
		filename := l.job.Inputs[i].Filename
		name := names.assign(ref.Setting, filename)
		if !filepath.IsLocal(name) {
			return nil, cannotStart(fmt.Sprintf("The setting name %q is not a valid file name.", ref.Setting), nil)
		}
		path := filepath.Join(l.dir, task.WorkDir, task.InDir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = l.copyInput(path, ref)
		}
		switch {
		case errors.Is(err, errMissing):
			message := fmt.Sprintf("The file %q of setting %q is no longer stored. Upload it again and submit the job under another name.", filename, ref.Setting)
			return nil, &rejection{app.Failure{Code: app.FailedInput, Message: message}, err}
		case err != nil:
			return nil, fmt.Errorf("copy the file of setting %s: %w", ref.Setting, err)
		}
		paths[ref.Setting] = append(paths[ref.Setting], path)
	}
	return paths, nil
}

// errMissing means that an input has changed since the job was submitted.
var errMissing = errors.New("the stored file is missing or has changed")

func (l *layout) copyInput(to string, ref app.Reference) error {
	from, err := l.inputPath(ref)
	if errors.Is(err, fault.NotFound) {
		return errMissing
	}
	if err != nil {
		return err
	}
	in, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP):
		return fmt.Errorf("%w: %w", errMissing, err)
	case err != nil:
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != ref.Size {
		return fmt.Errorf("%w: %s has %d bytes, not %d", errMissing, from, info.Size(), ref.Size)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(result.CopyFile(out, in, l.check), out.Close())
}

func (l *layout) writeTask(p algorithm.Paths) error {
	run, err := l.algorithm.Expand(l.job.Private.Normalized, l.lease.Needs, p)
	if err != nil {
		return cannotStart("Could not build the algorithm's commands from the settings: "+err.Error(), err)
	}
	if err := writeTexts(p.Work, run.Texts); err != nil {
		return fmt.Errorf("write a program's input file: %w", err)
	}
	write := task.WriteSpec
	if l.unsynced {
		write = task.WriteUnsynced
	}
	return write(l.dir, task.Spec{
		Token:             l.job.Private.Token,
		Job:               string(l.job.ID),
		Attempt:           l.job.Attempts,
		Program:           l.program,
		Steps:             run.Steps,
		Env:               run.Env,
		Folder:            p.Folder,
		ProgramVersion:    l.version,
		Shown:             run.Shown,
		GPUs:              l.lease.GPUs,
		Cards:             l.lease.Cards,
		CPUs:              l.lease.Needs.CPUs,
		CPUSet:            l.lease.CPUs,
		MaxRuntimeSeconds: l.job.MaxRuntime,
		MemoryBytes:       l.lease.Needs.MemoryBytes,
		StorageBytes:      l.storage,
		LogBytes:          l.options.LogBytes,
		GraceSeconds:      int64((l.options.Grace + time.Second - 1) / time.Second),
	})
}

// writeTexts writes files below the work directory, keyed by absolute path. The directory
// may contain output of an earlier attempt, so it writes through os.Root: no symbolic
// link leads outside.
func writeTexts(work string, texts map[string]string) error {
	root, err := os.OpenRoot(work)
	if err != nil {
		return err
	}
	defer root.Close()
	for path, text := range texts {
		name, err := filepath.Rel(work, path)
		if err == nil {
			err = root.MkdirAll(filepath.Dir(name), 0o700)
		}
		if err == nil {
			err = root.WriteFile(name, []byte(text), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
