package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/fault"
)

// copyInputs puts the job's files into its work directory and tells where, by
// setting. The names that users gave are not used: a file is called after its
// setting, with the declared extension that its name has.
func (a *attempt) copyInputs(alg *algorithm.File, check func() error) (map[string]string, error) {
	files := make(map[string]string, len(a.job.Private.References))
	for _, src := range a.job.Private.References {
		given := filenameOf(a.job, src.Setting)
		name := src.Setting + extension(alg, src.Setting, given)
		if filepath.Base(name) != name || !filepath.IsLocal(name) {
			return nil, cannotStart(fmt.Sprintf("The setting %q can't name a file.", src.Setting), nil)
		}
		path := filepath.Join(a.workDir(), inDir, name)
		switch err := a.copyInput(path, src, check); {
		case errors.Is(err, errMissing):
			return nil, inputMissing(src.Setting, given, err)
		case err != nil:
			return nil, fmt.Errorf("copy the file of setting %s: %w", src.Setting, err)
		}
		files[src.Setting] = path
	}
	return files, nil
}

// filenameOf gives what the user called the file of a setting.
func filenameOf(j *app.Job, setting string) string {
	for _, in := range j.Inputs {
		if in.Setting == setting {
			return in.Filename
		}
	}
	return ""
}

// extension gives the declared extension that the file's name ends with, else
// the first that is declared.
func extension(alg *algorithm.File, setting, filename string) string {
	for _, p := range alg.Parameters.Files() {
		if p.Name != setting {
			continue
		}
		if ext := p.Extension(filename); ext != "" {
			return ext
		}
		return p.File[0]
	}
	return ""
}

// errMissing says that an input is not what it was when the job was submitted.
var errMissing = errors.New("the stored file is missing or has changed")

func inputMissing(setting, filename string, cause error) error {
	message := fmt.Sprintf("The file %q of setting %q is no longer stored. Upload it again and submit the job under another name.", filename, setting)
	return &refused{app.Failure{Code: app.FailedInput, Message: message}, cause}
}

func (a *attempt) copyInput(to string, src app.Reference, check func() error) error {
	from, err := a.r.jobs.InputPath(src)
	if errors.Is(err, fault.NotFound) {
		return errMissing
	}
	if err != nil {
		return err
	}
	in, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case notExist(err) || errors.Is(err, syscall.ELOOP):
		return fmt.Errorf("%w: %w", errMissing, err)
	case err != nil:
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != src.Size {
		return fmt.Errorf("%w: %s has %d bytes, not %d", errMissing, from, info.Size(), src.Size)
	}
	return copyTo(to, in, check)
}

func copyTo(to string, in *os.File, check func() error) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(copyFile(out, in, check), out.Close())
}
