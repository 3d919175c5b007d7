package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"

	"molrun/app"
	"molrun/app/algorithm/folder"
	"molrun/app/base/fault"
	"molrun/app/server/host"
	"molrun/blobs"
)

// Inventory iterates over the files that the records rely on. It yields an error if some
// files cannot be listed, and continues.
//
// It omits files of a running attempt, which is lost in a restored service, and work
// directories, which only their own attempt reads.
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
			f, received := blobs.UploadFile(u)
			f.Owner = UploadName(u)
			if received && !yield(f, nil) {
				return
			}
		}
		folders := map[string]bool{}
		for j, err := range s.Records.Jobs(ctx) {
			for f, err := range s.filesOf(j, err) {
				if !yield(f, err) {
					return
				}
			}
			if err == nil && !s.folderOf(j, folders, yield) {
				return
			}
		}
	}
}

// unrecordedFiles lists files of the data directory that no record names: the audit log
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

// filesOf iterates over the files of one job.
func (s *Snapshot) filesOf(j *app.Job, err error) iter.Seq2[blobs.File, error] {
	return func(yield func(blobs.File, error) bool) {
		if err != nil {
			yield(blobs.File{}, err)
			return
		}
		listed := map[string]bool{}
		named := func(f blobs.File, err error) bool {
			f.Owner = JobName(j)
			if err != nil {
				err = fmt.Errorf("%s: %w", f.Owner, err)
			}
			return yield(f, err)
		}
		if j.Status == app.Completed && !j.IsBatch() {
			files, err := s.Files.Result(j.ID)
			if err != nil && !named(blobs.File{}, err) {
				return
			}
			for _, f := range files {
				listed[f.Path] = true
				if !named(f, nil) {
					return
				}
			}
		}
		for n := 1; n <= endedAttempts(j); n++ {
			files, err := s.Files.Attempt(j.ID, n)
			if err != nil && !named(blobs.File{}, fmt.Errorf("attempt %d: %w", n, err)) {
				return
			}
			for _, f := range files {
				if !listed[f.Path] && !named(f, nil) {
					return
				}
			}
		}
	}
}

// folderOf iterates over the algorithm folder of a job that has not finished, unless it
// has been walked before.
func (s *Snapshot) folderOf(j *app.Job, walked map[string]bool, yield func(blobs.File, error) bool) bool {
	digest := j.Private.Folder
	if digest == "" || j.Status.Finished() || walked[digest] {
		return true
	}
	walked[digest] = true
	text, err := s.Records.Definition(digest)
	var kept *folder.Folder
	if err == nil {
		_, kept, err = folder.Split(text)
	}
	if err != nil {
		return yield(blobs.File{}, fmt.Errorf("the folder of %s %s: %w", j.Type, j.Version, err))
	}
	for _, f := range kept.Files {
		if !yield(blobs.File{Path: path.Join(host.Algorithms, digest, f.Path), Size: f.Size, SHA256: f.SHA256}, nil) {
			return false
		}
	}
	return true
}

// endedAttempts returns the number of attempts of a job that no longer write.
func endedAttempts(j *app.Job) int {
	if j.Private.Claimed {
		return j.Attempts - 1
	}
	return j.Attempts
}

// JobName describes a job or batch for operators.
func JobName(j *app.Job) string {
	what := "job"
	if j.IsBatch() {
		what = "batch"
	}
	return fmt.Sprintf("%s %q of %s (%s)", what, j.Name, j.Email, j.Organization)
}

// UploadName describes an upload for operators.
func UploadName(u *app.Upload) string {
	return fmt.Sprintf("upload %q of %s (%s)", u.Folder+"/"+u.Filename, u.Email, u.Organization)
}

// Strays returns orphans, which are files that no record names, and foreign files. A file
// whose record cannot be looked up counts as named.
func (s *Snapshot) Strays() (orphans, foreign []blobs.Orphan, err error) {
	return s.Files.Orphans(
		func(id app.UploadID, generation int) bool {
			u, err := s.Records.Upload(id)
			return err == nil && u.Has(generation) || err != nil && !errors.Is(err, fault.NotFound)
		},
		func(id app.JobID) bool {
			_, err := s.Records.Job(id)
			return !errors.Is(err, fault.NotFound)
		},
	)
}

// Mismatch describes how a file differs from its record, or returns "" if it does not.
func Mismatch(f blobs.File, sum string, size int64) string {
	switch {
	case f.Size >= 0 && size != f.Size:
		return fmt.Sprintf("has %d bytes, its record says %d", size, f.Size)
	case f.SHA256 != "" && sum != f.SHA256:
		return "has changed content: its SHA-256 differs from its record's"
	}
	return ""
}
