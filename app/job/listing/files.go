package listing

import (
	"context"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
)

// FileQuery selects and pages uploads; Folder "" means all folders.
type FileQuery struct {
	Folder            string
	SHA256            string // hex
	WholeOrganization bool   // otherwise only the caller's own
	Limit             int
	StartKey          string
	Faults            []fault.Field // found during decoding
}

// FilePage is a page of uploads and the cursor of the next page, "" on the last page.
type FilePage struct {
	Uploads  []*app.Upload
	StartKey string
}

// Files returns uploads, newest first.
func (l *Lists) Files(ctx context.Context, by app.Caller, q FileQuery) (*FilePage, error) {
	f := app.UploadFilter{Organization: by.Organization, Email: by.Email, Folder: naming.Composed(q.Folder), SHA256: q.SHA256}
	if q.WholeOrganization {
		f.Email = ""
	}
	scope := []string{"files", f.Organization, f.Email, f.Folder}
	if f.SHA256 != "" {
		scope = append(scope, f.SHA256)
	}
	after, err := l.readCursor(q.StartKey, q.Faults, scope)
	if err != nil {
		return nil, err
	}
	var page app.UploadPage
	err = l.store.View(ctx, func(tx app.Tx) (err error) {
		page, err = tx.Uploads(f, after, q.Limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &FilePage{page.Uploads, l.cursor(page.Next, scope)}, nil
}
