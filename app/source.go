package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/fault"
	"molrun/app/strictjson"
)

// resolveFiles finds the file that each reference in the rows' settings
// means, and pins it: the job reads these bytes whatever is uploaded later.
func (o *order) resolveFiles(ctx context.Context, rows []row) error {
	parameters := o.algorithm.FileParameters()
	if len(parameters) == 0 {
		return nil
	}
	return o.service.store.View(ctx, func(tx Tx) error {
		for i := range rows {
			if rows[i].sent == nil {
				continue
			}
			if err := o.resolveRow(tx, &rows[i], parameters); err != nil {
				return err
			}
		}
		return nil
	})
}

// resolveRow finds the files of one row.
func (o *order) resolveRow(tx Tx, r *row, parameters []algorithm.Parameter) error {
	for _, p := range parameters {
		v := r.sent.Member(p.Name)
		if v == nil || v.Kind != strictjson.String {
			continue
		}
		input, src, err := o.service.resolve(tx, o.by, p, v.Text)
		var refused *fault.Error
		switch {
		case errors.As(err, &refused) && refused.Code == fault.Invalid:
			r.faults = append(r.faults, fault.Field{Loc: []any{p.Name}, Msg: refused.Message, Type: "file"})
		case err != nil:
			return err
		default:
			r.inputs = append(r.inputs, input)
			r.sources = append(r.sources, src)
		}
	}
	return nil
}

// resolve finds what one reference means: a fileId, folder/filename among the
// submitter's own uploads, or job:<jobName>/<path>. The error is Invalid
// where there is no such file.
func (s *Service) resolve(tx Tx, by Caller, p algorithm.Parameter, ref string) (Input, Source, error) {
	var input Input
	var src Source
	var err error
	if name, ok := strings.CutPrefix(ref, "job:"); ok {
		input, src, err = s.resolveResult(tx, by, name)
	} else {
		input, src, err = resolveUpload(tx, by, ref)
	}
	if err != nil {
		return input, src, err
	}
	if !p.Accepts(input.Filename) {
		return input, src, fault.Errorf(fault.Invalid, "%q is not a file of the kind wanted here (%s)", input.Filename, strings.Join(p.File, ", "))
	}
	input.Setting, src.Setting = p.Name, p.Name
	return input, src, nil
}

func resolveUpload(tx Tx, by Caller, ref string) (Input, Source, error) {
	u, err := findUpload(tx, by, ref)
	switch {
	case errors.Is(err, fault.NotFound):
		return Input{}, Source{}, fault.Errorf(fault.Invalid, "there is no completed upload %q; give a fileId, folder/filename of a file that you uploaded, or job:<jobName>/<path>", ref)
	case err != nil:
		return Input{}, Source{}, err
	case !u.Completed():
		return Input{}, Source{}, fault.Errorf(fault.Invalid, "the upload %q is not completed; send POST /upload/%s/complete first", ref, u.ID)
	}
	input := Input{FileID: string(u.ID), Filename: u.Filename, SHA256: u.SHA256}
	return input, Source{Upload: u.ID, Generation: u.Generation, Size: u.Size}, nil
}

func findUpload(tx Tx, by Caller, ref string) (*Upload, error) {
	if _, err := ParseID(ref); err == nil {
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

func (s *Service) resolveResult(tx Tx, by Caller, ref string) (Input, Source, error) {
	name, path, _ := strings.Cut(ref, "/")
	j, err := tx.JobNamed(by.Organization, name)
	switch {
	case errors.Is(err, fault.NotFound):
		return Input{}, Source{}, fault.Errorf(fault.Invalid, "there is no job %q; a result is named job:<jobName>/<path>", name)
	case err != nil:
		return Input{}, Source{}, err
	case j.Status != Completed || j.IsBatch():
		return Input{}, Source{}, fault.Errorf(fault.Invalid, "job %q has no result to read; wait until it is COMPLETED (of a batch, name a row)", name)
	}
	manifest, err := s.blobs.Manifest(j.ID)
	if err != nil {
		return Input{}, Source{}, fmt.Errorf("result of job %s: %w", j.ID, err)
	}
	i := manifest.Find(path)
	if i < 0 {
		return Input{}, Source{}, fault.Errorf(fault.Invalid, "the result of job %q has no file %q; GET /jobs/{jobName}/files lists them", name, path)
	}
	f := manifest.Files[i]
	input := Input{Job: name, Path: path, Filename: filepath.Base(path), SHA256: f.SHA256}
	return input, Source{Job: j.ID, Path: f.Path, Size: f.Size}, nil
}

// SourcePath gives where an input's bytes lie.
func (s *Service) SourcePath(src Source) (string, error) {
	switch {
	case src.Upload != "":
		return s.blobs.UploadPath(src.Upload, src.Generation), nil
	case src.Job != "" && filepath.IsLocal(src.Path):
		return filepath.Join(s.blobs.JobDir(src.Job), src.Path), nil
	}
	return "", fault.Errorf(fault.Internal, "the source of setting %q can't be read", src.Setting)
}
