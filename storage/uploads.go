package storage

import (
	"encoding/json"
	"fmt"

	"molrun/app"
	"molrun/app/fault"
)

var uploads = table[app.Upload]{
	bucket: bucketUploads,
	read:   readUpload,
	indexes: []index[app.Upload]{
		{indexUploadsList, uploadList},
		{indexUploadsName, uploadName},
	},
	sums: []sum[app.Upload]{
		{sumUploadsTotal, uploadTotal},
		{sumUploadsUsage, uploadUsage},
	},
}

const (
	indexUploadsList = "uploads.list"
	indexUploadsName = "uploads.name"
)

// uploadList: each combination of the filters of a listing, id.
func uploadList(id app.IDBytes, u *app.Upload) []entry {
	return listEntries(id, u.Organization, u.Email, u.Folder)
}

// uploadName: organization, user, folder, name, id; only completed ones.
func uploadName(id app.IDBytes, u *app.Upload) []entry {
	if !u.Completed() {
		return nil
	}
	return []entry{{key: uploadKey(u.Organization, u.Email, u.Folder, u.Filename).id(id)}}
}

func uploadKey(organization, email, folder, filename string) key {
	return make(key, 0, 128).text(organization).text(email).text(folder).text(filename)
}

func readUpload(t *tx, id app.IDBytes) (*app.Upload, error) {
	value := t.bucket(bucketUploads).Get(id[:])
	if value == nil {
		return nil, noUpload(id.String())
	}
	var u app.Upload
	if err := json.Unmarshal(value, &u); err != nil {
		return nil, fmt.Errorf("read upload %s: %w", id, err)
	}
	return &u, nil
}

func noUpload(id string) error { return fault.Errorf(fault.NotFound, "there is no file %s", id) }

// Upload gives the record of an upload.
func (t *tx) Upload(id app.UploadID) (*app.Upload, error) {
	key, err := app.ParseID(string(id))
	if err != nil {
		return nil, noUpload(string(id))
	}
	return readUpload(t, key)
}

// UploadNamed gives the newest completed upload of that owner and name.
func (t *tx) UploadNamed(organization, email, folder, filename string) (*app.Upload, error) {
	prefix := uploadKey(organization, email, folder, filename)
	for k := range t.descend(indexUploadsName, prefix, prefix.end()) {
		id, err := k.lastID()
		if err != nil {
			return nil, err
		}
		return readUpload(t, id)
	}
	return nil, fault.Errorf(fault.NotFound, "there is no completed file %q", folder+"/"+filename)
}

// PutUpload inserts or replaces an upload.
func (t *tx) PutUpload(u *app.Upload) error {
	id, err := app.ParseID(string(u.ID))
	if err != nil {
		return fmt.Errorf("put upload %q: %w", u.ID, err)
	}
	old, err := present(readUpload(t, id))
	if err != nil {
		return err
	}
	value, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("put upload %s: %w", u.ID, err)
	}
	if err := t.replace(bucketUploads, id[:], value); err != nil {
		return err
	}
	t.raise(id)
	return uploads.reindex(t, id, old, u)
}

// DeleteUpload removes an upload; its ID is never used again.
func (t *tx) DeleteUpload(id app.UploadID) error {
	old, err := t.Upload(id)
	if err != nil {
		return err
	}
	key := idOf(id)
	if err := t.delete(bucketUploads, key[:]); err != nil {
		return err
	}
	return uploads.reindex(t, key, old, nil)
}

// Uploads gives a page, newest first.
func (t *tx) Uploads(f app.UploadFilter, before app.UploadID, limit int) (app.UploadPage, error) {
	prefix := listOf(f.Organization, f.Email, f.Folder)
	ids, more, err := t.page(indexUploadsList, prefix, string(before), limit, nil)
	if err != nil {
		return app.UploadPage{}, fmt.Errorf("list files: %w", err)
	}
	page := app.UploadPage{Uploads: make([]*app.Upload, len(ids)), More: more}
	for i, id := range ids {
		if page.Uploads[i], err = readUpload(t, id); err != nil {
			return app.UploadPage{}, fmt.Errorf("list files: %w", err)
		}
	}
	return page, nil
}
