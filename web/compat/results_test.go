package compat

import (
	"testing"
	"time"

	"molrun/app/job/apikey"
)

func TestRevokedLogLinksEnd(t *testing.T) {
	links := newLogLinks(time.Now)
	first, id, _ := apikey.New()
	second, _, _ := apikey.New()
	a, b := links.add(first, "j"), links.add(second, "j")
	for _, step := range []struct {
		revoked string
		a, b    bool
	}{{"absent", true, true}, {id, false, true}, {"", false, false}} {
		links.revoke(step.revoked)
		_, hasA := links.find(a)
		_, hasB := links.find(b)
		if hasA != step.a || hasB != step.b {
			t.Errorf("after %q was revoked: %v and %v, want %v and %v", step.revoked, hasA, hasB, step.a, step.b)
		}
	}
}
