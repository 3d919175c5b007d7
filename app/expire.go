package app

import (
	"context"
	"errors"

	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

// Expired describes what retention or prune deleted, or would delete: a job with its rows
// and the uploads that no other job refers to, or an upload alone.
type Expired struct {
	Job          JobID     `json:"jobId,omitempty"`
	Name         string    `json:"jobName,omitempty"`
	Organization string    `json:"organization"`
	Email        string    `json:"user"`
	Type         string    `json:"type,omitempty"`
	Status       Status    `json:"status,omitempty"`
	EndedAt      unit.Time `json:"completedAt,omitzero"`
	Rows         int       `json:"rows,omitempty"` // of a batch
	Uploads      []string  `json:"uploads,omitempty"`
	Bytes        int64     `json:"bytes"` // disk usage

	Counted int64 `json:"-"` // bytes as counted by quotas
}

// Expire deletes a finished job if it is not pinned and fits still accepts it, together
// with the uploads that no remaining job refers to. It returns nil if the job is kept.
func (s *Jobs) Expire(ctx context.Context, id JobID, fits func(*Job) bool) (*Expired, error) {
	var e *expiry
	err := s.store.Update(ctx, func(tx Tx) (err error) {
		if e, err = s.expiryOf(tx, id, fits); e == nil || err != nil {
			return err
		}
		if err := deleteJobs(tx, e.rows); err != nil {
			return err
		}
		if e.uploads, err = unreferencedUploads(tx, e.rows); err != nil {
			return err
		}
		for _, u := range e.uploads {
			if err := tx.DeleteUpload(u.ID); err != nil {
				return err
			}
		}
		return nil
	})
	if e == nil || err != nil {
		return nil, err
	}
	out, err := s.describe(e)
	return out, errors.Join(err, s.removeFiles(e))
}

// WouldExpire reports what Expire would delete. uploads selects the uploads that would be
// deleted with the rows.
func (s *Jobs) WouldExpire(ctx context.Context, id JobID, fits func(*Job) bool, uploads func(Tx, []*Job) ([]*Upload, error)) (*Expired, error) {
	var e *expiry
	err := s.store.View(ctx, func(tx Tx) (err error) {
		if e, err = s.expiryOf(tx, id, fits); e == nil || err != nil {
			return err
		}
		e.uploads, err = uploads(tx, e.rows)
		return err
	})
	if e == nil || err != nil {
		return nil, err
	}
	return s.describe(e)
}

// expiry is a job that is about to be deleted.
type expiry struct {
	rows    []*Job // the first is the job itself
	uploads []*Upload
}

// expiryOf reads a job with its rows, or returns nil if it can't be deleted.
func (s *Jobs) expiryOf(tx Tx, id JobID, fits func(*Job) bool) (*expiry, error) {
	j, err := tx.Job(id)
	if errors.Is(err, fault.NotFound) || err == nil && !fits(j) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rows, err := withRows(tx, j)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Pinned {
			return nil, nil
		}
		switch err := removable(tx, row); {
		case errors.Is(err, fault.JobNotFinished), errors.Is(err, fault.FileInUse):
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
	return &expiry{rows: rows}, nil
}

// unreferencedUploads returns the uploads that the deleted jobs read and that no
// remaining job refers to.
func unreferencedUploads(tx Tx, rows []*Job) ([]*Upload, error) {
	var uploads []*Upload
	for _, id := range UploadsOf(rows) {
		read, err := IsRead(tx, id)
		if err != nil {
			return nil, err
		}
		if read {
			continue
		}
		u, err := tx.Upload(id)
		if errors.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		uploads = append(uploads, u)
	}
	return uploads, nil
}

// UploadsOf returns the uploads that jobs have read, without duplicates.
func UploadsOf(rows []*Job) []UploadID {
	var ids []UploadID
	seen := map[UploadID]bool{}
	for _, row := range rows {
		for _, ref := range row.Private.References {
			if ref.Upload != "" && !seen[ref.Upload] {
				seen[ref.Upload] = true
				ids = append(ids, ref.Upload)
			}
		}
	}
	return ids
}

// IsRead reports whether any job refers to an upload.
func IsRead(tx Tx, id UploadID) (bool, error) {
	for _, err := range tx.Readers(string(id)) {
		return err == nil, err
	}
	return false, nil
}

// describe reports what is deleted and its current disk usage.
func (s *Jobs) describe(e *expiry) (*Expired, error) {
	j := e.rows[0]
	out := &Expired{
		Job: j.ID, Name: j.Name, Organization: j.Organization, Email: j.Email,
		Type: j.Type, Status: j.Status, EndedAt: j.CompletedAt, Rows: len(e.rows) - 1,
	}
	var all error
	for _, row := range e.rows {
		size, err := s.blobs.JobSize(row.ID)
		all = errors.Join(all, err)
		out.Bytes += size
		if !row.IsBatch() {
			out.Counted += row.Usage().Bytes
		}
	}
	for _, u := range e.uploads {
		out.Uploads = append(out.Uploads, u.Folder+"/"+u.Filename)
		out.Bytes += u.Size
		out.Counted += u.Size
	}
	return out, all
}

// removeFiles removes the files of deleted records. After a crash, garbage collection
// removes the rest.
func (s *Jobs) removeFiles(e *expiry) error {
	var err error
	ids := make([]JobID, len(e.rows))
	for i, row := range e.rows {
		ids[i] = row.ID
	}
	for _, u := range e.uploads {
		if u.Generation > 0 {
			err = errors.Join(err, s.blobs.RemoveUpload(u.ID, u.Generation))
		}
	}
	return errors.Join(err, s.removeJobs(ids))
}
