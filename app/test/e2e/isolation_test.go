package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestObjectsOfOtherOrganizationsAreNotFound has two organizations that use the same
// names. Package web tests the same for every parameter and body member of the API.
func TestObjectsOfOtherOrganizationsAreNotFound(t *testing.T) {
	t.Parallel()
	s := plain(t)
	ann, eve := s.user("lab", "ann@lab.example", "--role", "admin"), s.user("other", "ann@lab.example", "--role", "admin")
	for what, u := range map[string]user{"of ann": ann, "of eve": eve} {
		u.upload("in.txt", what)
		u.submit("j", "shell", script("cat in/input.txt; cat in/input.txt > out/a", `,"input":"inputs/in.txt"`))
	}
	ann.completed("j")
	eve.completed("j")
	file, job := ann.upload("only.txt", "secret"), ann.submit("only", "shell", script("echo secret > out/a")).JobID
	ann.completed("only")
	const absentID = "01AAAAAAAAAAAAAAAAAAAAAAAA"
	for _, p := range []struct{ method, path, body, theirs, absent string }{
		{"GET", "/jobs/%s/logs", "", job, absentID},
		{"DELETE", "/files/%s", "", file, absentID},
		{"POST", "/result", `{"jobName":"%s","fileName":"a"}`, "only", "none"},
		{"POST", "/submit-job", jobBody("x", script("true", `,"input":"job:%s/@a"`)), "only", "none"},
	} {
		send := func(name string) string {
			var sent any
			if p.body != "" {
				sent = strings.ReplaceAll(p.body, "%s", name)
			}
			a := eve.do(p.method, strings.ReplaceAll(p.path, "%s", name), sent)
			return fmt.Sprint(a.status, " ", strings.ReplaceAll(string(a.body), name, "<name>"))
		}
		if theirs, absent := send(p.theirs), send(p.absent); theirs != absent {
			t.Errorf("%s %s\nanswer for %s of another organization: %s\nfor an absent name: %s", p.method, p.path, p.theirs, theirs, absent)
		}
	}
	eve.wantResult("j", "a", "of eve")
	must.Equal(t, "the jobs of eve's organization", eve.names(url.Values{"organization": {"true"}}), []string{"j"})
	eve.do("DELETE", "/jobs/j", nil).want(204)
	ann.wantResult("j", "a", "of ann")
}
