package output_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/job/output"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

type shareSite struct {
	*fixture.Site
	*output.Shares
	t  *testing.T
	by app.Caller
}

// newShareSite returns a site where ann has a completed job and a completed batch.
func newShareSite(t *testing.T) *shareSite {
	s := &shareSite{Site: fixture.New(t, app.Options{}), t: t, by: fixture.Ann}
	s.Shares = s.on(s.Store)
	r := access.KeyRequest{Organization: s.by.Organization, Email: s.by.Email, Role: apikey.Member}
	_, key, err := access.New(s.Store, s.Blobs, s.Now).CreateKey(t.Context(), app.Operator(), r)
	must.OK(t, err)
	s.by.KeyID = key.ID
	s.Complete(s.Submit(s.by, "a", `{}`), map[string]string{"a.txt": "text"})
	_, rows := s.SubmitBatch(s.by, "b", `{}`, `{"steps":2}`)
	for _, id := range rows {
		s.Complete(id, map[string]string{"b.txt": "of a row"})
	}
	return s
}

func (s *shareSite) on(store app.Store) *output.Shares {
	jobs := s.WithStore(store).Jobs
	return output.NewShares(store, jobs, output.NewResults(store, s.Blobs, jobs, s.Now), s.Now)
}

// made creates a share and returns it with the token of its link.
func (s *shareSite) made(r output.ShareRequest) (*app.Share, string) {
	s.t.Helper()
	made, url, err := s.Create(s.t.Context(), s.by, r)
	must.OK(s.t, err)
	return made, strings.TrimPrefix(url, output.SharePath)
}

func TestShareEndsWhenItsTimeIsOver(t *testing.T) {
	s := newShareSite(t)
	_, token := s.made(output.ShareRequest{Name: "a", TTL: time.Hour})
	_, week := s.made(output.ShareRequest{Name: "a"})
	for _, step := range []struct {
		later       time.Duration
		short, long bool
	}{{0, true, true}, {59 * time.Minute, true, true}, {time.Minute, false, true}, {output.DefaultShareTTL - 2*time.Hour, false, true}, {time.Hour, false, false}} {
		s.Advance(step.later)
		for token, lives := range map[string]bool{token: step.short, week: step.long} {
			if _, err := s.OpenShare(t.Context(), token); lives != (err == nil) || !lives && fault.CodeOf(err) != fault.NotFound {
				t.Errorf("after another %v: %v, want it to live: %v", step.later, err, lives)
			}
		}
	}
	if left, err := s.ListShares(t.Context(), s.by, true); err != nil || len(left) != 0 {
		t.Errorf("listed: %v, %v", left, err)
	}
}

// TestLastUseIsWrittenOnceAMinute counts the store's calls.
func TestLastUseIsWrittenOnceAMinute(t *testing.T) {
	s := newShareSite(t)
	made, token := s.made(output.ShareRequest{Name: "a"})
	store := &fixture.FaultyStore{Store: s.Store}
	shares := s.on(store)
	used := func() time.Time {
		must.OK(t, must.Error2(shares.OpenShare(t.Context(), token)))
		list, err := s.ListShares(t.Context(), s.by, false)
		must.OK(t, err)
		return list[0].LastUsedAt.Time
	}
	first := used()
	s.Advance(50 * time.Second)
	if again := used(); !again.Equal(first) || first.Before(made.CreatedAt.Time) {
		t.Errorf("used at %v, and within a minute at %v", first, again)
	}
	s.Advance(time.Minute)
	if later := used(); !later.After(first.Add(time.Minute)) {
		t.Errorf("used at %v, and later at %v", first, later)
	}
}

// TestSharesThatHaveEndedAreForgotten creates a new share, which removes the ended ones.
func TestSharesThatHaveEndedAreForgotten(t *testing.T) {
	s := newShareSite(t)
	expired, _ := s.made(output.ShareRequest{Name: "a", TTL: time.Minute})
	s.Complete(s.Submit(s.by, "deleted", `{}`), nil)
	orphan, _ := s.made(output.ShareRequest{Name: "deleted"})
	kept, _ := s.made(output.ShareRequest{Name: "b"})
	must.OK(t, s.Jobs.Delete(t.Context(), s.by, "deleted"))
	s.Advance(time.Hour)
	s.made(output.ShareRequest{Name: "a"})
	for id, there := range map[app.ShareID]bool{expired.ID: false, orphan.ID: false, kept.ID: true} {
		err := s.Store.View(t.Context(), func(tx app.Tx) error {
			_, err := tx.Share(id)
			return err
		})
		must.Equal(t, fmt.Sprintf("%s: %v, want it to be there", id, err), there, err == nil)
	}
}

// updateMeanwhile is a store that calls a function before each update.
type updateMeanwhile struct {
	app.Store
	do func() error
}

func (m updateMeanwhile) Update(ctx context.Context, fn func(app.Tx) error) error {
	if err := m.do(); err != nil {
		return err
	}
	return m.Store.Update(ctx, fn)
}

// If a share or its key ends just before the update, nothing is returned. When the disk
// is full, shares can still be read.
func TestSharesEndMeanwhile(t *testing.T) {
	s := newShareSite(t)
	made, token := s.made(output.ShareRequest{Name: "a"})
	full := func() error { return fault.Errorf(fault.StorageFull, "the disk is full") }
	if _, err := s.on(updateMeanwhile{s.Store, full}).OpenShare(t.Context(), token); err != nil {
		t.Errorf("opened on a full disk: %v", err)
	}
	revoke := func() error { return s.Revoke(t.Context(), s.by, string(made.ID)) }
	if _, err := s.on(updateMeanwhile{s.Store, revoke}).OpenShare(t.Context(), token); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("opened while it is revoked: %v", err)
	}
	remove := func() error { return s.Jobs.Delete(t.Context(), s.by, "a") }
	if _, _, err := s.on(updateMeanwhile{s.Store, remove}).Create(t.Context(), s.by, output.ShareRequest{Name: "a"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("made while its job is deleted: %v", err)
	}
	if left, err := s.ListShares(t.Context(), s.by, true); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestSharesReportEveryErrorOfTheStore(t *testing.T) {
	ctx := t.Context()
	fixture.EachFault(t, func(arm func(*fixture.FaultyStore)) error {
		s := newShareSite(t)
		s.made(output.ShareRequest{Name: "a", TTL: time.Second})
		made, token := s.made(output.ShareRequest{Name: "b"})
		s.Advance(time.Minute)
		store := &fixture.FaultyStore{Store: s.Store}
		shares := s.on(store)
		arm(store)
		for _, use := range []func() error{
			func() error { return must.Error2(shares.Files(ctx, token)) },
			func() error { return must.Error2(shares.Link(ctx, token, "b-1/b.txt")) },
			func() error { return must.Error2(shares.ListShares(ctx, s.by, true)) },
			func() error {
				return must.Error3(shares.Create(ctx, s.by, output.ShareRequest{Name: "b", Files: app.Selection{"b-1/"}}))
			},
			func() error { return shares.Revoke(ctx, s.by, string(made.ID)) },
		} {
			if err := use(); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestRevokedSharesDoNotComeBack(t *testing.T) {
	s := newShareSite(t)
	accounts := access.New(s.Store, s.Blobs, s.Now)
	revoked := []string{}
	accounts.OnRevoke(func(id string) { revoked = append(revoked, id) })
	of := func(by app.Caller) string {
		t.Helper()
		_, url, err := s.Create(t.Context(), by, output.ShareRequest{Name: "a"})
		must.OK(t, err)
		return strings.TrimPrefix(url, output.SharePath)
	}
	opens := func(when, token string, want bool) {
		t.Helper()
		if _, err := s.OpenShare(t.Context(), token); (err == nil) != want {
			t.Errorf("%s: %v, want it to open: %v", when, err, want)
		}
	}
	other := s.by
	_, key, err := accounts.CreateKey(t.Context(), app.Operator(), access.KeyRequest{Organization: s.by.Organization, Email: s.by.Email})
	must.OK(t, err)
	other.KeyID = key.ID
	token, kept := of(s.by), of(other)
	disabled := func(is bool) {
		must.OK(t, must.Error2(accounts.DisableKey(t.Context(), app.Operator(), s.by.KeyID, is)))
	}
	disabled(true)
	opens("its key is disabled", token, false)
	disabled(false)
	opens("it is enabled again", token, true)
	disabled(true)
	must.OK(t, accounts.RevokeLinks(t.Context(), app.Operator(), s.by.KeyID))
	disabled(false)
	opens("it was revoked", token, false)
	opens("that of another key", kept, true)
	invitation, err := accounts.Invite(t.Context(), "", s.by.Email)
	must.OK(t, err)
	must.OK(t, accounts.RevokeAllLinks(t.Context()))
	opens("all links have ended", kept, false)
	if _, err := accounts.Accept(t.Context(), invitation.Token); fault.CodeOf(err) != fault.Unauthorized {
		t.Errorf("a link that signs in: %v", err)
	}
	must.Equal(t, "the key reported to OnRevoke", revoked, []string{s.by.KeyID, ""})
}
