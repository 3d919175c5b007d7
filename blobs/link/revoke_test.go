package link

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// heldBy signs a link for a holder who was authorized some time ago.
func heldBy(s *Signer, kind app.LinkKind, holder string, ago time.Duration) string {
	now := s.now()
	return s.Sign(app.Link{Kind: kind, ID: someID, Filename: "a", Holder: holder, Issued: now.Add(-ago), Expires: now.Add(MaxLifetime)})
}

func TestRevokedLinksStopWorkingForGood(t *testing.T) {
	s, c := loadSigner(t)
	c.move(time.Since(c.Now()) + 300*time.Millisecond)
	get, put, oldest := heldBy(s, app.UploadGet, "ann", 0), heldBy(s, app.UploadPut, "ann", 0), heldBy(s, app.ResultGet, "ann", 0)
	others := []string{heldBy(s, app.UploadGet, "bob", 0), heldBy(s, app.UploadGet, "", 0)}
	check := func(when string) {
		t.Helper()
		verify(t, s, when, "GET", get, fault.LinkInvalid)
		verify(t, s, when, "HEAD", oldest, fault.LinkInvalid)
		verify(t, s, when, "PUT", put, fault.LinkInvalid)
		for _, link := range others {
			verify(t, s, when+", of another", "GET", link, "")
		}
	}
	rotate(t, s, 2) // ann's links were signed with the first key
	verify(t, s, "before", "GET", get, "")
	must.OK(t, s.Revoke("ann"))
	check("at once")
	c.move(time.Millisecond)
	later := heldBy(s, app.UploadGet, "ann", 0)
	verify(t, s, "asked for later, in the same second", "GET", later, "")
	c.move(time.Millisecond)
	must.OK(t, s.Revoke("ann"))
	verify(t, s, "after a second revocation in the same second", "GET", later, fault.LinkInvalid)
	c.move(time.Millisecond)
	later = heldBy(s, app.UploadGet, "ann", 0)
	rotate(t, s, 3)
	check("after a rotation")
	must.OK(t, s.Revoke("carl"))
	s = NewSigner(s.dir, stored(t, s), c.Now)
	check("after a restart")
	verify(t, s, "asked for later, after a restart", "GET", later, "")
	c.move(2 * time.Second)
	verify(t, s, "asked for before, signed long after", "GET", heldBy(s, app.UploadGet, "ann", 2*time.Second+time.Millisecond), fault.LinkInvalid)
	verify(t, s, "asked for long after", "GET", heldBy(s, app.UploadGet, "ann", 0), "")
	must.OK(t, s.Revoke("ann"))
	verify(t, s, "after a third revocation", "GET", later, fault.LinkInvalid)
	must.OK(t, os.WriteFile(filepath.Join(s.dir, SecretName), []byte("damaged"), 0o600))
	if err := s.Revoke("bob"); err == nil {
		t.Error("bob's links are revoked though the secret cannot be read")
	}
	verify(t, s, "after a revocation that failed", "GET", others[0], "")
}

func TestRevocationsAreForgottenWithTheirLinks(t *testing.T) {
	s, c := loadSigner(t)
	for _, step := range []struct {
		holder string
		after  time.Duration
		want   string
	}{
		{"ann", 0, "[ann]"},
		{"bob", MaxLifetime, "[ann bob]"},
		{"ann", 0, "[bob ann]"},
		{"carl", 2 * leeway, "[bob ann carl]"},
		{"dan", MaxLifetime, "[carl dan]"},
	} {
		c.move(step.after)
		must.OK(t, s.Revoke(step.holder))
		var got []string
		for _, r := range stored(t, s).Revoked {
			got = append(got, r.Holder)
		}
		must.Equal(t, fmt.Sprintf("%s after %v", step.holder, step.after), fmt.Sprint(got), step.want)
	}
}
