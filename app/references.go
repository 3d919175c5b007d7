package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/algorithm/fanout"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
)

// resolveFiles resolves every file reference in the rows' settings. The job will read
// exactly these bytes, even if the file is uploaded again later.
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

func (p *plan) resolveRow(tx Tx, r *row, parameters []algorithm.Parameter) error {
	for _, parameter := range parameters {
		for _, named := range parameter.References(r.sent) {
			if err := p.resolveParameter(tx, r, parameter, named); err != nil {
				return err
			}
		}
	}
	r.facts = factsOf(r.references)
	if slices.ContainsFunc(r.inputs, func(in Input) bool { return in.Output != "" }) {
		r.faults = append(r.faults, p.algorithm.Parameters.CountFaults(r.facts)...)
	}
	return nil
}

func (p *plan) resolveParameter(tx Tx, r *row, parameter algorithm.Parameter, named algorithm.FileReference) error {
	files, err := p.resolveReference(tx, parameter, named.Text)
	var refused *fault.Error
	switch {
	case errors.As(err, &refused) && refused.Code == fault.Invalid:
		r.faults = append(r.faults, fault.Field{Loc: named.Loc, Msg: refused.Message, Type: "file"})
	case err != nil:
		return err
	}
	for _, f := range files {
		r.inputs = append(r.inputs, f.input)
		r.references = append(r.references, f.ref)
		r.named = append(r.named, named.File(f.input.Output, f.input.Path))
		if f.ref.Pending {
			r.waits = append(r.waits, Dependency{Job: f.ref.Job, Name: f.input.Job})
		}
	}
	return nil
}

// resolvedFile is a file that a setting names. For several files, or one that does not
// exist yet, the path is the pattern of an output.
type resolvedFile struct {
	input Input
	ref   Reference
}

// resolveReference resolves one reference. If the reference names an output, the result
// can be several files. The error is Invalid if there are no such files.
func (p *plan) resolveReference(tx Tx, parameter algorithm.Parameter, text string) ([]resolvedFile, error) {
	files, err := p.locateFiles(tx, text)
	if err != nil {
		return nil, err
	}
	if p.resolved += len(files); p.resolved > maxListed {
		return nil, fault.Errorf(fault.Invalid, "the settings name more than %d files; submit several batches", maxListed)
	}
	return acceptedFiles(&parameter, files)
}

// acceptedFiles returns the files of one reference for use by a setting. The error is
// Invalid if the setting does not accept them.
func acceptedFiles(parameter *algorithm.Parameter, files []resolvedFile) ([]resolvedFile, error) {
	if n := len(files); n > 1 && !parameter.Many {
		in := files[0].input
		return nil, fault.Errorf(fault.Invalid, "the output %q of job %q has %d files, but this setting takes only one: name the file, as in job:%s/%s", in.Output, in.Job, n, in.Job, in.Path)
	}
	for i := range files {
		f := &files[i]
		accepts := parameter.Accepts(f.input.Filename)
		if f.ref.Pending && f.ref.Output != "" {
			accepts = parameter.CouldAccept(f.input.Filename)
		}
		if !accepts {
			return nil, fault.Errorf(fault.Invalid, "%q has the wrong file type; this setting takes %s", f.input.Filename, strings.Join(parameter.File, ", "))
		}
		f.input.Setting, f.ref.Setting = parameter.Name, parameter.Name
	}
	return files, nil
}

// locateFiles locates the data of a reference: a fileId, folder/filename or
// sha256:<digest>/<filename> among the submitter's own uploads, or job:<jobName>/<path>
// or job:<jobName>/@<output>.
func (p *plan) locateFiles(tx Tx, text string) ([]resolvedFile, error) {
	r := naming.ParseReference(text)
	if r.OfJob {
		return p.resolveResult(tx, r)
	}
	var f resolvedFile
	var err error
	if r.Digest != "" {
		f.input, f.ref, err = resolveDigest(tx, p.by, r.Digest, r.Filename)
	} else {
		f.input, f.ref, err = resolveUpload(tx, p.by, r.Upload)
	}
	return []resolvedFile{f}, err
}

func resolveDigest(tx Tx, by Caller, digest, filename string) (Input, Reference, error) {
	if msg := naming.CheckFilename(filename); msg != "" {
		return Input{}, Reference{}, fault.Errorf(fault.Invalid, "the file name after the digest: %s", msg)
	}
	page, err := tx.Uploads(UploadFilter{Organization: by.Organization, Email: by.Email, SHA256: digest}, "", 1)
	switch {
	case err != nil:
		return Input{}, Reference{}, err
	case len(page.Uploads) == 0:
		return Input{}, Reference{}, fault.Errorf(fault.Invalid, "upload %q first: no completed upload of yours has the SHA-256 digest %s", filename, digest)
	}
	u := page.Uploads[0]
	return Input{FileID: string(u.ID), Filename: filename, SHA256: u.SHA256}, Reference{Upload: u.ID, Generation: u.Generation, Size: u.Size}, nil
}

func resolveUpload(tx Tx, by Caller, ref string) (Input, Reference, error) {
	u, err := findUpload(tx, by, ref)
	switch {
	case errors.Is(err, fault.NotFound):
		return Input{}, Reference{}, fault.Errorf(fault.Invalid, "there is no completed upload %q; give a fileId, folder/filename of a file that you uploaded, or job:<jobName>/<path>", ref)
	case err != nil:
		return Input{}, Reference{}, err
	case !u.Completed():
		return Input{}, Reference{}, fault.Errorf(fault.Invalid, "the upload %q is not complete; send POST /upload/%s/complete first", ref, u.ID)
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

// defaultExpanding is the default of Options.MaxExpandingBytes.
const defaultExpanding = 192 << 20

// maxListed limits the number of uploads read from a folder, where one name can have many
// uploads, and the number of files that the settings of a submission can refer to.
const maxListed = 100_000

// ownFiles provides a caller's files for the expansion of a batch.
type ownFiles struct {
	*plan
	read int64 // bytes read
}

// List returns the names of the uploads in a folder and whether each is completed.
func (f *ownFiles) List(ctx context.Context, folder string) (completed map[string]bool, err error) {
	err = f.store.View(ctx, func(tx Tx) (err error) {
		completed = map[string]bool{}
		filter := UploadFilter{Organization: f.by.Organization, Email: f.by.Email, Folder: folder}
		page, after, looked := UploadPage{}, Position(""), 0
		for more := true; more; more = after != "" {
			if page, err = tx.Uploads(filter, after, 1000); err != nil {
				return err
			}
			if looked += len(page.Uploads); looked > maxListed {
				return fault.Errorf(fault.Invalid, "the folder %s has more than %d uploads; delete old ones or use another folder", folder, maxListed)
			}
			for _, u := range page.Uploads {
				completed[u.Filename] = completed[u.Filename] || u.Completed()
			}
			after = page.Next
		}
		return nil
	})
	return completed, err
}

// Read reads a file outside any transaction.
func (f *ownFiles) Read(ctx context.Context, ref string) ([]byte, error) {
	var files []resolvedFile
	err := f.store.View(ctx, func(tx Tx) (err error) {
		files, err = f.locateFiles(tx, ref)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(files) > 1 {
		return nil, fault.Errorf(fault.Invalid, "%q refers to %d files, but a batch is made from one: name the file, as in job:%s/%s", ref, len(files), files[0].input.Job, files[0].input.Path)
	}
	source := files[0].ref
	if source.Pending {
		return nil, fault.Errorf(fault.Invalid, "the job of %q has not finished, so its rows are not known yet; submit the batch when that job is COMPLETED", ref)
	}
	if f.read += source.Size; f.read > fanout.MaxFileBytes {
		return nil, fault.Errorf(fault.Invalid, "the files that the batch is made from have more than %s; submit several batches", unit.Bytes(fanout.MaxFileBytes))
	}
	if err := f.Reserve(source.Size); err != nil {
		return nil, err
	}
	path, err := f.referencePath(source)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Errorf(fault.Invalid, "the file %q was just deleted", ref)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	return text, nil
}

// Reserve counts bytes against the memory limit shared by all expansions.
func (f *ownFiles) Reserve(bytes int64) error {
	f.reserved += bytes
	if f.expanding.Add(bytes) > cmp.Or(f.options.MaxExpandingBytes, defaultExpanding) {
		return fault.Errorf(fault.Unavailable, "Too many large batches are being expanded; submit this one again in a few seconds.")
	}
	return nil
}

var _ fanout.Files = (*ownFiles)(nil)
