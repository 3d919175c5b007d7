package app_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/apikey"
	"molrun/app/fault"
)

// pass lets time go by.
func (s *site) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time = s.time.Add(d)
}

func (s *site) newKey(expires time.Duration) (key string, rec *apikey.Key) {
	s.t.Helper()
	key, rec, err := s.Accounts.CreateKey(s.t.Context(), app.KeyRequest{Organization: "lab", Email: "ann@lab.example", Role: apikey.Admin, Expires: expires})
	must(s.t, err)
	return key, rec
}

// opens fails the test unless the key does or does not open.
func (s *site) opens(what, key string, want bool) {
	s.t.Helper()
	if _, err := s.Accounts.Authenticate(s.t.Context(), key); (err == nil) != want {
		s.t.Errorf("%s: %v, want it to open: %v", what, err, want)
	}
}

func (s *site) keyRecord(id string) *apikey.Key {
	s.t.Helper()
	keys, err := s.Accounts.Keys(s.t.Context())
	must(s.t, err)
	for _, k := range keys {
		if k.ID == id {
			return k
		}
	}
	s.t.Fatalf("there is no key %s", id)
	return nil
}

func TestRotatedKeyClosesWhenTheOverlapIsOver(t *testing.T) {
	s := newSite(t)
	old, rec := s.newKey(0)
	next, successor, err := s.Accounts.RotateKey(t.Context(), rec.ID, 24*time.Hour)
	must(t, err)
	if successor.Email != rec.Email || successor.Organization != rec.Organization || successor.Role != rec.Role || !successor.ExpiresAt.IsZero() {
		t.Errorf("the successor of %+v is %+v", rec, successor)
	}
	s.opens("the old key within the overlap", old, true)
	s.opens("the new key", next, true)
	s.pass(24 * time.Hour)
	s.opens("the old key after it", old, false)
	s.opens("the new key after it", next, true)
	_, err = s.Accounts.DisableKey(t.Context(), successor.ID, true)
	must(t, err)
	s.opens("the new key, disabled", next, false)
}

func TestRotationKeepsHowLongAKeyLives(t *testing.T) {
	s := newSite(t)
	old, rec := s.newKey(48 * time.Hour)
	s.pass(47 * time.Hour)
	next, successor, err := s.Accounts.RotateKey(t.Context(), rec.ID, 24*time.Hour)
	must(t, err)
	if life := successor.ExpiresAt.Sub(successor.CreatedAt.Time); life.Round(time.Minute) != 48*time.Hour {
		t.Errorf("the successor lives %v, want 48h", life)
	}
	s.pass(90 * time.Minute)
	s.opens("an overlap makes a key live longer than it was meant to: it", old, false)
	s.opens("the new key", next, true)
}

func TestKeyIsRotatedOnceAndWhileItOpens(t *testing.T) {
	s := newSite(t)
	old, rec := s.newKey(0)
	_, successor, err := s.Accounts.RotateKey(t.Context(), rec.ID, 0)
	must(t, err)
	s.opens("a key without overlap", old, false)
	for what, id := range map[string]string{"a key that is closed": rec.ID, "one that is disabled": successor.ID} {
		if id == successor.ID {
			_, err := s.Accounts.DisableKey(t.Context(), id, true)
			must(t, err)
		}
		if _, _, err := s.Accounts.RotateKey(t.Context(), id, time.Hour); !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want INVALID", what, err)
		}
	}
	_, twice := s.newKey(0)
	_, _, err = s.Accounts.RotateKey(t.Context(), twice.ID, time.Hour)
	must(t, err)
	if _, _, err := s.Accounts.RotateKey(t.Context(), twice.ID, time.Hour); !errors.Is(err, fault.Invalid) {
		t.Errorf("a key that has a successor: %v, want INVALID", err)
	}
	if _, _, err := s.Accounts.RotateKey(t.Context(), "absent", time.Hour); !errors.Is(err, fault.NotFound) {
		t.Errorf("no key: %v, want NOT_FOUND", err)
	}
}

func TestLastUseOfAKeyIsWrittenInTheBackground(t *testing.T) {
	s := newSite(t)
	key, rec := s.newKey(0)
	s.opens("the key", key, true)
	if got := s.keyRecord(rec.ID).LastUsedAt; !got.IsZero() {
		t.Errorf("a request wrote the last use, %v, by itself", got)
	}
	must(t, s.Accounts.SaveKeyUses(t.Context()))
	first := s.keyRecord(rec.ID).LastUsedAt
	if first.IsZero() {
		t.Fatal("the last use is not written")
	}
	s.pass(time.Hour)
	s.opens("the key", key[:len(key)-1], false)
	must(t, s.Accounts.SaveKeyUses(t.Context()))
	if got := s.keyRecord(rec.ID).LastUsedAt; got != first {
		t.Errorf("a refused key counts as used, at %v", got)
	}
	s.opens("the key", key, true)
	must(t, s.Accounts.SaveKeyUses(t.Context()))
	if got := s.keyRecord(rec.ID).LastUsedAt; got.Sub(first.Time) < time.Hour {
		t.Errorf("used an hour later, it says %v after %v", got, first)
	}
}

func TestLastUseChangesNothingElseOfAKey(t *testing.T) {
	s := newSite(t)
	disabled, rec := s.newKey(0)
	deleted, gone := s.newKey(0)
	s.opens("a key", disabled, true)
	s.opens("a key", deleted, true)
	_, err := s.Accounts.DisableKey(t.Context(), rec.ID, true)
	must(t, err)
	must(t, s.Accounts.DeleteKey(t.Context(), gone.ID))
	must(t, s.Accounts.SaveKeyUses(t.Context()))
	s.opens("a key that was disabled meanwhile", disabled, false)
	s.opens("a key that was deleted meanwhile", deleted, false)
	if k := s.keyRecord(rec.ID); !k.Disabled || k.LastUsedAt.IsZero() {
		t.Errorf("%+v", k)
	}
	if keys, err := s.Accounts.Keys(t.Context()); err != nil || len(keys) != 1 {
		t.Errorf("%d keys, %v; want the one that was not deleted", len(keys), err)
	}
}

func TestLastUsesAreWrittenOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		key, rec := s.newKey(0)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Accounts.RecordKeyUses(ctx, func(err error) { t.Error(err) })
		}()
		s.opens("the key", key, true)
		time.Sleep(59 * time.Second)
		if got := s.keyRecord(rec.ID).LastUsedAt; !got.IsZero() {
			t.Errorf("written within a minute: %v", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := s.keyRecord(rec.ID).LastUsedAt; got.IsZero() {
			t.Error("not written after a minute")
		}
		stop()
		<-done
	})
}

func TestIDOfAKeyIsTakenFromWellFormedOnesAlone(t *testing.T) {
	s := newSite(t)
	key, rec := s.newKey(0)
	for text, want := range map[string]string{key: rec.ID, key + "x": "", key[:len(key)-1] + "!": "", "": "", "molrun_a_b_c": ""} {
		if got := apikey.ID(text); got != want {
			t.Errorf("of %q: %q, want %q", text, got, want)
		}
	}
}
