package app

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"molrun/app/algorithm"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
)

// sibling is a row of the same batch.
type sibling struct {
	id        JobID
	algorithm *algorithm.File // nil if it does not exist
}

// resolveResult returns the files of another job's result, or pending references if that
// job has not finished.
func (p *plan) resolveResult(tx Tx, r naming.Reference) (files []resolvedFile, err error) {
	if s, ok := p.siblings[r.Job]; ok {
		return pending(s.id, r, s.algorithm)
	}
	j, err := tx.JobNamed(p.by.Organization, r.Job)
	switch {
	case errors.Is(err, fault.NotFound):
		return nil, fault.Errorf(fault.Invalid, "there is no job %q; write a file of a result as job:<jobName>/<path>", r.Job)
	case err != nil:
		return nil, err
	case j.Status == Failed || j.IsBatch():
		return nil, fault.Errorf(fault.Invalid, "job %q has no result; retry it if it is FAILED, or name one of its jobs if it is a batch", r.Job)
	}
	var a *algorithm.File
	if r.Output != "" {
		if files, known := p.outputs[r]; known {
			return files, nil
		}
		if a, err = p.algorithmIn(tx, j); err != nil {
			return nil, err
		}
	}
	if j.Status != Completed {
		return pending(j.ID, r, a)
	}
	manifest, err := p.blobs.Manifest(j.ID)
	if err != nil {
		return nil, fmt.Errorf("result of job %s: %w", j.ID, err)
	}
	if r.Output == "" {
		return resultFile(j.ID, r, manifest)
	}
	if files, err = outputFiles(j.ID, r, a, manifest); err == nil {
		p.outputs[r] = files
	}
	return files, err
}

// pending returns a reference to a file or an output of an unfinished job. Whether it
// exists is checked when the job has finished.
func pending(id JobID, r naming.Reference, a *algorithm.File) ([]resolvedFile, error) {
	name := r.Path
	switch {
	case r.Output != "":
		o, err := algorithm.OutputOf(a, r)
		if err != nil {
			return nil, err
		}
		name = o.File
	case !filepath.IsLocal(name):
		return nil, fault.Errorf(fault.Invalid, "name a file of job %q, as in job:%s/<path>", r.Job, r.Job)
	}
	return []resolvedFile{{
		Input{Job: r.Job, Output: r.Output, Path: name, Filename: path.Base(name)},
		Reference{Job: id, Output: r.Output, Pending: true},
	}}, nil
}

// resultFile returns the file of a result with a given path.
func resultFile(id JobID, r naming.Reference, m *Manifest) ([]resolvedFile, error) {
	i := m.Find(r.Path)
	if i < 0 {
		return nil, fault.Errorf(fault.Invalid, "the result of job %q has no file %q; GET /jobs/{jobName}/files lists them", r.Job, r.Path)
	}
	return []resolvedFile{fileOf(id, r, m.Files[i])}, nil
}

// outputFiles returns the files of a result that belong to an output.
func outputFiles(id JobID, r naming.Reference, a *algorithm.File, m *Manifest) (files []resolvedFile, err error) {
	o, err := algorithm.OutputOf(a, r)
	if err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		if o.Has(f.Name) {
			files = append(files, fileOf(id, r, f))
		}
	}
	if files == nil {
		return nil, fault.Errorf(fault.Invalid, "the result of job %q has no file for the output %q (%s)", r.Job, o.Name, o.File)
	}
	return files, nil
}

func fileOf(id JobID, r naming.Reference, f ManifestFile) resolvedFile {
	return resolvedFile{
		Input{Job: r.Job, Output: r.Output, Path: f.Name, Filename: path.Base(f.Name), SHA256: f.SHA256},
		Reference{Job: id, Path: f.Path, Size: f.Size},
	}
}
