package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/fanout"
	"molrun/app/fault"
	"molrun/app/naming"
	"molrun/app/sortid"
	"molrun/app/strictjson"
	"molrun/app/unit"
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

// resolve resolves one reference. The error is Invalid if there is no such file.
func (p *plan) resolve(tx Tx, parameter algorithm.Parameter, text string) (Input, Reference, error) {
	input, ref, err := p.locate(tx, text)
	if err != nil {
		return input, ref, err
	}
	if !parameter.Accepts(input.Filename) {
		return input, ref, fault.Errorf(fault.Invalid, "%q is not a file of the kind wanted here (%s)", input.Filename, strings.Join(parameter.File, ", "))
	}
	input.Setting, ref.Setting = parameter.Name, parameter.Name
	return input, ref, nil
}

// locate finds the bytes that a reference names: a fileId, folder/filename or
// sha256:<digest>/<filename> among the submitter's own uploads, or
// job:<jobName>/<path>.
func (p *plan) locate(tx Tx, text string) (Input, Reference, error) {
	if name, ok := strings.CutPrefix(text, "job:"); ok {
		return p.resolveResult(tx, name)
	}
	if digest, filename, ok := cutDigest(text); ok {
		return resolveDigest(tx, p.by, digest, filename)
	}
	return resolveUpload(tx, p.by, text)
}

// DigestReference refers to an upload with these bytes, whose program sees it under
// this name.
func DigestReference(sha256, filename string) string { return "sha256:" + sha256 + "/" + filename }

func cutDigest(text string) (digest, filename string, ok bool) {
	text, ok = strings.CutPrefix(text, "sha256:")
	digest, filename, found := strings.Cut(text, "/")
	return strings.ToLower(digest), filename, ok && found && len(digest) == 2*sha256.Size && filename != "" && !strings.Contains(filename, "/")
}

func resolveDigest(tx Tx, by Caller, digest, filename string) (Input, Reference, error) {
	if msg := naming.CheckFilename(filename); msg != "" {
		return Input{}, Reference{}, fault.Errorf(fault.Invalid, "the name of the file behind its digest: %s", msg)
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

// maxExpanding bounds what all batches take that are being expanded, in bytes.
const maxExpanding = 192 << 20

// maxListed bounds how many uploads of a folder are looked at. A name may have been
// uploaded many times.
const maxListed = 100_000

// ownFiles gives the files of a caller to the expansion of a batch.
type ownFiles struct {
	*plan
	read int64 // bytes
}

// List lists the completed uploads of a folder. One that is not completed would be
// missing among the rows, so it is refused unless its name was completed before.
func (f *ownFiles) List(ctx context.Context, folder string) (names []string, err error) {
	err = f.store.View(ctx, func(tx Tx) error {
		completed := map[string]bool{}
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
		names, err = onlyCompleted(folder, completed)
		return err
	})
	return names, err
}

func onlyCompleted(folder string, completed map[string]bool) (names []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(completed)) {
		if !completed[name] {
			return nil, fault.Errorf(fault.Invalid, "the upload %s/%s is not completed; complete it or delete it", folder, name)
		}
		names = append(names, name)
	}
	return names, nil
}

// Read reads a file outside of any transaction.
func (f *ownFiles) Read(ctx context.Context, ref string) ([]byte, error) {
	var source Reference
	err := f.store.View(ctx, func(tx Tx) (err error) {
		_, source, err = f.locate(tx, ref)
		return err
	})
	if err != nil {
		return nil, err
	}
	if source.Pending {
		return nil, fault.Errorf(fault.Invalid, "the job of %q has not finished, so its rows are not known; submit this when it is COMPLETED", ref)
	}
	if f.read += source.Size; f.read > fanout.MaxFileBytes {
		return nil, fault.Errorf(fault.Invalid, "the files that rows are read from have more than %s; submit several batches", unit.Bytes(fanout.MaxFileBytes))
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
		return nil, fault.Errorf(fault.Invalid, "the file %q was deleted just now", ref)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	return text, nil
}

// Reserve counts bytes against what all expansions may take.
func (f *ownFiles) Reserve(bytes int64) error {
	f.reserved += bytes
	if f.expanding.Add(bytes) > maxExpanding {
		return fault.Errorf(fault.Unavailable, "The service is expanding too many large batches; send this one again in a few seconds.")
	}
	return nil
}

var _ fanout.Files = (*ownFiles)(nil)
