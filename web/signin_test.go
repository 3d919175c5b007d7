package web_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/job/audit"
	"molrun/app/test/must"
	"molrun/web/edge"
)

const proxyAddress = "10.0.0.7"

// signedIn starts a service whose requests come from *from, and where a proxy signs in
// users of lab.
func signedIn(t *testing.T, from *string, create bool, change ...func(*setup)) *service {
	t.Helper()
	return start(t, append(change, func(with *setup) {
		with.address = func() string { return netip.AddrPortFrom(netip.MustParseAddr(*from), 1).String() }
		with.signIn = edge.SignIn{Header: "Remote-User", Proxies: []netip.Prefix{netip.MustParsePrefix(proxyAddress + "/32")}}
		with.users = access.SignIn{Organization: "lab", Create: create}
		with.options.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.8/32")}
	})...)
}

func TestProxySignsInKnownUsers(t *testing.T) {
	from := proxyAddress
	s := signedIn(t, &from, false)
	for _, email := range []string{"viewer@lab.example", "off@lab.example"} {
		change := access.UserChange{Role: apikey.Viewer}
		if disabled := true; strings.HasPrefix(email, "off") {
			change.Disabled = &disabled
		}
		must.OK(t, must.Error2(s.app.Accounts.ChangeUser(t.Context(), app.Operator(), "lab", email, change)))
	}
	gone := newKey(t, s.app.Accounts, "lab", "gone@lab.example", apikey.Admin)
	s.disable(gone)
	for user, want := range map[string][3]int{ // statuses to read, to change and to administer
		"ann@lab.example":                  {200, 200, 403},
		"Ann@Lab.Example":                  {200, 200, 403},
		"root@lab.example":                 {200, 200, 200},
		"viewer@lab.example":               {200, 403, 403},
		"off@lab.example":                  {401, 401, 401}, // disabled
		"gone@lab.example":                 {401, 401, 401}, // has no enabled key
		"eve@other.example":                {401, 401, 401}, // in another organization
		"new@lab.example":                  {401, 401, 401},
		"ann":                              {401, 401, 401},
		"":                                 {401, 401, 401},
		"ann@lab.example,root@lab.example": {401, 401, 401},
		"ann@lab.example root@lab.example": {401, 401, 401},
		"\"Ann\" <ann@lab.example>":        {401, 401, 401},
		"ann@lab.example\xff":              {401, 401, 401},
		"lab/ann@lab.example":              {401, 401, 401},
		"ann@lab.example\u200b":            {401, 401, 401},
	} {
		for i, route := range []string{"GET /jobs", "PUT /upload/a.txt", "GET /admin/keys"} {
			method, path, _ := strings.Cut(route, " ")
			s.wantSent(want[i], method, path, "", "Remote-User", user)
		}
	}
	for _, headers := range map[string][]string{
		"twice":               {"Remote-User", "ann@lab.example", "Remote-User", "root@lab.example"},
		"the same twice":      {"Remote-User", "ann@lab.example", "remote-user", "ann@lab.example"},
		"one is empty":        {"Remote-User", "", "Remote-User", "ann@lab.example"},
		"with an underscore":  {"Remote_User", "ann@lab.example"},
		"another header":      {"X-Remote-User", "ann@lab.example"},
		"beside a bad key":    {"Remote-User", "ann@lab.example", "x-api-key", "wrong"},
		"beside an empty key": {"Remote-User", "ann@lab.example", "x-api-key", ""},
	} {
		s.wantSent(401, "GET", "/jobs", "", headers...)
	}
	bob := s.send("GET", "/keys", "", "Remote-User", "ann@lab.example", "x-api-key", s.bob).fields(t)["keys"].([]any)[0]
	same(t, "a key counts before the header", bob.(map[string]any)["email"], any("bob@lab.example"))
}

func TestOnlyTrustedProxiesSignInUsers(t *testing.T) {
	from := ""
	s := signedIn(t, &from, true)
	for _, from = range []string{"10.0.0.8", "127.0.0.1", "192.0.2.1", "::1"} {
		for _, forwarded := range []string{"", proxyAddress, "192.0.2.1, " + proxyAddress} {
			a := s.send("GET", "/jobs", "", "Remote-User", "ann@lab.example", "X-Forwarded-For", forwarded)
			same(t, fmt.Sprintf("from %s for %q", from, forwarded), a.status, 401)
		}
	}
	if n := strings.Count(s.log.String(), "not in sign_in.proxies"); n < 1 || n > 10 {
		t.Errorf("%d lines in the log, want one a second", n)
	}
	if strings.Contains(s.log.String(), "ann@lab.example") {
		t.Error("the log holds the header")
	}
	from = proxyAddress
	off := start(t, func(with *setup) { with.from = proxyAddress + ":1" })
	same(t, "it is off, and answers", off.send("GET", "/jobs", "", "Remote-User", "ann@lab.example").status, 401)
}

func TestUnknownUsersBecomeMembersIfConfigured(t *testing.T) {
	from, log := proxyAddress, entries{}
	s := signedIn(t, &from, true, func(with *setup) { with.options.Audit = log.add })
	gone := newKey(t, s.app.Accounts, "lab", "gone@lab.example", apikey.Member)
	s.disable(gone)
	s.wantSent(401, "GET", "/jobs", "", "Remote-User", "gone@lab.example")
	if a := s.send("POST", "/submit-job", `{"jobName":"a","type":"echo","settings":{}}`, "Remote-User", "New@lab.example", "Content-Type", "application/json"); a.status != 200 || a.fields(t)["jobEmail"] != "new@lab.example" {
		t.Errorf("%d %s", a.status, a.body)
	}
	var last audit.Entry
	for _, last = range log.take() {
	}
	same(t, "audited", []string{last.Action, last.Key}, []string{"job.submit", "user:lab/new@lab.example"})
	must.OK(t, s.app.Accounts.SaveKeyUses(t.Context()))
	users, err := s.app.Accounts.Users(t.Context(), app.Operator())
	must.OK(t, err)
	found := ""
	for _, u := range users {
		if u.Email == "new@lab.example" {
			found = fmt.Sprintln(u.Organization, u.Role, u.Keys, u.Jobs, u.UsedAt.IsZero())
		}
	}
	same(t, "the new user", found, "lab member 0 1 false\n")
	made := s.send("POST", "/keys", `{"name":"notebook"}`, "Remote-User", "new@lab.example", "Content-Type", "application/json").made(t)
	s.wantAs(made, 200, "GET", "/jobs/a", "")
	link := s.send("PUT", "/upload/a.txt", "", "Remote-User", "new@lab.example").fields(t)["uploadUrl"].(string)
	s.wantAs(s.root, 204, "POST", "/admin/keys/user:lab%2Fnew@lab.example/revoke-links", "")
	s.wantAs(s.eve, 404, "POST", "/admin/keys/user:lab%2Fnew@lab.example/revoke-links", "")
	s.wantSent(403, "PUT", link, "text")
	s.run("a", map[string]string{"a.txt": "text"})
	share := s.send("POST", "/jobs/a/share", "{}", "Remote-User", "new@lab.example", "Content-Type", "application/json").fields(t)["url"].(string)
	s.wantSent(200, "GET", share, "")
	s.wantAs(s.root, 200, "PATCH", "/admin/users/new@lab.example", `{"disabled":true}`)
	s.wantSent(401, "GET", "/jobs", "", "Remote-User", "new@lab.example")
	s.wantSent(404, "GET", share, "")
}

func TestSignInKeepsTheRightsOfKeys(t *testing.T) {
	from := proxyAddress
	s := signedIn(t, &from, true)
	s.wantSent(200, "GET", "/admin/users", "", "Remote-User", "root@lab.example")
	s.wantAs(s.root, 200, "GET", "/admin/users", "")
	s.wantSent(403, "PATCH", "/admin/users/root@lab.example", `{"role":"viewer"}`, "Remote-User", "root@lab.example", "Content-Type", "application/json")
}
