package web_test

import (
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/job/eta"
	"molrun/app/test/must"
)

func TestAdminsOfTheOnlyOrganizationMayDrain(t *testing.T) {
	s := start(t)
	const path = "/admin/drain"
	for _, key := range map[string]string{"a member": s.ann, "an admin among others": s.root} {
		for _, method := range []string{"POST", "DELETE"} {
			s.wantAs(key, 403, method, path, "")
		}
	}
	same(t, "not drained", s.want(200, "GET", path, "").body, "{\"drained\":false}\n")
	s.without("other")
	s.wantAs(s.ann, 403, "POST", path, "")
	first := s.as(s.root, "POST", path, `{"reason":"a new disk"}`)
	same(t, "the record", s.want(200, "GET", path, "").body, first.body)
	if f := first.fields(t); f["by"] != "root@lab.example" || f["reason"] != "a new disk" || f["drained"] != true {
		t.Errorf("drained: %s", first.body)
	}
	again := s.as(s.root, "POST", path, "").fields(t)
	same(t, "since when, and why no longer", []any{again["since"], again["reason"]}, []any{first.fields(t)["since"], nil})
	same(t, "faults", s.as(s.root, "POST", path, `{"reason":"a\nb","x":1}`).faults(t), []string{"body.x unknown"})
	same(t, "faults", s.as(s.root, "POST", path, `{"reason":"a\nb"}`).faults(t), []string{"body.reason value"})
	s.submit("waits")
	if why := s.app.Runs.Blocked(); why.By != eta.Drain || !strings.Contains(why.Text, "root@lab.example paused the queue") {
		t.Errorf("jobs wait: %+v", why)
	}
	if a := s.as(s.root, "DELETE", path, ""); a.body != "{\"drained\":false}\n" || s.app.Runs.Blocked() != (eta.Reason{}) {
		t.Errorf("resumed: %s; %+v", a.body, s.app.Runs.Blocked())
	}
}

// without deletes all keys of an organization.
func (s *service) without(organization string) {
	s.t.Helper()
	all, err := s.app.Accounts.Keys(s.t.Context(), app.Operator())
	must.OK(s.t, err)
	for _, k := range all {
		if k.Organization == organization {
			must.OK(s.t, s.app.Accounts.DeleteKey(s.t.Context(), app.Operator(), k.ID))
		}
	}
}
