package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/apikey"
	"molrun/app/job/upload"
	"molrun/blobs"
)

// fileNames are the names of the files that users upload and jobs read.
var fileNames = []string{"1.txt", "2.txt", "3.txt"}

// file is an upload that a user sends or deletes.
type file struct {
	id         app.UploadID
	name, text string
}

func (f *file) sum() string {
	sum := sha256.Sum256([]byte(f.text))
	return hex.EncodeToString(sum[:])
}

// uploadChange is an upload after a transaction; now is nil if it was deleted.
type uploadChange struct {
	id  app.UploadID
	now *app.Upload
}

// transfers handles the links of uploads.
type transfers struct {
	*upload.Files
	blobs.Archives // unused
}

func (s *simulation) randomFile() *file {
	f := &file{name: fileNames[s.rng.IntN(len(fileNames))]}
	for i := range 1 + s.rng.IntN(4) {
		f.text += fmt.Sprintf("line %d\n%s\n", i+1, strings.Repeat("A", 1+s.rng.IntN(5)))
	}
	return f
}

// eraseFile has a user delete an upload.
func (s *simulation) eraseFile() {
	s.up()
	all := s.sortedUploads(func(*app.Upload) bool { return true })
	if s.process == nil || len(all) == 0 {
		return
	}
	u := all[s.rng.IntN(len(all))]
	by := app.Caller{Organization: u.Organization, Email: u.Email, Rights: apikey.Member.Rights()}
	if s.rng.IntN(4) == 0 {
		by = users[s.rng.IntN(len(users))]
	}
	s.send(&request{label: label{verb: "erase"}, by: by, name: u.Filename, file: &file{id: u.ID, name: u.Filename}})
}

// expectedOfFile returns the expected response to the deletion of an upload.
func (r *request) expectedOfFile(s *simulation) answer {
	u := s.uploads[r.file.id]
	switch {
	case u == nil || u.Organization != r.by.Organization:
		return answer{code: fault.NotFound}
	case !r.by.May(u.Email):
		return answer{code: fault.Forbidden}
	case s.ledger.reads(u.ID, func(e *entry) bool { return !e.Status.Finished() }):
		return answer{code: fault.FileInUse}
	}
	return answer{}
}

// reads reports whether a job for which fits returns true reads the upload.
func (l *ledger) reads(id app.UploadID, fits func(*entry) bool) bool {
	for _, e := range l.jobs {
		for _, src := range e.Private.References {
			if src.Upload == id && fits(e) {
				return true
			}
		}
	}
	return false
}

// applyUploads checks the effect of a commit on uploads, once its jobs are in the ledger.
func (s *simulation) applyUploads(c *change) {
	if len(c.uploads) == 0 {
		return
	}
	before := s.storedByAll()
	defer func() { s.judgeBytes(c, before) }()
	for _, u := range c.uploads {
		s.touch(c, u.id)
		if err := s.judgeUpload(c, s.uploads[u.id], u.now); err != nil {
			s.faultf("%s: an upload: %v", c.label, err)
		}
		if u.now == nil {
			delete(s.uploads, u.id)
			continue
		}
		s.uploads[u.id] = u.now
	}
}

// judgeUpload checks a change of an upload.
func (s *simulation) judgeUpload(c *change, old, now *app.Upload) error {
	r := s.requests[c.label]
	switch {
	case now == nil:
		return s.judgeErased(c, old)
	case c.label.verb == "retain":
		return s.judgeExpired(c, old, now)
	case r != nil && r.part != nil:
		return s.judgeParts(r, old, now)
	}
	return errors.New("it changes without a request")
}

// judgeErased checks the deletion of an upload: either by a user while no job needs it,
// or together with the last job that read it.
func (s *simulation) judgeErased(c *change, old *app.Upload) error {
	switch c.label.verb {
	case "erase":
		return allow(!s.ledger.reads(old.ID, func(e *entry) bool { return !e.Status.Finished() }), "it is deleted, but a job needs it")
	case "prune", "retain":
		return allow(!s.ledger.reads(old.ID, func(*entry) bool { return true }), "it is deleted with a job, but another one has read it")
	}
	return errors.New("it is deleted without a request")
}

func (s *simulation) sortedUploads(fits func(*app.Upload) bool) (all []*app.Upload) {
	for _, u := range s.uploads {
		if fits(u) {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b *app.Upload) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all
}

// newest returns the newest complete upload of a user with this name, or nil if there is
// none.
func (s *simulation) newest(by app.Caller, name string) *app.Upload {
	all := s.sortedUploads(func(u *app.Upload) bool {
		return u.Completed() && u.Organization == by.Organization && u.Email == by.Email && u.Filename == name
	})
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// compareUploads compares the uploads in the store, and their content, with the ones last
// committed.
func (s *simulation) compareUploads() error {
	return s.process.store.View(context.Background(), func(tx app.Tx) error {
		have := 0
		for _, organization := range organizations {
			page, err := tx.Uploads(app.UploadFilter{Organization: organization}, "", 1000)
			if err != nil {
				return err
			}
			have += len(page.Uploads)
		}
		for _, want := range s.sortedUploads(func(u *app.Upload) bool { return u.Completed() }) {
			u, err := tx.Upload(want.ID)
			if err != nil {
				return fmt.Errorf("a complete upload is lost: %w", err)
			}
			text, err := os.ReadFile(s.process.files.UploadPath(u.ID, u.Generation))
			if err != nil {
				return fmt.Errorf("the bytes of an upload are lost: %w", err)
			}
			if sum := sha256.Sum256(text); u.SHA256 != want.SHA256 || hex.EncodeToString(sum[:]) != want.SHA256 {
				return fmt.Errorf("the bytes of %s have changed", u.Filename)
			}
		}
		for _, want := range s.sortedUploads(func(u *app.Upload) bool { return u.Partial != nil }) {
			u, err := tx.Upload(want.ID)
			if err != nil || u.Partial == nil || u.Partial.Offset != want.Partial.Offset || u.Partial.Generation != want.Partial.Generation {
				return fmt.Errorf("%s is stored as %+v, %w, but was committed as %+v", want.Filename, u, err, want)
			}
			if err := s.checkPartial(u, s.sendingOf(u.ID).text); err != nil {
				return err
			}
		}
		if err := s.compareStored(tx); err != nil {
			return err
		}
		return allow(have == len(s.uploads), fmt.Sprintf("the store lists %d uploads, but %d were committed", have, len(s.uploads)))
	})
}
