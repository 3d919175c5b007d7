package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"molrun/app"
	"molrun/app/fault"
	"molrun/blobs"
)

// Inventory walks the files that the records rely on. An error in place of a file
// says which files can't be listed, and the walk goes on.
//
// Files of an attempt that still runs are left out: a restored service has lost
// that attempt. So are work directories, which only their own attempt reads.
func (s *Snapshot) Inventory(ctx context.Context) iter.Seq2[blobs.File, error] {
	return func(yield func(blobs.File, error) bool) {
		if !yield(blobs.SecretFile(), nil) || !s.unrecorded(yield) {
			return
		}
		for u, err := range s.Records.Uploads(ctx) {
			if err != nil {
				if !yield(blobs.File{}, err) {
					return
				}
				continue
			}
			if f, received := blobs.UploadFile(u); received && !yield(f, nil) {
				return
			}
		}
		for j, err := range s.Records.Jobs(ctx) {
			for f, err := range s.filesOf(j, err) {
				if !yield(f, err) {
					return
				}
			}
		}
	}
}

// unrecordedFiles are files of the data directory that no record names: the audit log
// and a self-signed certificate.
var unrecordedFiles = []string{"audit.log*", "tls/*"}

func (s *Snapshot) unrecorded(yield func(blobs.File, error) bool) bool {
	for _, pattern := range unrecordedFiles {
		files, err := s.Files.Changing(pattern)
		if err != nil && !yield(blobs.File{}, err) {
			return false
		}
		for _, f := range files {
			if !yield(f, nil) {
				return false
			}
		}
	}
	return true
}

// filesOf walks the files of one job.
func (s *Snapshot) filesOf(j *app.Job, err error) iter.Seq2[blobs.File, error] {
	return func(yield func(blobs.File, error) bool) {
		if err != nil {
			yield(blobs.File{}, err)
			return
		}
		listed := map[string]bool{}
		if j.Status == app.Completed && !j.IsBatch() {
			files, err := s.Files.Result(j.ID)
			if err != nil && !yield(blobs.File{}, err) {
				return
			}
			for _, f := range files {
				listed[f.Path] = true
				if !yield(f, nil) {
					return
				}
			}
		}
		for n := 1; n <= endedAttempts(j); n++ {
			files, err := s.Files.Attempt(j.ID, n)
			if err != nil && !yield(blobs.File{}, fmt.Errorf("attempt %d of job %s: %w", n, j.ID, err)) {
				return
			}
			for _, f := range files {
				if !listed[f.Path] && !yield(f, nil) {
					return
				}
			}
		}
	}
}

// endedAttempts counts the attempts of a job that no longer write.
func endedAttempts(j *app.Job) int {
	if j.Private.Claimed {
		return j.Attempts - 1
	}
	return j.Attempts
}

// Strays returns the files that no record names. One that can't be looked up counts
// as named.
func (s *Snapshot) Strays() ([]blobs.Stray, error) {
	return s.Files.Strays(
		func(id app.UploadID, generation int) bool {
			u, err := s.Records.Upload(id)
			return err == nil && u.Generation == generation || err != nil && !errors.Is(err, fault.NotFound)
		},
		func(id app.JobID) bool {
			_, err := s.Records.Job(id)
			return !errors.Is(err, fault.NotFound)
		},
	)
}

// Mismatch says how a file differs from its record, or "" if it does not.
func Mismatch(f blobs.File, sum string, size int64) string {
	switch {
	case f.Size >= 0 && size != f.Size:
		return fmt.Sprintf("has %d bytes, its record says %d", size, f.Size)
	case f.SHA256 != "" && sum != f.SHA256:
		return "has other bytes than were stored: its SHA-256 differs from its record's"
	}
	return ""
}
