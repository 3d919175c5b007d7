package web_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/base/strictjson"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/job/output"
	"molrun/app/job/upload"
	"molrun/app/test/contract"
	"molrun/app/test/must"
)

// person is a user who authenticates in one way.
type person struct {
	access.KeyRequest // the user's only key
	way               string
	headers           []string
}

func (p person) String() string {
	return fmt.Sprintf("%s with scopes %v, by %s", p.Email, p.Scopes, p.way)
}

// may reports whether both the user's role and the key's scopes grant a right.
func (p person) may(right string) bool {
	ofRole := map[apikey.Role][]string{apikey.Viewer: {"read"}, apikey.Member: {"read", "submit"}, apikey.Admin: {"read", "submit", "admin"}}
	return slices.Contains(ofRole[p.Role], right) && (len(p.Scopes) == 0 || slices.Contains(p.Scopes, apikey.Scope(right)))
}

// people returns a user with a key for each role and set of scopes, once for each way to
// sign in.
func (s *service) people() (all []person) {
	s.t.Helper()
	for _, role := range []apikey.Role{apikey.Viewer, apikey.Member, apikey.Admin} {
		for i, scopes := range scopeSets() {
			r := access.KeyRequest{Organization: "lab", Email: fmt.Sprintf("%s%d@lab.example", role, i), Role: role, Scopes: scopes}
			key, _, err := s.app.Accounts.CreateKey(s.t.Context(), app.Operator(), r)
			must.OK(s.t, err)
			ways := map[string][]string{"key": {"x-api-key", key}, "session": s.signedInAs(key)}
			// Signing in by link or proxy gives the full rights of a role, so it works
			// only for users whose key has exactly these rights.
			invited, err := s.app.Accounts.Invite(s.t.Context(), "lab", r.Email)
			limited := person{KeyRequest: r}
			if limited.may("read") && (limited.may("submit") || !limited.may("admin")) { // rights match a role
				must.OK(s.t, err)
				ways["link"] = s.wantSignIn(200, `{"token":"`+invited.Token+`"}`)
				ways["proxy"] = []string{"Remote-User", r.Email}
			} else if got := s.send("GET", "/jobs", "", "Remote-User", r.Email).status; err == nil || got != 401 {
				s.t.Errorf("%s with scopes %v signs in without the key: %v, status %d", r.Email, scopes, err, got)
			}
			for _, way := range sorted(ways) {
				all = append(all, person{r, way, ways[way]})
			}
		}
	}
	return all
}

// own returns an object of a kind that belongs to a user, created again if it was
// deleted. It uses an admin of the organization where necessary.
func (s *service) own(what meaning, user access.KeyRequest, admin string, had map[meaning]any) any {
	s.t.Helper()
	ctx, by := s.t.Context(), app.Caller{KeyID: idOf(admin), Organization: user.Organization, Email: user.Email, Rights: apikey.Admin.Rights()}
	s.made++
	name := fmt.Sprint("n", s.made)
	switch what {
	case aWebhook: // belongs to the organization, which can only have a few
		hooks := s.as(admin, "GET", "/webhooks", "").fields(s.t)["webhooks"].([]any)
		if len(hooks) == 0 {
			return s.as(admin, "POST", "/webhooks", `{"url":"https://hooks.example/"}`).fields(s.t)["webhookId"]
		}
		for _, h := range hooks[1:] {
			s.wantAs(admin, 204, "DELETE", "/webhooks/"+h.(map[string]any)["webhookId"].(string), "")
		}
		return hooks[0].(map[string]any)["webhookId"]
	case aShare:
		had[aJob] = s.own(aJob, user, admin, had)
	case aPath:
		return "own.txt"
	case references:
		return map[string]any{}
	}
	if had[what] != nil {
		return had[what]
	}
	switch what {
	case aJob:
		empty, err := strictjson.Parse([]byte("{}"))
		must.OK(s.t, err)
		must.OK(s.t, must.Error3(s.app.Jobs.Submit(ctx, by, app.Submission{Name: name, Type: "echo", Settings: empty, Body: empty})))
		ann := s.ann
		s.ann = admin // run uses this key
		s.run(name, map[string]string{"own.txt": "text"})
		s.ann = ann
		return name
	case aFile:
		grant, err := s.app.Files.Create(ctx, by, upload.Request{Filename: name})
		must.OK(s.t, err)
		return string(grant.Upload.ID)
	case aShare:
		made, _, err := s.app.Shares.Create(ctx, by, output.ShareRequest{Name: had[aJob].(string)})
		must.OK(s.t, err)
		return string(made.ID)
	case aKey:
		_, rec, err := s.app.Accounts.CreateKey(ctx, app.Operator(), access.KeyRequest{Organization: user.Organization, Email: user.Email, Role: apikey.Viewer})
		must.OK(s.t, err)
		return rec.ID
	case aMember:
		r := access.KeyRequest{Organization: user.Organization, Email: name + "@lab.example", Role: apikey.Viewer}
		must.OK(s.t, must.Error3(s.app.Accounts.CreateKey(ctx, app.Operator(), r)))
		return r.Email
	}
	return nil
}

// named returns the kind of object that the path or the body of an operation names, or ""
// if it names none.
func named(op contract.Operation, inputs []contract.Input) meaning {
	for _, in := range inputs {
		what, _ := meaningOf(op, in)
		if (in.In == "path" || op.Path == "/result") && slices.Contains([]meaning{aJob, aFile, aShare, aKey, aMember, aWebhook}, what) {
			return what
		}
	}
	return ""
}

// TestEveryRouteNeedsARoleAndAScope sends every request in openapi.yaml, filled with data
// of the caller, of a colleague and of another organization, as every kind of user in
// every way to sign in. The rights are those that both the user and the key have.
func TestEveryRouteNeedsARoleAndAScope(t *testing.T) {
	from := proxyAddress
	s := signedIn(t, &from, false, viewing, func(with *setup) { with.options.Rates.Shared = 1 << 20 })
	theirs := access.KeyRequest{Organization: "other", Email: "eve@other.example", Role: apikey.Admin}
	colleague := access.KeyRequest{Organization: "lab", Email: "ann@lab.example", Role: apikey.Member}
	owned := map[string]map[meaning]any{}
	ops := described.Spec.Operations()
	// Operations that delete come last, and deleting the session at the very end.
	slices.SortStableFunc(ops, func(a, b contract.Operation) int { return cmp.Compare(rank(a), rank(b)) })
	sent := 0
	for _, p := range s.people() {
		for _, op := range ops {
			inputs := described.Spec.Inputs(op)
			what := named(op, inputs)
			for _, user := range []access.KeyRequest{p.KeyRequest, colleague, theirs} {
				if user.Email != p.Email && what == "" || op == (contract.Operation{Method: "POST", Path: "/session"}) {
					continue
				}
				if owned[user.Email] == nil {
					owned[user.Email] = map[meaning]any{}
				}
				w := world{own: owned[user.Email], as: p.headers}
				for _, in := range inputs {
					if kind, _ := meaningOf(op, in); kind != "" && in.Required {
						w.own[kind] = s.own(kind, user, map[string]string{"lab": s.root, "other": s.eve}[user.Organization], w.own)
					}
				}
				s.made++
				a := w.ask(s, op, inputs, change(op, inputs), contract.Input{}, s.made)
				sent++
				if a.status < 300 && op.Method == "DELETE" {
					w.own[what] = nil
					if what == aJob {
						w.own[aShare] = nil
					}
				}
				if want := answerTo(p, op, what, user); !slices.Contains(want, a.status) {
					t.Errorf("%s of %s, %s: %d, want %v: %s", p, user.Email, op, a.status, want, a.body)
				}
			}
		}
	}
	t.Logf("%d requests", sent)
	if sent < 2900 {
		t.Errorf("only %d requests", sent)
	}
}

// change returns a body member to set for an operation that changes something, if none is
// required.
func change(op contract.Operation, inputs []contract.Input) []string {
	if op.Path == "/admin/prune" {
		return []string{"body dryRun"}
	}
	for _, in := range inputs {
		if _, harmless := harmlessValue(op, in); harmless && in.In == "body" && (op.Method == "PATCH" || strings.HasSuffix(op.Path, "/rotate")) {
			return []string{"body " + in.Name}
		}
	}
	return nil
}

func rank(op contract.Operation) int {
	switch {
	case op == contract.Operation{Method: "DELETE", Path: "/session"}:
		return 2
	case op.Method == "DELETE":
		return 1
	}
	return 0
}

// answerTo returns the expected statuses of a request for an object of a user.
func answerTo(p person, op contract.Operation, what meaning, user access.KeyRequest) []int {
	allowed := []int{200, 201, 204, 409, 422}
	rights, signedIn := described.Spec.Rights(op)
	switch own := user.Email == p.Email; {
	case !signedIn || len(rights) == 0:
		return append(allowed, 302, 404) // a share's token is not bound to a user
	case !p.may(rights[0]):
		return []int{403}
	case strings.HasSuffix(op.Path, "/admin/drain") && op.Method != "GET":
		return []int{403} // not allowed while another organization has keys
	case user.Organization != p.Organization && what == aMember:
		return append(allowed, 404) // refers to the caller's organization, which may have that address by now
	case user.Organization != p.Organization, op.Path == "/keys/{keyId}" && !own:
		return []int{404}
	case (rights[0] == "submit" || strings.HasSuffix(op.Path, "/notices")) && what != "" && !own && !p.may("admin"):
		return []int{403}
	case strings.Contains(op.Path, "{name}"), strings.HasSuffix(op.Path, "{filename}"):
		return append(allowed, 404) // the result has no such series, or the type no such example
	}
	return allowed
}
