package output

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

const inputsDir = "inputs"

// archiveContents collects the contents of an archive.
type archiveContents struct {
	tx      app.Tx
	archive app.Archive
	inputs  map[string]app.InputFile // by name
	missing map[string]bool          // deleted inputs, as shown to users
}

func archiveContentsOf(tx app.Tx, id app.JobID, form app.ArchiveForm) (*archiveContents, error) {
	c := &archiveContents{tx: tx, archive: app.Archive{Folders: []app.Folder{}}, inputs: map[string]app.InputFile{}, missing: map[string]bool{}}
	j, err := tx.Job(id)
	if err != nil {
		return nil, err
	}
	if j.Status != app.Completed && !form.Partial {
		return nil, fault.Errorf(fault.NotFound, "the result is no longer available; request a new link")
	}
	if !j.IsBatch() {
		err = c.addJob(j, "", form)
	} else {
		for row, err := range tx.Subjobs(j.ID, app.Completed) {
			if err == nil {
				err = c.addJob(row, row.Name, form)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if err == nil && len(c.missing) > 0 {
		err = inputsRemoved(j.Name, slices.Sorted(maps.Keys(c.missing)))
	}
	for _, name := range slices.Sorted(maps.Keys(c.inputs)) {
		c.archive.Inputs = append(c.archive.Inputs, c.inputs[name])
	}
	return c, err
}

// maxNamedFiles is the maximum number of deleted inputs listed in an error.
const maxNamedFiles = 10

func inputsRemoved(job string, names []string) error {
	if more := len(names) - maxNamedFiles; more > 0 {
		names = append(names[:maxNamedFiles:maxNamedFiles], unit.Count(more, "other"))
	}
	return fault.Errorf(fault.InputRemoved, "inputs of job %q were deleted: %s; upload these files again, under any name, or request the archive without inputs", job, strings.Join(names, ", "))
}

// addJob adds a job's folder and any inputs not added before.
func (c *archiveContents) addJob(j *app.Job, folder string, form app.ArchiveForm) error {
	c.archive.Folders = append(c.archive.Folders, app.Folder{Name: folder, Job: j.ID, Files: form.Files})
	if !form.Inputs {
		return nil
	}
	for i, input := range j.Inputs {
		name := inputsDir + "/" + input.SHA256 + "/" + input.Filename
		if _, known := c.inputs[name]; known {
			continue
		}
		f, err := c.findInput(j.Organization, input, j.Private.References[i])
		switch {
		case errors.Is(err, fault.NotFound):
			c.missing[fmt.Sprintf("%q with the SHA-256 digest %s", input.Filename, input.SHA256)] = true
		case err != nil:
			return err
		}
		f.Name = name
		c.inputs[name] = f
	}
	return nil
}

// findInput finds the data of an input: the file that the job read, or otherwise any
// upload of the organization with the same content.
func (c *archiveContents) findInput(organization string, input app.Input, ref app.Reference) (f app.InputFile, err error) {
	var u *app.Upload
	if ref.Job != "" {
		there, failed := c.tx.HasJob(ref.Job)
		if there || failed != nil {
			return app.InputFile{Reference: ref}, failed
		}
		err = fault.NotFound
	} else {
		u, err = c.tx.Upload(ref.Upload)
	}
	if errors.Is(err, fault.NotFound) {
		u, err = c.same(organization, input.SHA256)
	}
	if err != nil {
		return f, err
	}
	return app.InputFile{
		Reference: app.Reference{Upload: u.ID, Generation: u.Generation, Size: u.Size},
		CRC32:     u.CRC32, Changed: u.CompletedAt.Unix(),
	}, nil
}

func (c *archiveContents) same(organization, sha256 string) (*app.Upload, error) {
	page, err := c.tx.Uploads(app.UploadFilter{Organization: organization, SHA256: sha256}, "", 1)
	if err == nil && len(page.Uploads) == 0 {
		err = fault.NotFound
	}
	if err != nil {
		return nil, err
	}
	return page.Uploads[0], nil
}
