package storage

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"iter"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/storage/kv"
)

// Upload returns the record of an upload.
func (t tx) Upload(id app.UploadID) (*app.Upload, error) {
	key, err := sortid.Parse(string(id))
	if err != nil {
		return nil, noUpload(string(id))
	}
	return readUpload(t.Tx, key)
}

func readUpload(t *kv.Tx, id sortid.ID) (*app.Upload, error) {
	value := t.Bucket(bucketUploads).Get(id[:])
	if value == nil {
		return nil, noUpload(id.String())
	}
	return decodeUpload(id, [][]byte{value})
}

// decodeUpload decodes the only part of a record.
func decodeUpload(id sortid.ID, parts [][]byte) (*app.Upload, error) {
	return decodedRecord[app.Upload]("upload", id, parts[0])
}

func noUpload(id string) error { return fault.Errorf(fault.NotFound, "there is no file %s", id) }

// UploadNamed returns the newest completed upload with this owner and name.
func (t tx) UploadNamed(organization, email, folder, filename string) (*app.Upload, error) {
	prefix := uploadKey(organization, email, folder, filename)
	for k := range t.Descend(indexUploadsName, prefix, prefix.End()) {
		id, err := k.LastID()
		if err != nil {
			return nil, err
		}
		return readUpload(t.Tx, id)
	}
	return nil, fault.Errorf(fault.NotFound, "there is no completed file %q", folder+"/"+filename)
}

// PutUpload inserts or replaces an upload.
func (t tx) PutUpload(u *app.Upload) error {
	id, err := sortid.Parse(string(u.ID))
	if err != nil {
		return fmt.Errorf("put upload %q: %w", u.ID, err)
	}
	return putRecord(t.Tx, &uploads, id, u)
}

// DeleteUpload removes an upload; its ID is never used again.
func (t tx) DeleteUpload(id app.UploadID) error {
	old, err := t.Upload(id)
	if err != nil {
		return err
	}
	return uploads.Delete(t.Tx, idOf(id), old)
}

// OldestUploads iterates over the uploads newer than after, oldest first.
func (t tx) OldestUploads(after app.UploadID) iter.Seq2[*app.Upload, error] {
	return func(yield func(*app.Upload, error) bool) {
		from := idOf(after)
		w := t.Walk(bucketUploads)
		for w.Seek(from[:]); w.Key != nil; w.Next() {
			id, err := w.Key.LastID()
			if err == nil && id == from {
				continue
			}
			var u *app.Upload
			if err == nil {
				u, err = readUpload(t.Tx, id)
			}
			if !yield(u, err) || err != nil {
				return
			}
		}
	}
}

const indexUploadsName = "uploads.name"

// uploadName indexes completed uploads by organization, user, folder, name and id.
func uploadName(id sortid.ID, u *app.Upload) []kv.Entry {
	if !u.Completed() {
		return nil
	}
	return []kv.Entry{{Key: uploadKey(u.Organization, u.Email, u.Folder, u.Filename).ID(id)}}
}

func uploadKey(organization, email, folder, filename string) kv.Key {
	return make(kv.Key, 0, 128).Text(organization).Text(email).Text(folder).Text(filename)
}

const indexUploadsDigest = "uploads.digest"

// uploadDigest indexes completed uploads by organization, user or "" for all,
// SHA-256 and id.
func uploadDigest(id sortid.ID, u *app.Upload) []kv.Entry {
	if !u.Completed() {
		return nil
	}
	all := []kv.Entry{{Key: digestKey(u.Organization, "", u.SHA256).ID(id)}}
	if u.Email != "" {
		all = append(all, kv.Entry{Key: digestKey(u.Organization, u.Email, u.SHA256).ID(id)})
	}
	return all
}

func digestKey(organization, email, sha256 string) kv.Key {
	k := make(kv.Key, 0, 128).Text(organization).Text(email)
	if raw, err := hex.DecodeString(sha256); err == nil {
		return k.Text(string(raw)) // half as long
	}
	return k.Text(sha256)
}

const indexUploadsPartial = "uploads.partial"

// uploadPartial indexes unfinished resumable uploads by the time bytes last arrived, then
// by id.
func uploadPartial(id sortid.ID, u *app.Upload) []kv.Entry {
	if u.Partial == nil {
		return nil
	}
	return []kv.Entry{{Key: make(kv.Key, 0, 32).Time(u.Partial.ReceivedAt.Time).ID(id)}}
}

// StalePartials returns up to limit unfinished resumable uploads whose last bytes arrived
// before a time.
func (t tx) StalePartials(before time.Time, limit int) (ids []app.UploadID, err error) {
	end := make(kv.Key, 0, 16).Time(before)
	for k := range t.Ascend(indexUploadsPartial, nil) {
		if bytes.Compare(k, end) >= 0 || len(ids) == limit {
			break
		}
		id, err := k.LastID()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", indexUploadsPartial, err)
		}
		ids = append(ids, app.UploadID(id.String()))
	}
	return ids, nil
}
