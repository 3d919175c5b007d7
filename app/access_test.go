package app_test

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/test/must"
)

// createKey issues a key that expires after a time; 0 means never.
func (s *site) createKey(expires time.Duration) (key string, rec *apikey.Key) {
	s.t.Helper()
	key, rec, err := s.Accounts.CreateKey(s.t.Context(), app.Operator(), access.KeyRequest{Organization: "lab", Email: "Ann@Lab.example", Role: apikey.Admin, Expires: expires})
	must.OK(s.t, err)
	return key, rec
}

func (s *site) wantAccepted(what, key string) {
	s.t.Helper()
	by, err := s.Accounts.Authenticate(s.t.Context(), key, netip.Addr{})
	if err != nil || by.Email != "ann@lab.example" || by.Organization != "lab" {
		s.t.Errorf("%s: %+v, error %v; want it accepted", what, by, err)
	}
}

func (s *site) wantRefused(what, key string) {
	s.t.Helper()
	_, err := s.Accounts.Authenticate(s.t.Context(), key, netip.Addr{})
	wantCode(s.t, what, err, fault.Unauthorized)
}

func (s *site) setDisabled(id string, disabled bool) {
	s.t.Helper()
	must.OK(s.t, must.Error2(s.Accounts.DisableKey(s.t.Context(), app.Operator(), id, disabled)))
}

func (s *site) keyRecord(id string) *apikey.Key {
	s.t.Helper()
	keys, err := s.Accounts.Keys(s.t.Context(), app.Operator())
	must.OK(s.t, err)
	for _, k := range keys {
		if k.ID == id {
			return k
		}
	}
	s.t.Fatalf("there is no key %s", id)
	return nil
}

func TestKeyWorksUntilDisabledExpiredOrDeleted(t *testing.T) {
	s := newSite(t)
	key, rec := s.createKey(time.Hour)
	s.wantAccepted("a new key", key)
	s.wantRefused("a mistyped key", key[:len(key)-1]+"!")
	s.wantRefused("an empty key", "")
	other, _ := s.createKey(0)
	s.wantRefused("a key with the secret of another", key[:20]+other[20:])
	changed, another := s.createKey(0)
	another.Hash = apikey.Hash("another")
	must.OK(t, s.Store.Update(t.Context(), func(tx app.Tx) error { return tx.PutKey(another) }))
	s.wantRefused("a well-formed key with another secret", changed)
	s.setDisabled(rec.ID, true)
	s.wantRefused("a disabled key", key)
	s.setDisabled(rec.ID, false)
	s.wantAccepted("a key that was enabled again", key)
	s.Advance(2 * time.Hour)
	s.wantRefused("an expired key", key)
	must.OK(t, s.Accounts.DeleteKey(t.Context(), app.Operator(), rec.ID))
	s.wantRefused("a deleted key", key)
	wantCode(t, "delete a key twice", s.Accounts.DeleteKey(t.Context(), app.Operator(), rec.ID), fault.NotFound)
}

func TestRotatedKeyExpiresAfterTheOverlap(t *testing.T) {
	s := newSite(t)
	old, rec := s.createKey(0)
	next, successor, err := s.Accounts.RotateKey(t.Context(), app.Operator(), rec.ID, 24*time.Hour)
	must.OK(t, err)
	if successor.Email != rec.Email || successor.Organization != rec.Organization || successor.Role != rec.Role || !successor.ExpiresAt.IsZero() {
		t.Errorf("the successor of %+v is %+v", rec, successor)
	}
	s.wantAccepted("the old key during the overlap", old)
	s.wantAccepted("the new key during the overlap", next)
	s.Advance(24 * time.Hour)
	s.wantRefused("the old key after the overlap", old)
	s.wantAccepted("the new key after the overlap", next)
	s.setDisabled(successor.ID, true)
	s.wantRefused("the new key once it is disabled", next)
}

func TestRotationKeepsTheLifetimeOfAKey(t *testing.T) {
	s := newSite(t)
	old, rec := s.createKey(48 * time.Hour)
	s.Advance(47 * time.Hour)
	next, successor, err := s.Accounts.RotateKey(t.Context(), app.Operator(), rec.ID, 24*time.Hour)
	must.OK(t, err)
	must.Equal(t, "the life of the successor", successor.ExpiresAt.Sub(successor.CreatedAt.Time).Round(time.Minute), 48*time.Hour)
	s.Advance(90 * time.Minute)
	s.wantRefused("the old key during an overlap that exceeds its lifetime", old)
	s.wantAccepted("the new key", next)
}

func TestOnlyAValidKeyIsRotatedAndOnlyOnce(t *testing.T) {
	s := newSite(t)
	old, expired := s.createKey(0)
	_, disabled, err := s.Accounts.RotateKey(t.Context(), app.Operator(), expired.ID, 0)
	must.OK(t, err)
	s.wantRefused("a key that was rotated without an overlap", old)
	s.setDisabled(disabled.ID, true)
	_, rotated := s.createKey(0)
	must.OK(t, must.Error3(s.Accounts.RotateKey(t.Context(), app.Operator(), rotated.ID, time.Hour)))
	for _, tt := range []struct {
		name, id string
		want     fault.Code
	}{
		{"an expired key", expired.ID, fault.Invalid},
		{"a disabled key", disabled.ID, fault.Invalid},
		{"a key that has a successor", rotated.ID, fault.Invalid},
		{"a key that does not exist", "absent", fault.NotFound},
	} {
		wantCode(t, "rotate "+tt.name, must.Error3(s.Accounts.RotateKey(t.Context(), app.Operator(), tt.id, time.Hour)), tt.want)
	}
}

func TestLastUseOfAKeyIsSavedInTheBackground(t *testing.T) {
	s := newSite(t)
	key, rec := s.createKey(0)
	s.wantAccepted("the key", key)
	if got := s.keyRecord(rec.ID).LastUsedAt; !got.IsZero() {
		t.Errorf("the request itself saved the last use, %v", got)
	}
	must.OK(t, s.Accounts.SaveKeyUses(t.Context()))
	first := s.keyRecord(rec.ID).LastUsedAt
	if first.IsZero() {
		t.Fatal("the last use was not saved")
	}
	s.Advance(time.Hour)
	s.wantRefused("a mistyped key", key[:len(key)-1])
	must.OK(t, s.Accounts.SaveKeyUses(t.Context()))
	must.Equal(t, "the last use after a rejection", s.keyRecord(rec.ID).LastUsedAt, first)
	s.wantAccepted("the key", key)
	must.OK(t, s.Accounts.SaveKeyUses(t.Context()))
	if got := s.keyRecord(rec.ID).LastUsedAt; got.Sub(first.Time) < time.Hour {
		t.Errorf("last use %v after a use an hour later than %v", got, first)
	}
}

func TestSavingTheLastUseChangesNothingElse(t *testing.T) {
	s := newSite(t)
	disabled, rec := s.createKey(0)
	deleted, gone := s.createKey(0)
	s.wantAccepted("the first key", disabled)
	s.wantAccepted("the second key", deleted)
	s.setDisabled(rec.ID, true)
	must.OK(t, s.Accounts.DeleteKey(t.Context(), app.Operator(), gone.ID))
	must.OK(t, s.Accounts.SaveKeyUses(t.Context()))
	s.wantRefused("a key that was disabled before the save", disabled)
	s.wantRefused("a key that was deleted before the save", deleted)
	if k := s.keyRecord(rec.ID); !k.Disabled || k.LastUsedAt.IsZero() {
		t.Errorf("key %+v, want it disabled, with its last use", k)
	}
	if keys, err := s.Accounts.Keys(t.Context(), app.Operator()); err != nil || len(keys) != 1 {
		t.Errorf("%d keys, error %v; want the one that was not deleted", len(keys), err)
	}
}

func TestLastUsesAreSavedEveryMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		key, rec := s.createKey(0)
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			s.Accounts.RecordKeyUses(ctx, func(err error) { t.Error(err) })
		}()
		s.wantAccepted("the key", key)
		time.Sleep(59 * time.Second)
		if got := s.keyRecord(rec.ID).LastUsedAt; !got.IsZero() {
			t.Errorf("saved within a minute: %v", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := s.keyRecord(rec.ID).LastUsedAt; got.IsZero() {
			t.Error("not saved after a minute")
		}
		stop()
		<-stopped
	})
}
