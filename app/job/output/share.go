package output

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
	"molrun/app/job/access"
)

// Limits of shares.
const (
	DefaultShareTTL = 7 * 24 * time.Hour
	MaxShareTTL     = 366 * 24 * time.Hour
	MaxSharedFiles  = 100  // files named by one share
	maxShares       = 1000 // of an organization at a time
)

// SharePath is the prefix of the path of every share link.
const SharePath = "/shared/"

// Shares creates, lists, revokes and opens shares. It is safe for concurrent use.
type Shares struct {
	store   app.Store
	jobs    *app.Jobs
	results *Results
	now     func() time.Time
	ids     *sortid.Source
}

// NewShares returns the shares in store, whose files are found through results.
func NewShares(store app.Store, jobs *app.Jobs, results *Results, now func() time.Time) *Shares {
	return &Shares{store, jobs, results, now, sortid.NewSource(store.HighWaterMark())}
}

// ShareRequest is a request to share a job's result. TTL 0 means DefaultShareTTL.
type ShareRequest struct {
	Name  string
	TTL   time.Duration
	Files app.Selection
	Base  string // prefix of links
}

// Create creates a share and returns its link, which is not stored.
func (s *Shares) Create(ctx context.Context, by app.Caller, r ShareRequest) (*app.Share, string, error) {
	now, secret := s.now(), rand.Text()
	if r.TTL == 0 {
		r.TTL = DefaultShareTTL
	}
	j, err := s.shareable(ctx, by, r)
	if err != nil {
		return nil, "", err
	}
	made := &app.Share{
		ID: app.ShareID(s.ids.Next(now)), Hash: hashSecret(secret), Organization: j.Organization, Email: by.Email, KeyID: by.KeyID,
		Job: j.ID, JobName: j.Name, Files: r.Files, CreatedAt: unit.At(now), ExpiresAt: unit.At(now.Add(r.TTL)),
	}
	err = s.store.Update(ctx, func(tx app.Tx) error {
		if _, err := s.jobs.FindJob(tx, by, r.Name); err != nil { // it might have been deleted
			return err
		}
		if err := s.admit(tx, by.Organization, now); err != nil {
			return err
		}
		return tx.PutShare(made)
	})
	return made, r.Base + SharePath + string(made.ID) + secret, err
}

// shareable returns a job that the caller is allowed to share, if it has the requested
// files.
func (s *Shares) shareable(ctx context.Context, by app.Caller, r ShareRequest) (*app.Job, error) {
	j, err := s.jobs.Named(ctx, by, r.Name)
	switch {
	case err != nil:
		return nil, err
	case !by.May(j.Email):
		return nil, fault.Errorf(fault.Forbidden, "job %q was submitted by %s; ask them or an admin of the organization to share it", r.Name, j.Email)
	case j.Status != app.Completed:
		return nil, fault.Errorf(fault.JobNotCompleted, "job %q is %s; its result can be shared when it is COMPLETED", r.Name, j.Status)
	case len(r.Files) == 0:
		return j, nil
	}
	files, err := s.results.Files(ctx, j, r.Files)
	if err != nil {
		return nil, err
	}
	var faults []fault.Field
	for i, one := range r.Files {
		if !slices.ContainsFunc(files, func(f app.ManifestFile) bool { return app.Selection{one}.Has(f.Name) }) {
			faults = append(faults, fault.Field{
				Loc: []any{"body", "files", i}, Type: "value",
				Msg: fmt.Sprintf("the result of job %q has no file %q; GET /jobs/{jobName}/files lists them, and a folder ends with a slash", r.Name, one),
			})
		}
	}
	return j, fault.List(faults...)
}

// admit deletes the ended shares of an organization, and returns an error if the
// organization already has the maximum number of shares.
func (s *Shares) admit(tx app.Tx, organization string, now time.Time) error {
	live := 0
	for one, err := range tx.Shares(organization) {
		if err == nil {
			err = shareAlive(tx, one, now)
		}
		switch {
		case errors.Is(err, fault.NotFound):
			err = tx.DeleteShare(one.ID)
		case err == nil:
			live++
		}
		if err != nil {
			return err
		}
	}
	if live >= maxShares {
		return fault.Errorf(fault.QuotaExceeded, "organization %q has %d share links, the maximum; revoke some that are no longer needed", organization, live)
	}
	return nil
}

// ListShares returns the shares that have not ended, oldest first: the caller's own or,
// if all is set, those of all members of the organization.
func (s *Shares) ListShares(ctx context.Context, by app.Caller, all bool) (shares []*app.Share, err error) {
	now := s.now()
	err = s.store.View(ctx, func(tx app.Tx) error {
		shares = []*app.Share{}
		for one, err := range tx.Shares(by.Organization) {
			if err == nil {
				err = shareAlive(tx, one, now)
			}
			switch {
			case errors.Is(err, fault.NotFound):
			case err != nil:
				return err
			case all || one.Email == by.Email:
				shares = append(shares, one)
			}
		}
		return nil
	})
	return shares, err
}

// Revoke revokes a share.
func (s *Shares) Revoke(ctx context.Context, by app.Caller, id string) error {
	return s.store.Update(ctx, func(tx app.Tx) error {
		one, err := tx.Share(app.ShareID(id))
		switch {
		case errors.Is(err, fault.NotFound) || err == nil && one.Organization != by.Organization:
			return fault.Errorf(fault.NotFound, "there is no share link %q in your organization; GET /shares lists yours", id)
		case err != nil:
			return err
		case !by.May(one.Email):
			return fault.Errorf(fault.Forbidden, "the share link %q was created by %s; ask them or an admin of the organization", id, one.Email)
		}
		return tx.DeleteShare(one.ID)
	})
}

// shareAlive returns NotFound if a share has ended.
func shareAlive(tx app.Tx, s *app.Share, now time.Time) error {
	if !now.Before(s.ExpiresAt.Time) {
		return fault.NotFound
	}
	if err := keyAuthorized(tx, s.KeyID, now); err != nil {
		return err
	}
	there, err := tx.HasJob(s.Job)
	if err == nil && !there {
		err = fault.NotFound
	}
	return err
}

// maxKeyRotations limits how many successors of a key are followed.
const maxKeyRotations = 100

// keyAuthorized returns NotFound unless a key, a user signed in without a key, or a
// successor of the key is valid.
func keyAuthorized(tx app.Tx, id string, now time.Time) error {
	for range maxKeyRotations {
		k, err := access.LimitedKey(tx, id)
		if err != nil {
			return err
		}
		if k.Valid(now) {
			return nil
		}
		if k.Disabled || k.Successor == "" {
			break
		}
		id = k.Successor
	}
	return fault.NotFound
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// splitShareToken returns the ID and secret in the token of a link.
func splitShareToken(token string) (id app.ShareID, secret string, ok bool) {
	const idLength = 26
	if len(token) != idLength+len(rand.Text()) {
		return "", "", false
	}
	_, err := sortid.Parse(token[:idLength])
	return app.ShareID(token[:idLength]), token[idLength:], err == nil
}

// openedShare returns a share that has not ended, and its job.
func openedShare(tx app.Tx, token string, now time.Time) (*app.Share, *app.Job, error) {
	id, secret, ok := splitShareToken(token)
	if !ok {
		return nil, nil, errShareEnded
	}
	one, err := tx.Share(id)
	if errors.Is(err, fault.NotFound) {
		one, err = &app.Share{}, nil // also compared, so that the response takes the same time
	}
	if err != nil {
		return nil, nil, err
	}
	if subtle.ConstantTimeCompare([]byte(hashSecret(secret)), []byte(one.Hash)) != 1 {
		return nil, nil, errShareEnded
	}
	if err := shareAlive(tx, one, now); err != nil {
		return nil, nil, shareError(err)
	}
	j, err := tx.Job(one.Job)
	return one, j, err
}

var errShareEnded = &fault.Error{
	Code:    fault.NotFound,
	Message: "This link is not valid: it has expired or was revoked, or its result was deleted. Ask the sender for a new one.",
}

// SharedResult is what a share shows, apart from the files.
type SharedResult struct {
	*app.Share
	Result   *app.Job
	selected app.Selection
}

// OpenShare returns what a share shows, and records that it was used.
func (s *Shares) OpenShare(ctx context.Context, token string) (shown SharedResult, err error) {
	now := s.now()
	err = s.store.View(ctx, func(tx app.Tx) (err error) {
		shown.Share, shown.Result, err = openedShare(tx, token, now)
		return err
	})
	if err != nil {
		return shown, err
	}
	shown.selected = shown.Files.WithoutRecords(shown.Result)
	return shown, s.recordUse(ctx, shown.Share, now)
}

// shareUseInterval is the minimum time between writes of a share's last use, so that not
// every request writes.
const shareUseInterval = time.Minute

func (s *Shares) recordUse(ctx context.Context, used *app.Share, now time.Time) error {
	if now.Sub(used.LastUsedAt.Time) < shareUseInterval {
		return nil
	}
	err := s.store.Update(ctx, func(tx app.Tx) error {
		one, err := tx.Share(used.ID)
		if err != nil {
			return err
		}
		one.LastUsedAt = unit.At(now)
		return tx.PutShare(one)
	})
	if errors.Is(err, fault.StorageFull) {
		return nil // the result can still be read
	}
	return shareError(err)
}

// Files returns the files that a share shows.
func (s *Shares) Files(ctx context.Context, token string) (files []app.ManifestFile, err error) {
	shown, err := s.OpenShare(ctx, token)
	if err != nil {
		return nil, err
	}
	files, err = s.results.Files(ctx, shown.Result, shown.selected)
	return files, shareError(err)
}

// Link returns a link to a file that a share shows, or to the archive of all of them if
// path is "". The link must not be passed on to clients.
func (s *Shares) Link(ctx context.Context, token, path string) (app.Link, error) {
	shown, err := s.OpenShare(ctx, token)
	if err != nil {
		return app.Link{}, err
	}
	if path == "" {
		return app.Link{Kind: app.ArchiveGet, ID: string(shown.Job), Files: shown.selected, Filename: shown.JobName + ".zip", Holder: string(shown.ID)}, nil
	}
	link, err := app.Link{}, error(fault.NotFound)
	if shown.selected.Has(path) {
		link, err = s.results.File(ctx, shown.Result, path)
	}
	if errors.Is(err, fault.NotFound) {
		return link, fault.Errorf(fault.NotFound, "this link has no file %q; GET /shared/{token}/files lists its files", strings.ToValidUTF8(path, "?"))
	}
	link.Holder = string(shown.ID)
	return link, err
}

// shareError converts NotFound to the common error for ended shares.
func shareError(err error) error {
	if errors.Is(err, fault.NotFound) {
		return errShareEnded
	}
	return err
}
