package output

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

// resultLinkLife is how long a link to a result is valid. It is part of the API contract,
// not a setting.
const resultLinkLife = time.Hour

// Results creates links to the results of jobs. It is safe for concurrent use.
type Results struct {
	store app.Store
	blobs app.Blobs
	jobs  *app.Jobs
	now   func() time.Time
}

// NewResults returns the results of the jobs in store, whose files are in blobs.
func NewResults(store app.Store, blobs app.Blobs, jobs *app.Jobs, now func() time.Time) *Results {
	return &Results{store: store, blobs: blobs, jobs: jobs, now: now}
}

// ResultLink is a link to a job's result.
type ResultLink struct {
	URL       string
	FileName  string
	Size      int64
	ExpiresAt unit.Time
	Missing   *MissingRows // rows missing in the archive of a batch; nil if none
}

// LinkRequest is a request for a link. File "" means the archive of all files.
type LinkRequest struct {
	Name string
	File string
	Form app.ArchiveForm
	Base string // prefix of links
}

// Link returns a link to one file of a completed job, or to its archive.
func (s *Results) Link(ctx context.Context, by app.Caller, r LinkRequest) (*ResultLink, error) {
	var j *app.Job
	var missing *MissingRows
	err := s.store.View(ctx, func(tx app.Tx) (err error) {
		if j, err = s.jobs.FindJob(tx, by, r.Name); err != nil {
			return err
		}
		if j.Status != app.Completed && (!r.Form.Partial || !j.IsBatch()) {
			return notCompleted(tx, j)
		}
		if r.File, j, err = fileOf(tx, j, r.File); err == nil && r.File == "" && j.IsBatch() {
			missing, err = missingRowsOf(tx, j)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	expires := unit.At(s.now().Add(resultLinkLife))
	out := &ResultLink{ExpiresAt: expires, Missing: missing}
	link := app.Link{ID: string(j.ID), Expires: expires.Time, Holder: by.KeyID, Issued: by.At}
	if r.File == "" {
		err = s.linkArchive(ctx, &link, out, j, r.Form)
	} else {
		err = s.linkFile(ctx, &link, out, j, r)
	}
	if err != nil {
		return nil, err
	}
	out.URL = r.Base + s.blobs.Link(link)
	return out, nil
}

// fileOf resolves a file name. "" means the archive. In a batch, <batchName>.zip also
// means the archive, and <row>/<path> means a file of that row.
func fileOf(tx app.Tx, j *app.Job, file string) (string, *app.Job, error) {
	if file == "" || !j.IsBatch() {
		return file, j, nil
	}
	if file == archiveName(j) {
		return "", j, nil
	}
	name, path, _ := strings.Cut(file, "/")
	row, err := tx.JobNamed(j.Organization, name)
	if err != nil && !errors.Is(err, fault.NotFound) {
		return "", nil, err
	}
	if err != nil || row.Private.Batch != j.ID || row.Status != app.Completed || path == "" {
		return "", nil, fault.Errorf(fault.NotFound, "batch %q has no completed job with the file %q; write it as <jobName>/<path>", j.Name, file)
	}
	return path, row, nil
}

func archiveName(j *app.Job) string { return j.Name + ".zip" }

func (s *Results) linkArchive(ctx context.Context, link *app.Link, out *ResultLink, j *app.Job, form app.ArchiveForm) error {
	form.Partial = form.Partial && j.IsBatch()
	archive, err := s.Archive(ctx, j.ID, form)
	if err != nil {
		return err
	}
	out.FileName = archiveName(j)
	link.Kind, link.Filename, link.Inputs = app.ArchiveGet, out.FileName, form.Inputs
	if form.Partial {
		link.Kind = app.PartArchive
	}
	out.Size, err = s.blobs.ArchiveSize(archive)
	return err
}

// linkFile links to a file of a result. The archive's name means the archive, unless the
// program created a file with that name.
func (s *Results) linkFile(ctx context.Context, link *app.Link, out *ResultLink, j *app.Job, r LinkRequest) error {
	manifest, err := s.blobs.Manifest(j.ID)
	if err != nil {
		return err
	}
	i := manifest.Find(r.File)
	switch {
	case i < 0 && r.File == archiveName(j):
		return s.linkArchive(ctx, link, out, j, app.ArchiveForm{Inputs: r.Form.Inputs})
	case i < 0:
		return fault.Errorf(fault.NotFound, "the result of job %q has no file %q; GET /jobs/{jobName}/files lists them", j.Name, r.File)
	case r.Form.Inputs:
		return fault.List(fault.Field{
			Loc: []any{"body", "inputs"}, Type: "value",
			Msg: "inputs are only part of the archive; omit fileName to download it",
		})
	}
	link.Kind, link.File, link.Filename = app.ResultGet, i, filepath.Base(r.File)
	out.FileName, out.Size = r.File, manifest.Files[i].Size
	return nil
}

// Archive returns the contents of the archive of a job or batch. The caller must have
// verified a link to it.
func (s *Results) Archive(ctx context.Context, id app.JobID, form app.ArchiveForm) (archive app.Archive, err error) {
	err = s.store.View(ctx, func(tx app.Tx) error {
		c, err := archiveContentsOf(tx, id, form)
		if err == nil {
			archive = c.archive
		}
		return err
	})
	return archive, err
}
