package output

import (
	"context"
	"path"

	"molrun/app"
	"molrun/app/base/fault"
)

// Files returns the selected files of a completed job. For a batch, they are the files of
// its completed rows, as <row>/<path>.
func (s *Results) Files(ctx context.Context, j *app.Job, selected app.Selection) ([]app.ManifestFile, error) {
	folders := []app.Folder{{Job: j.ID}}
	if j.IsBatch() {
		archive, err := s.Archive(ctx, j.ID, app.ArchiveForm{})
		if err != nil {
			return nil, err
		}
		folders = archive.Folders
	}
	files := []app.ManifestFile{}
	for _, folder := range folders {
		m, err := s.blobs.Manifest(folder.Job)
		if err != nil {
			return nil, err
		}
		for _, f := range m.Files {
			f.Name = path.Join(folder.Name, f.Name)
			if selected.Has(f.Name) {
				files = append(files, f)
			}
		}
	}
	return files, nil
}

// File returns a link to a file of a completed job, without a holder.
func (s *Results) File(ctx context.Context, j *app.Job, name string) (app.Link, error) {
	err := s.store.View(ctx, func(tx app.Tx) (err error) {
		name, j, err = fileOf(tx, j, name)
		return err
	})
	if err != nil {
		return app.Link{}, err
	}
	m, err := s.blobs.Manifest(j.ID)
	if err != nil {
		return app.Link{}, err
	}
	i := m.Find(name) // "" is not found; it would mean the archive
	if i < 0 {
		return app.Link{}, fault.NotFound
	}
	return app.Link{Kind: app.ResultGet, ID: string(j.ID), File: i, Filename: path.Base(name)}, nil
}
