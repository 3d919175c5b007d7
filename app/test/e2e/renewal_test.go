package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"molrun/app/test/must"
)

func TestKeysAreRotatedWithAnOverlap(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	old := s.user("lab", "ann@lab.example")
	rotate := func(u user, flags ...string) user {
		t.Helper()
		out, errs, code := s.run(append([]string{"key", "rotate", strings.Split(u.key, "_")[1]}, flags...)...)
		if code != 0 || strings.Contains(errs, "molrun_") {
			t.Fatalf("key rotate: exit code %d: %s", code, errs)
		}
		return user{s, strings.TrimSpace(out)}
	}
	next := rotate(old)
	old.do("GET", "/jobs", nil).want(200) // both work for a day
	next.do("GET", "/jobs", nil).want(200)
	third := rotate(next, "--overlap", "0s")
	next.do("GET", "/jobs", nil).want(401)
	third.do("GET", "/jobs", nil).want(200)
	s.stop()
	fourth := rotate(third, "--overlap", "1h") // while the service is stopped
	s.start()
	third.do("GET", "/jobs", nil).want(200)
	fourth.do("GET", "/jobs", nil).want(200)
	if _, errs, code := s.run("key", "rotate", strings.Split(third.key, "_")[1]); code != exitInvalid || !strings.Contains(errs, "successor") {
		t.Errorf("second rotation: exit code %d: %s", code, errs)
	}
	if _, errs, code := s.run("key", "rotate", "absent"); code != exitMissing {
		t.Errorf("rotation of a missing key: exit code %d: %s", code, errs)
	}
}

func TestLastUseOfAKeyIsSavedOnStop(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	used := s.user("lab", "ann@lab.example")
	s.user("lab", "bob@lab.example")
	used.do("GET", "/jobs", nil).want(200)
	s.stop()
	out, errs, code := s.run("key", "list", "--json")
	var keys []struct {
		Email      string
		LastUsedAt time.Time
	}
	if err := json.Unmarshal([]byte(out), &keys); err != nil || code != 0 || len(keys) != 2 {
		t.Fatalf("key list: exit code %d: %s %s", code, out, errs)
	}
	for _, k := range keys {
		if wasUsed := !k.LastUsedAt.IsZero(); wasUsed != (k.Email == "ann@lab.example") || wasUsed && time.Since(k.LastUsedAt) > patience {
			t.Errorf("%s: last used at %v", k.Email, k.LastUsedAt)
		}
	}
}

func TestSecretIsRotatedWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	u, anonymous := s.user("lab", "ann@lab.example"), user{s, ""}
	kid := func(link string) string {
		t.Helper()
		_, token, _ := strings.Cut(link, "?token=")
		var head struct{ KID string }
		must.OK(t, json.Unmarshal([]byte(unbase64(t, strings.Split(token, ".")[0])), &head))
		return head.KID
	}
	rotate := func() {
		t.Helper()
		if out, errs, code := s.run("secret", "rotate"); code != 0 || out != "" {
			t.Fatalf("secret rotate: exit code %d: %s", code, errs)
		}
	}
	before := u.grant("a.txt")
	rotate()
	after := u.grant("b.txt")
	s.stop()
	rotate()
	s.start()
	last := u.grant("c.txt")
	kids := map[string]bool{}
	for _, g := range []grant{before, after, last} {
		kids[kid(g.UploadURL)] = true
		path := strings.SplitN(g.UploadURL, "/", 4)[3] // the port changed at the restart
		anonymous.do("PUT", s.base+"/"+path, strings.NewReader("text")).want(200)
	}
	if len(kids) != 3 {
		t.Errorf("three links, before and after two rotations, are signed with %d keys", len(kids))
	}
}
