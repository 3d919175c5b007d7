package web_test

import (
	"fmt"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/test/must"
	"molrun/storage"
	"molrun/web"
)

// scopeSets returns all sets of scopes that a key can have, beginning with the empty set.
func scopeSets() (sets [][]apikey.Scope) {
	for bits := range 8 {
		var set []apikey.Scope
		for i, scope := range []apikey.Scope{apikey.ScopeRead, apikey.ScopeSubmit, apikey.ScopeAdmin} {
			if bits&(1<<i) != 0 {
				set = append(set, scope)
			}
		}
		sets = append(sets, set)
	}
	return sets
}

// idOf returns the ID of a key.
func idOf(key string) string { return strings.Split(key, "_")[1] }

// limitedKey creates a key for ann.
func (s *service) limitedKey(role apikey.Role, scopes ...apikey.Scope) string {
	s.t.Helper()
	r := access.KeyRequest{Organization: "lab", Email: "ann@lab.example", Role: role, Scopes: scopes}
	key, _, err := s.app.Accounts.CreateKey(s.t.Context(), app.Operator(), r)
	must.OK(s.t, err)
	return key
}

// TestReadersAndAFullDiskChangeNothing sends requests that work with the owner's full
// key, first with read-only keys, and then while nothing can be written.
func TestReadersAndAFullDiskChangeNothing(t *testing.T) {
	s := start(t)
	s.without("other")
	s.root = s.limitedKey(apikey.Admin)
	for _, name := range []string{"queued", "failed", "done"} {
		s.submit(name)
	}
	s.run("failed", nil)
	s.run("done", map[string]string{"a.txt": "text"})
	file := s.upload("a.pdb", "ATOM")
	grant := s.want(200, "PUT", "/upload/b.pdb", "").fields(t)
	if put := s.send("PUT", grant["uploadUrl"].(string), "ATOM"); put.status/100 != 2 {
		t.Fatal(put.body)
	}
	shared, _ := s.share("done", "")
	hook := "/webhooks/" + s.as(s.root, "POST", "/webhooks", `{"url":"https://hooks.example/"}`).fields(t)["webhookId"].(string)
	changes := []struct{ route, path, body string }{
		{"POST /admin/drain", "/admin/drain", `{"reason":"a disk"}`},
		{"DELETE /admin/drain", "/admin/drain", ""},
		{"POST /keys", "/keys", "{}"},
		{"DELETE /keys/:keyId", "/keys/" + idOf(s.limitedKey(apikey.Member)), ""},
		{"POST /admin/keys", "/admin/keys", `{"email":"new@lab.example"}`},
		{"PATCH /admin/keys/:keyId", "/admin/keys/" + idOf(s.bob), `{"role":"viewer"}`},
		{"POST /admin/keys/:keyId/disable", "/admin/keys/" + idOf(s.bob) + "/disable", ""},
		{"POST /admin/keys/:keyId/enable", "/admin/keys/" + idOf(s.bob) + "/enable", ""},
		{"POST /admin/keys/:keyId/rotate", "/admin/keys/" + idOf(s.bob) + "/rotate", "{}"},
		{"DELETE /admin/keys/:keyId", "/admin/keys/" + idOf(s.bob), ""},
		{"PATCH /admin/users/:email", "/admin/users/carl@lab.example", `{"role":"viewer"}`},
		{"DELETE /admin/users/:email", "/admin/users/carl@lab.example", ""},
		{"PATCH /jobs/:jobName", "/jobs/done", `{"note":"changed"}`},
		{"POST /jobs/:jobName/cancel", "/jobs/queued/cancel", ""},
		{"POST /jobs/:jobName/retry", "/jobs/failed/retry", ""},
		{"POST /jobs/:jobName/pin", "/jobs/done/pin", ""},
		{"DELETE /jobs/:jobName/pin", "/jobs/done/pin", ""},
		{"POST /jobs/:jobName/share", "/jobs/done/share", ""},
		{"DELETE /shares/:id", "/shares/" + shared, ""},
		{"DELETE /jobs/:jobName", "/jobs/done", ""},
		{"POST /submit-job", "/submit-job", `{"jobName":"new","type":"echo","settings":{}}`},
		{"POST /submit-batch", "/submit-batch", `{"batchName":"new-b","type":"echo","settings":[{}]}`},
		{"PUT /upload/:filename", "/upload/c.pdb", ""},
		{"POST /upload/:fileId/complete", "/upload/" + grant["fileId"].(string) + "/complete", ""},
		{"DELETE /files/:fileId", "/files/" + file, ""},
		{"POST /webhooks", "/webhooks", `{"url":"https://hooks.example/"}`},
		{"PATCH /webhooks/:webhookId", hook, `{"events":["job.failed"]}`},
		{"POST /webhooks/:webhookId/rotate", hook + "/rotate", ""},
		{"POST /webhooks/:webhookId/test", hook + "/test", ""},
		{"DELETE /webhooks/:webhookId", hook, ""},
	}
	// These routes change nothing in the database.
	changing := map[string]bool{"POST /estimate": true, "POST /validate-job": true, "POST /upload/:fileId/link": true, "POST /admin/keys/:keyId/revoke-links": true, "GET /admin/audit": true, "POST /admin/prune": true, "GET /admin/status": true, "GET /admin/storage": true, "GET /admin/keys": true, "GET /admin/users": true, "GET /webhooks": true, "GET /webhooks/:webhookId/deliveries": true}
	for _, c := range changes {
		changing[c.route] = true
	}
	for _, reader := range []string{s.limitedKey(apikey.Viewer), s.limitedKey(apikey.Admin, apikey.ScopeRead)} {
		before := s.stored()
		for _, c := range changes {
			method, _, _ := strings.Cut(c.route, " ")
			s.wantAs(reader, 403, method, c.path, c.body)
		}
		for _, r := range web.Routes() {
			if route := r.Method + " " + r.Path; r.Needs == apikey.Read {
				for _, name := range []string{"absent", "queued", "failed", "done"} {
					s.as(reader, r.Method, strings.ReplaceAll(absent(r.Path), "absent", name), map[bool]string{true: `{"jobName":"done"}`}[r.Method == "POST"])
				}
			} else if r.Needs != 0 && !changing[route] {
				t.Errorf("%s: add a request that changes something", route)
			}
		}
		same(t, "what is stored", s.stored(), before)
	}
	full := fault.Errorf(fault.StorageFull, "The disk is full; an administrator must free space.")
	for _, c := range changes {
		method, _, _ := strings.Cut(c.route, " ")
		s.store.writing.Store(&full)
		s.refused(s.root, 507, "STORAGE_FULL", method, c.path, c.body)
		s.want(200, "GET", "/jobs", "")
		s.want(200, "POST", "/validate-job", `{"jobName":"new","type":"echo","settings":{}}`)
		s.store.writing.Store(nil)
		before := s.stored()
		if a := s.as(s.root, method, c.path, c.body); a.status/100 != 2 || s.stored() == before {
			t.Errorf("%s %s with a full key changes nothing: %d %s", method, c.path, a.status, a.body)
		}
	}
}

// absent returns a path that matches a route but refers to nothing.
func absent(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, ":") || strings.HasPrefix(s, "*") {
			segments[i] = "absent"
		}
	}
	return strings.Join(segments, "/")
}

// stored returns the whole database as text.
func (s *service) stored() string {
	s.t.Helper()
	path, err := s.store.Store.(*storage.Store).Snapshot(s.t.Context())
	must.OK(s.t, err)
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	must.OK(s.t, err)
	defer db.Close()
	var text strings.Builder
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				_, err := fmt.Fprintf(&text, "%s %q %q\n", name, k, v)
				return err
			})
		})
	})
	must.OK(s.t, err)
	return text.String()
}

func TestKeyWorksOnlyFromItsNetworks(t *testing.T) {
	from := ""
	s := start(t, func(with *setup) { with.address = func() string { return from } })
	r := access.KeyRequest{Organization: "lab", Email: "ann@lab.example", Networks: []string{"10.1.0.0/16", "192.0.2.7", "2001:db8::/32"}}
	key, _, err := s.app.Accounts.CreateKey(t.Context(), app.Operator(), r)
	must.OK(t, err)
	unknown := s.as("molrun_", "GET", "/jobs", "").body
	for address, want := range map[string]int{
		"10.1.2.3:1": 200, "192.0.2.7:1": 200, "[2001:db8::1]:1": 200, "[::ffff:10.1.2.3]:1": 200,
		"10.2.2.3:1": 401, "192.0.2.8:1": 401, "[2001:db9::1]:1": 401, "127.0.0.1:1": 401, "@": 401, "": 401,
	} {
		from = address
		a := s.as(key, "GET", "/jobs", "")
		if a.status != want || want == 401 && a.body != unknown {
			t.Errorf("from %q: %d %s, want %d", address, a.status, a.body, want)
		}
		s.want(200, "GET", "/jobs", "") // a key without networks works from everywhere
	}
	same(t, "last use of a key that was refused", s.usesFrom(key, &from, "10.2.2.3:1"), false)
	same(t, "last use", s.usesFrom(key, &from, "10.1.2.3:1"), true)
}

// usesFrom reports whether a request from an address counts as a use of a key.
func (s *service) usesFrom(key string, from *string, address string) bool {
	s.t.Helper()
	used := func() string {
		must.OK(s.t, s.app.Accounts.SaveKeyUses(s.t.Context()))
		keys, err := s.app.Accounts.Keys(s.t.Context(), app.Operator())
		must.OK(s.t, err)
		for _, k := range keys {
			if strings.Contains(key, "_"+k.ID+"_") {
				return k.LastUsedAt.String()
			}
		}
		return ""
	}
	before := used()
	*from = address
	s.as(key, "GET", "/jobs", "")
	return used() != before
}

// sessionOf signs in with a key and returns the cookie.
func (s *service) sessionOf(key string) string { return s.sessionBy("key", key) }

func (s *service) sessionBy(what, value string) string {
	s.t.Helper()
	res := s.send("POST", "/session", fmt.Sprintf(`{%q:%q}`, what, value), "Content-Type", "application/json")
	must.Equal(s.t, "status of a sign-in", res.status, 200)
	cookie, _, _ := strings.Cut(res.header.Get("Set-Cookie"), ";")
	return cookie
}
