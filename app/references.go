package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/fault"
	"molrun/app/sortid"
	"molrun/app/strictjson"
)

// resolveFiles resolves every reference to a file in the rows' settings. The
// job will read exactly these bytes, whatever is uploaded later.
func (p *plan) resolveFiles(ctx context.Context, rows []row) error {
	parameters := p.algorithm.Parameters.Files()
	if len(parameters) == 0 {
		return nil
	}
	return p.store.View(ctx, func(tx Tx) error {
		for i := range rows {
			if rows[i].sent == nil {
				continue
			}
			if err := p.resolveRow(tx, &rows[i], parameters); err != nil {
				return err
			}
		}
		return nil
	})
}

// resolveRow resolves the references of one row.
func (p *plan) resolveRow(tx Tx, r *row, parameters []algorithm.Parameter) error {
	for _, parameter := range parameters {
		v := r.sent.Member(parameter.Name)
		if v == nil || v.Kind != strictjson.String {
			continue
		}
		input, ref, err := p.resolve(tx, parameter, v.Text)
		var refused *fault.Error
		switch {
		case errors.As(err, &refused) && refused.Code == fault.Invalid:
			r.faults = append(r.faults, fault.Field{Loc: []any{parameter.Name}, Msg: refused.Message, Type: "file"})
		case err != nil:
			return err
		default:
			r.inputs = append(r.inputs, input)
			r.references = append(r.references, ref)
			if ref.Pending {
				r.waits = append(r.waits, Dependency{Job: ref.Job, Name: input.Job})
			}
		}
	}
	return nil
}

// resolve resolves one reference: a fileId, folder/filename among the
// submitter's own uploads, or job:<jobName>/<path>. The error is Invalid if
// there is no such file.
func (p *plan) resolve(tx Tx, parameter algorithm.Parameter, text string) (Input, Reference, error) {
	var input Input
	var ref Reference
	var err error
	if name, ok := strings.CutPrefix(text, "job:"); ok {
		input, ref, err = p.resolveResult(tx, name)
	} else {
		input, ref, err = resolveUpload(tx, p.by, text)
	}
	if err != nil {
		return input, ref, err
	}
	if !parameter.Accepts(input.Filename) {
		return input, ref, fault.Errorf(fault.Invalid, "%q is not a file of the kind wanted here (%s)", input.Filename, strings.Join(parameter.File, ", "))
	}
	input.Setting, ref.Setting = parameter.Name, parameter.Name
	return input, ref, nil
}

func resolveUpload(tx Tx, by Caller, ref string) (Input, Reference, error) {
	u, err := findUpload(tx, by, ref)
	switch {
	case errors.Is(err, fault.NotFound):
		return Input{}, Reference{}, fault.Errorf(fault.Invalid, "there is no completed upload %q; give a fileId, folder/filename of a file that you uploaded, or job:<jobName>/<path>", ref)
	case err != nil:
		return Input{}, Reference{}, err
	case !u.Completed():
		return Input{}, Reference{}, fault.Errorf(fault.Invalid, "the upload %q is not completed; send POST /upload/%s/complete first", ref, u.ID)
	}
	input := Input{FileID: string(u.ID), Filename: u.Filename, SHA256: u.SHA256}
	return input, Reference{Upload: u.ID, Generation: u.Generation, Size: u.Size}, nil
}

func findUpload(tx Tx, by Caller, ref string) (*Upload, error) {
	if _, err := sortid.Parse(ref); err == nil {
		u, err := tx.Upload(UploadID(ref))
		if err == nil && u.Organization != by.Organization {
			return nil, fault.NotFound
		}
		return u, err
	}
	i := strings.LastIndexByte(ref, '/')
	if i < 0 {
		return nil, fault.NotFound
	}
	return tx.UploadNamed(by.Organization, by.Email, ref[:i], ref[i+1:])
}

// pending refers to a file of a job that has not finished. Whether there is one is
// found when it has.
func pending(id JobID, name, path string) (Input, Reference, error) {
	if !filepath.IsLocal(path) {
		return Input{}, Reference{}, fault.Errorf(fault.Invalid, "name a file of job %q, as in job:%s/<path>", name, name)
	}
	return Input{Job: name, Path: path, Filename: filepath.Base(path)}, Reference{Job: id, Pending: true}, nil
}

func (p *plan) resolveResult(tx Tx, ref string) (Input, Reference, error) {
	name, path, _ := strings.Cut(ref, "/")
	if id, ok := p.siblings[name]; ok {
		return pending(id, name, path)
	}
	j, err := tx.JobNamed(p.by.Organization, name)
	switch {
	case errors.Is(err, fault.NotFound):
		return Input{}, Reference{}, fault.Errorf(fault.Invalid, "there is no job %q; a result is named job:<jobName>/<path>", name)
	case err != nil:
		return Input{}, Reference{}, err
	case j.Status == Failed || j.IsBatch():
		return Input{}, Reference{}, fault.Errorf(fault.Invalid, "job %q has no result to read; retry it if it has FAILED, and of a batch name a row", name)
	case j.Status != Completed:
		return pending(j.ID, name, path)
	}
	manifest, err := p.blobs.Manifest(j.ID)
	if err != nil {
		return Input{}, Reference{}, fmt.Errorf("result of job %s: %w", j.ID, err)
	}
	i := manifest.Find(path)
	if i < 0 {
		return Input{}, Reference{}, fault.Errorf(fault.Invalid, "the result of job %q has no file %q; GET /jobs/{jobName}/files lists them", name, path)
	}
	f := manifest.Files[i]
	input := Input{Job: name, Path: path, Filename: filepath.Base(path), SHA256: f.SHA256}
	return input, Reference{Job: j.ID, Path: f.Path, Size: f.Size}, nil
}
