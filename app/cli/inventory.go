package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"molrun/app"
	"molrun/app/fault"
	"molrun/blobs"
)

// inventory walks the files that the records rely on. An error in a file's
// place says which files can't be named, and the walk goes on.
//
// It leaves out what an attempt that is not over is writing: such an attempt
// is lost to a copy. It also leaves out work directories, which serve nobody
// but their own attempt.
func (v *view) inventory(ctx context.Context) iter.Seq2[blobs.File, error] {
	return func(yield func(blobs.File, error) bool) {
		if !yield(blobs.SecretFile(), nil) || !v.beside(yield) {
			return
		}
		for u, err := range v.records.Uploads(ctx) {
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
		for j, err := range v.records.Jobs(ctx) {
			for f, err := range v.filesOf(j, err) {
				if !yield(f, err) {
					return
				}
			}
		}
	}
}

// keptBeside are files of the data directory that no record names: the audit
// log and a certificate that the service made for itself.
var keptBeside = []string{"audit.log*", "tls/*"}

func (v *view) beside(yield func(blobs.File, error) bool) bool {
	for _, pattern := range keptBeside {
		files, err := v.files.Changing(pattern)
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
func (v *view) filesOf(j *app.Job, err error) iter.Seq2[blobs.File, error] {
	return func(yield func(blobs.File, error) bool) {
		if err != nil {
			yield(blobs.File{}, err)
			return
		}
		listed := map[string]bool{}
		if j.Status == app.Completed && !j.IsBatch() {
			files, err := v.files.Result(j.ID)
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
		for n := 1; n <= attemptsOver(j); n++ {
			files, err := v.files.Attempt(j.ID, n)
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

// attemptsOver is how many attempts of a job write nothing any more.
func attemptsOver(j *app.Job) int {
	if j.Private.Claimed {
		return j.Attempts - 1
	}
	return j.Attempts
}

// strays gives what no record names. What can't be looked up counts as named.
func (v *view) strays() ([]blobs.Stray, error) {
	return v.files.Strays(
		func(id app.UploadID, generation int) bool {
			u, err := v.records.Upload(id)
			return err == nil && u.Generation == generation || err != nil && !errors.Is(err, fault.NotFound)
		},
		func(id app.JobID) bool {
			_, err := v.records.Job(id)
			return !errors.Is(err, fault.NotFound)
		},
	)
}
