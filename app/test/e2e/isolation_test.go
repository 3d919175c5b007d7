package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// tenant is one of two organizations that use the same names for everything.
type tenant struct {
	user
	organization     string
	file, job, batch string // its ids
}

// populate creates objects with the same names in every organization; only their
// content differs. With more, it adds some that the other organization lacks.
func populate(t *testing.T, s *instance, organization string, more bool) (n tenant) {
	t.Helper()
	n.organization = organization + s.tenant
	n.user = s.user(organization, "ann@lab.example", "--role", "admin")
	n.upload("same.txt", "file of "+n.organization)
	n.file = n.upload("in.txt", "input of "+n.organization)
	n.job = n.submit("j", "shell", script("echo printed by "+n.organization+"; cat in/input.txt > out/a", `,"input":"inputs/in.txt"`)).JobID
	n.batch = n.user.batch("b", "shell", script("echo row of "+n.organization+" > out/a"), script("true")).JobID
	n.finished("j")
	n.finished("b")
	if more {
		n.upload("only.txt", "secret")
		var g grant
		n.do("PUT", "/upload/x.txt?folder=only", nil).want(200).into(&g)
		n.submit("only", "shell", script("echo secret > out/a"))
		n.user.batch("only-b", "shell", script("true"))
		n.finished("only")
		n.finished("only-b")
	}
	return n
}

func TestObjectsOfOtherOrganizationsAreNotFound(t *testing.T) {
	t.Parallel()
	s := plain(t)
	ann, eve := populate(t, s, "lab", true), populate(t, s, "other", false)
	const absentID = "01AAAAAAAAAAAAAAAAAAAAAAAA"
	// Each request names an object of ann's, then one that never existed. Package web has
	// these of every parameter and member.
	for _, p := range []struct{ method, path, body, theirs, absent string }{
		{"GET", "/jobs/%s", "", "only-b-1", "none"},
		{"GET", "/jobs/%s/logs", "", ann.job, absentID},
		{"DELETE", "/jobs/%s", "", "only", "none"},
		{"DELETE", "/files/%s", "", ann.file, absentID},
		{"GET", "/jobs?organization=true&batch=%s", "", ann.batch, absentID},
		{"POST", "/result", `{"jobName":"%s","fileName":"a"}`, "only", "none"},
		{"POST", "/submit-job", jobBody("x", script("true", `,"input":"%s"`)), ann.file, absentID},
		{"POST", "/submit-job", jobBody("x", script("true", `,"input":"inputs/%s"`)), "only.txt", "none.txt"},
		{"POST", "/submit-job", jobBody("x", script("true", `,"input":"job:%s/@a"`)), "only", "none"},
		{"POST", "/estimate", jobBody("x", script("true", `,"input":"job:%s/@a"`)), "only-b-1", "none"},
	} {
		send := func(name string) string {
			path, body := strings.ReplaceAll(p.path, "%s", name), strings.ReplaceAll(p.body, "%s", name)
			var sent any
			if body != "" {
				sent = body
			}
			a := eve.do(p.method, path, sent)
			if a.status == 500 {
				t.Errorf("%s %s: %s", p.method, path, a.body)
			}
			return fmt.Sprint(a.status, " ", strings.ReplaceAll(string(a.body), name, "<name>"))
		}
		if theirs, absent := send(p.theirs), send(p.absent); theirs != absent {
			t.Errorf("%s %s %s\nresponse for %s of another organization: %s\nfor an absent name: %s", p.method, p.path, p.body, p.theirs, theirs, absent)
		}
	}
	// Nothing of ann's has changed, and each organization sees its own objects.
	for _, n := range []tenant{ann, eve} {
		n.wantResult("j", "a", "input of "+n.organization)
		n.wantResult("b", "b-1/a", "row of "+n.organization+"\n")
		if got := string(n.do("GET", "/jobs/j/logs", nil).want(200).body); got != "printed by "+n.organization+"\n" {
			t.Errorf("%s: log %q", n.organization, got)
		}
		if j := n.user.job("j"); j.JobID != n.job || j.Organization != n.organization {
			t.Errorf("%s: job %+v", n.organization, j)
		}
		if k := n.submit("k", "shell", script("cat in/input.txt > out/a", `,"input":"inputs/same.txt"`)); !*k.Created {
			t.Errorf("%s: the name k is taken", n.organization)
		}
		n.finished("k")
		n.wantResult("k", "a", "file of "+n.organization)
		for _, query := range []string{"/jobs?organization=true&includeSubjobs=true&limit=100", "/jobs?jobEmail=ann@lab.example", "/files?organization=true"} {
			other := eve.organization
			if n.organization == other {
				other = ann.organization
			}
			a := n.do("GET", query, nil).want(200)
			if strings.Contains(string(a.body), `"organization":"`+other+`"`) || strings.Contains(string(a.body), "only") != (n.organization == ann.organization) && !strings.Contains(query, "jobEmail") {
				t.Errorf("%s: %s returns %s", n.organization, query, a.body)
			}
			for _, id := range []string{ann.job, ann.batch, ann.file} {
				if n.organization == eve.organization && strings.Contains(string(a.body), id) {
					t.Errorf("%s reveals %s", query, id)
				}
			}
		}
	}
	eve.do("DELETE", "/jobs/j", nil).want(204)
	eve.do("DELETE", "/jobs/b", nil).want(204)
	ann.wantResult("j", "a", "input of "+ann.organization)
}
