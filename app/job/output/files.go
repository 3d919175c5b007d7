package output

import (
	"context"

	"molrun/app"
)

// ListedFile is a file of a job.
type ListedFile struct {
	Path   string
	Size   int64
	SHA256 string // hex; "" if the file can still change
}

// FileListing is the files of a job.
type FileListing struct {
	Files      []ListedFile
	Incomplete bool // the job is running
	Truncated  bool // there are more files than a result can have
}

// Files lists the files of a job. For a batch, they are the files of its completed rows,
// as <row>/<path>.
func (o *Outputs) Files(ctx context.Context, by app.Caller, name string) (l *FileListing, err error) {
	err = o.visit(ctx, by, name, func(s fileSource) (err error) {
		if s.job.IsBatch() {
			l, err = o.batchFiles(ctx, s.job)
			return err
		}
		l, err = s.files()
		return err
	})
	return l, err
}

func (s fileSource) files() (*FileListing, error) {
	l := &FileListing{Files: []ListedFile{}, Incomplete: s.job.Status == app.Running}
	if s.manifest != nil {
		for _, f := range s.manifest.Files {
			l.Files = append(l.Files, ListedFile{f.Name, f.Size, f.SHA256})
		}
		return l, nil
	}
	all, err := s.live.visitFiles(func(name string, size int64) {
		l.Files = append(l.Files, ListedFile{Path: name, Size: size})
	})
	l.Truncated = !all
	return l, err
}

func (o *Outputs) batchFiles(ctx context.Context, batch *app.Job) (*FileListing, error) {
	var rows []*app.Job
	err := o.store.View(ctx, func(tx app.Tx) error {
		rows = nil
		for row, err := range tx.Subjobs(batch.ID, app.Completed) {
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	l := &FileListing{Files: []ListedFile{}, Incomplete: !batch.Status.Finished()}
	for _, row := range rows {
		manifest, err := o.blobs.Manifest(row.ID)
		if err != nil {
			return nil, err
		}
		for _, f := range manifest.Files {
			l.Files = append(l.Files, ListedFile{row.Name + "/" + f.Name, f.Size, f.SHA256})
		}
	}
	return l, nil
}
