package web_test

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/client"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/test/must"
)

// made returns the key in a response that shows a new key.
func (a answer) made(t *testing.T) string {
	t.Helper()
	key, _ := a.fields(t)["key"].(string)
	if key == "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return key
}

func TestUsersMakeKeysWithAtMostTheirRights(t *testing.T) {
	s := start(t)
	limited, _, err := s.app.Accounts.CreateKey(t.Context(), app.Operator(), access.KeyRequest{
		Organization: "lab", Email: "ann@lab.example", Scopes: []apikey.Scope{"read", "submit"},
		Networks: []string{"127.0.0.0/8", "10.0.0.0/8"}, Expires: 1000e9,
	})
	must.OK(t, err)
	for body, want := range map[string]string{
		`{"role":"admin"}`:                         "body.role value",
		`{"role":"king"}`:                          "body.role value",
		`{"scopes":["read","submit","admin"]}`:     "", // the scope admin has no effect for a member
		`{"role":"viewer"}`:                        "",
		`{"scopes":["read"]}`:                      "",
		`{"scopes":[]}`:                            "body.scopes value",
		`{"networks":["10.1.0.0/16","127.0.0.1"]}`: "",
		`{"networks":["10.0.0.0/7"]}`:              "body.networks.0 value",
		`{"networks":["10.1.1.1","0.0.0.0/0"]}`:    "body.networks.1 value",
		`{"networks":[]}`:                          "body.networks value",
		`{"expiresSeconds":1001}`:                  "body.expiresSeconds value",
		`{"expiresSeconds":1}`:                     "",
		`{"email":"bob@lab.example"}`:              "body.email unknown",
		`{"organization":"other"}`:                 "body.organization unknown",
	} {
		if want == "" {
			s.wantAs(limited, 200, "POST", "/keys", body)
		} else {
			same(t, body, s.wantAs(limited, 422, "POST", "/keys", body).faults(t), []string{want})
		}
	}
	made := s.as(limited, "POST", "/keys", `{"name":"notebook"}`)
	own := s.as(limited, "GET", "/keys", "").fields(t)["keys"].([]any)
	for _, k := range own {
		k := k.(map[string]any)
		if strings.Contains(fmt.Sprint(k), "hash") || k["email"] != "ann@lab.example" {
			t.Errorf("listed: %v", k)
		}
		if idOf(made.made(t)) == k["id"] {
			same(t, "inherited", fmt.Sprint(k["role"], k["scopes"], k["networks"], k["name"], k["madeBy"], k["expiresAt"] != nil),
				fmt.Sprint("member", []any{"read", "submit"}, []any{"127.0.0.0/8", "10.0.0.0/8"}, "notebook", idOf(limited), true))
		}
	}
	s.wantAs(s.bob, 404, "DELETE", "/keys/"+idOf(made.made(t)), "")
	s.wantAs(s.root, 404, "DELETE", "/keys/"+idOf(made.made(t)), "")
	for key, want := range map[string]int{made.made(t): 204, limited: 204} { // including the key in use
		s.wantAs(key, want, "DELETE", "/keys/"+idOf(key), "")
		s.wantAs(key, 401, "GET", "/keys", "")
	}
}

func TestUsersMakeOnlySoManyKeys(t *testing.T) {
	s := start(t)
	for range 99 {
		s.want(200, "POST", "/keys", "{}")
	}
	s.refused(s.ann, 403, "QUOTA_EXCEEDED", "POST", "/keys", "{}")
	s.wantAs(s.bob, 200, "POST", "/keys", "{}")
}

func TestAUserIsDisabledAndLimitedWithAllKeys(t *testing.T) {
	s := start(t)
	second := s.want(200, "POST", "/keys", "{}").made(t)
	user := func(body string, want int) answer {
		t.Helper()
		return s.wantAs(s.root, want, "PATCH", "/admin/users/Ann@lab.example", body)
	}
	answers := func(method, path, body string, want int) {
		t.Helper()
		for _, key := range []string{s.ann, second} {
			s.wantAs(key, want, method, path, body)
		}
	}
	user(`{"role":"viewer"}`, 200)
	answers("GET", "/jobs", "", 200)
	answers("PUT", "/upload/a.txt", "", 403)
	same(t, "more than the user may", s.as(s.root, "POST", "/admin/keys", `{"email":"ann@lab.example","role":"member"}`).faults(t), []string{"body.role value"})
	same(t, "more than the user may", s.as(s.root, "PATCH", "/admin/keys/"+idOf(second), `{"role":"admin"}`).faults(t), []string{"body.role value"})
	same(t, "role by default", s.as(s.root, "POST", "/admin/keys", `{"email":"ann@lab.example"}`).fields(t)["role"], any("viewer"))
	user(`{"disabled":true}`, 200)
	answers("GET", "/jobs", "", 401)
	same(t, "a key of a disabled user", s.as(s.root, "POST", "/admin/keys", `{"email":"ann@lab.example"}`).faults(t), []string{"body.email value"})
	same(t, "role", user(`{"disabled":false}`, 200).fields(t)["role"], any("viewer"))
	answers("GET", "/jobs", "", 200)
	user(`{"role":"member"}`, 200)
	answers("PUT", "/upload/a.txt", "", 200)
	same(t, "faults", user(`{"role":"king"}`, 422).faults(t), []string{"body.role value"})
	s.submit("a")
	listed := s.as(s.root, "GET", "/admin/users", "").fields(t)["users"].([]any)
	ann := listed[0].(map[string]any)
	same(t, "users", fmt.Sprint(len(listed), ann["email"], ann["role"], ann["disabled"], ann["keys"], ann["jobs"]), fmt.Sprint(3, "ann@lab.example", "member", false, 3, 1))
	s.wantAs(s.root, 204, "DELETE", "/admin/users/ann@lab.example", "")
	answers("GET", "/jobs", "", 401)
	s.wantAs(s.bob, 200, "GET", "/jobs/a", "")
}

// TestAnAdminStaysOne tries every way in which the only admin could lose admin rights.
func TestAnAdminStaysOne(t *testing.T) {
	s := start(t)
	own := "/admin/keys/" + idOf(s.root)
	for _, c := range []struct{ method, path, body string }{
		{"POST", own + "/disable", ""},
		{"DELETE", own, ""},
		{"DELETE", "/keys/" + idOf(s.root), ""},
		{"PATCH", own, `{"role":"member"}`},
		{"PATCH", own, `{"scopes":["read","submit"]}`},
		{"PATCH", "/admin/users/root@lab.example", `{"role":"member"}`},
		{"PATCH", "/admin/users/root@lab.example", `{"disabled":true}`},
		{"DELETE", "/admin/users/root@lab.example", ""},
	} {
		before := s.stored()
		if a := s.as(s.root, c.method, c.path, c.body); a.status != 403 || s.stored() != before {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, a.status, a.body)
		}
	}
	next := s.as(s.root, "POST", own+"/rotate", `{"overlapSeconds":0}`).made(t)
	s.wantAs(s.root, 401, "GET", "/keys", "")
	s.wantAs(next, 200, "PATCH", "/admin/users/bob@lab.example", `{"role":"admin"}`)
}

// TestTheOperatorManagesAllOrganizations changes keys and users over the control socket.
func TestTheOperatorManagesAllOrganizations(t *testing.T) {
	s := start(t)
	ctx, operator := t.Context(), client.NewControl(s.control())
	users, err := operator.Users(ctx)
	if err != nil || len(users) != 4 || users[3].Organization != "other" || users[2].Role != "admin" {
		t.Errorf("%+v, %v", users, err)
	}
	disabled := true
	if u, err := operator.ChangeUser(ctx, "other", "eve@other.example", client.UserChange{Disabled: &disabled}); err != nil || u.Role != "admin" || !u.Disabled {
		t.Errorf("%+v, %v", u, err)
	}
	s.wantAs(s.eve, 401, "GET", "/jobs", "")
	if k, err := operator.ChangeKey(ctx, idOf(s.root), client.KeyChange{Role: "viewer", Name: "was root"}); err != nil || k.Role != "viewer" || k.Name != "was root" {
		t.Errorf("the operator may take the last admin's rights: %+v, %v", k, err)
	}
	must.OK(t, operator.DeleteUser(ctx, "lab", "ann@lab.example"))
	must.Fail(t, "deleted twice", operator.DeleteUser(ctx, "lab", "ann@lab.example"), "no user")
}

func TestWhoChangedAKeyIsAudited(t *testing.T) {
	var log entries
	s := start(t, func(with *setup) { with.options.Audit = log.add })
	made := s.as(s.root, "POST", "/admin/keys", `{"email":"fay@lab.example"}`).made(t)
	s.as(s.root, "PATCH", "/admin/keys/"+idOf(made), `{"role":"viewer"}`)
	s.as(s.root, "PATCH", "/admin/users/fay@lab.example", `{"disabled":true}`)
	s.as(s.root, "POST", "/admin/keys/"+idOf(made)+"/revoke-links", "")
	s.as(s.bob, "POST", "/admin/keys/"+idOf(made)+"/revoke-links", "")
	var got []string
	for _, e := range log.take() {
		got = append(got, fmt.Sprint(e.Action, " ", e.Object, " ", e.Result, " ", e.Key == idOf(s.root)))
	}
	same(t, "entries", got, []string{
		"key.create " + idOf(made) + " ok true", "key.change " + idOf(made) + " ok true", "user.change fay@lab.example ok true",
		"key.revoke-links " + idOf(made) + " ok true", "key.revoke-links " + idOf(made) + " FORBIDDEN false",
	})
}
