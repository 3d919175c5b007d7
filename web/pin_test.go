package web_test

import (
	"strings"
	"testing"

	"molrun/web/client"
)

func TestPinIsShownUntilItIsRemoved(t *testing.T) {
	s := start(t)
	s.want(200, "POST", "/submit-job", `{"jobName":"a b","type":"echo","settings":{}}`)
	for _, step := range []struct {
		method string
		want   string
	}{
		{"POST", `"pinned":true`},
		{"POST", `"pinned":true`},
		{"DELETE", `"pinned":false`},
		{"DELETE", `"pinned":false`},
	} {
		if a := s.want(200, step.method, "/jobs/a%20b/pin", ""); !strings.Contains(a.body, step.want) {
			t.Errorf("%s: %s, want %s", step.method, a.body, step.want)
		}
		if a := s.want(200, "GET", "/jobs/a%20b", ""); !strings.Contains(a.body, step.want) || strings.Contains(a.body, "pinnedBy") {
			t.Errorf("the record after %s: %s, want %s", step.method, a.body, step.want)
		}
	}
	for _, method := range []string{"POST", "DELETE"} {
		if a := s.as(s.bob, method, "/jobs/a%20b/pin", ""); a.status != 403 {
			t.Errorf("%s by another member: %d", method, a.status)
		}
		if a := s.as(s.root, method, "/jobs/a%20b/pin", ""); a.status != 200 {
			t.Errorf("%s by an admin: %d", method, a.status)
		}
		if a := s.as(s.eve, method, "/jobs/a%20b/pin", ""); a.status != 404 {
			t.Errorf("%s by another organization: %d", method, a.status)
		}
	}
}

func TestClientPinsAndUnpins(t *testing.T) {
	s := start(t)
	s.want(200, "POST", "/submit-job", `{"jobName":"a","type":"echo","settings":{}}`)
	c := client.New(s.url, s.ann)
	if j, err := c.Pin(t.Context(), "a"); err != nil || !j.Pinned {
		t.Errorf("pin: %+v, %v", j, err)
	}
	if j, err := c.Unpin(t.Context(), "a"); err != nil || j.Pinned {
		t.Errorf("unpin: %+v, %v", j, err)
	}
}
