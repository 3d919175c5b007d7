package web_test

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/client"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
)

// made returns the key in an answer that shows a new one.
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
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		`{"role":"admin"}`:                         "body.role value",
		`{"role":"king"}`:                          "body.role value",
		`{"scopes":["read","submit","admin"]}`:     "", // of a member, admin means nothing
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
		a := s.as(limited, "POST", "/keys", body)
		if want == "" && a.status != 200 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
		if want != "" {
			same(t, body, a.faults(t), []string{want})
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
	if a := s.as(s.bob, "DELETE", "/keys/"+idOf(made.made(t)), ""); a.status != 404 {
		t.Errorf("bob deletes ann's: %d %s", a.status, a.body)
	}
	if a := s.as(s.root, "DELETE", "/keys/"+idOf(made.made(t)), ""); a.status != 404 {
		t.Errorf("an admin deletes ann's as its own: %d %s", a.status, a.body)
	}
	for key, want := range map[string]int{made.made(t): 204, limited: 204} { // the one in use, too
		if a := s.as(key, "DELETE", "/keys/"+idOf(key), ""); a.status != want {
			t.Errorf("%d %s", a.status, a.body)
		}
		if a := s.as(key, "GET", "/keys", ""); a.status != 401 {
			t.Errorf("a deleted key: %d", a.status)
		}
	}
}

func TestUsersMakeOnlySoManyKeys(t *testing.T) {
	s := start(t)
	for range 99 {
		s.want(200, "POST", "/keys", "{}")
	}
	if a := s.want(403, "POST", "/keys", "{}"); a.code() != "QUOTA_EXCEEDED" {
		t.Error(a.body)
	}
	if a := s.as(s.bob, "POST", "/keys", "{}"); a.status != 200 {
		t.Errorf("bob: %s", a.body)
	}
}

func TestAUserIsDisabledAndLimitedWithAllKeys(t *testing.T) {
	s := start(t)
	second := s.want(200, "POST", "/keys", "{}").made(t)
	user := func(body string, want int) answer {
		t.Helper()
		a := s.as(s.root, "PATCH", "/admin/users/Ann@lab.example", body)
		if a.status != want {
			t.Fatalf("%s: %d %s", body, a.status, a.body)
		}
		return a
	}
	answers := func(method, path, body string, want int) {
		t.Helper()
		for _, key := range []string{s.ann, second} {
			if a := s.as(key, method, path, body); a.status != want {
				t.Errorf("%s %s: %d %s, want %d", method, path, a.status, a.body, want)
			}
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
	if len(listed) != 3 {
		t.Errorf("users %v", listed)
	}
	ann := listed[0].(map[string]any)
	same(t, "ann", fmt.Sprintln(ann["email"], ann["role"], ann["disabled"], ann["keys"], ann["jobs"]), "ann@lab.example member false 3 1\n")
	if a := s.as(s.root, "DELETE", "/admin/users/ann@lab.example", ""); a.status != 204 {
		t.Errorf("delete: %d %s", a.status, a.body)
	}
	answers("GET", "/jobs", "", 401)
	if a := s.as(s.bob, "GET", "/jobs/a", ""); a.status != 200 {
		t.Errorf("the job of a deleted user: %s", a.body)
	}
}

// TestAnAdminStaysOne tries all ways in which the only admin could lock out itself.
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
	if a := s.as(s.root, "GET", "/keys", ""); a.status != 401 {
		t.Errorf("a key that was replaced: %d", a.status)
	}
	if a := s.as(next, "PATCH", "/admin/users/bob@lab.example", `{"role":"admin"}`); a.status != 200 {
		t.Error(a.body)
	}
}

// TestTheOperatorManagesAllOrganizations changes keys and users over the control
// socket.
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
	if a := s.as(s.eve, "GET", "/jobs", ""); a.status != 401 {
		t.Errorf("a disabled user: %d", a.status)
	}
	if k, err := operator.ChangeKey(ctx, idOf(s.root), client.KeyChange{Role: "viewer", Name: "was root"}); err != nil || k.Role != "viewer" || k.Name != "was root" {
		t.Errorf("the operator may take the last admin's rights: %+v, %v", k, err)
	}
	if err := operator.DeleteUser(ctx, "lab", "ann@lab.example"); err != nil {
		t.Error(err)
	}
	if err := operator.DeleteUser(ctx, "lab", "ann@lab.example"); err == nil || !strings.Contains(err.Error(), "no user") {
		t.Errorf("deleted twice: %v", err)
	}
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
