package web_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/job/audit"
	"molrun/app/test/must"
	"molrun/web/edge"
)

// signIn signs in a browser and returns its cookie as a header.
func (s *service) signIn(body string, headers ...string) (answer, []string) {
	s.t.Helper()
	a := s.send("POST", "/session", body, append(headers, "Content-Type", "application/json")...)
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	return a, []string{"Cookie", cookie}
}

// wantSignIn signs in a browser, requires a status and returns its cookie as a header.
func (s *service) wantSignIn(status int, body string, headers ...string) []string {
	s.t.Helper()
	a, cookie := s.signIn(body, headers...)
	s.is(status, a, fmt.Sprintf("with %q", headers), "POST", "/session", body)
	return cookie
}

// signedInAs signs in with a key.
func (s *service) signedInAs(key string) []string {
	s.t.Helper()
	return s.wantSignIn(200, `{"key":"`+key+`"}`)
}

func TestSessionShowsWhoHasSignedIn(t *testing.T) {
	from := proxyAddress
	s := signedIn(t, &from, false)
	limited := s.limitedKey(apikey.Member, apikey.ScopeSubmit)
	for name, headers := range map[string][]string{
		"key": {"x-api-key", s.ann}, "session": s.signedInAs(s.ann), "proxy": {"Remote-User", "ann@lab.example"},
	} {
		a := s.send("GET", "/session", "", headers...)
		f := a.fields(t)
		same(t, name, []any{a.status, f["email"], f["organization"], f["role"], f["signIn"], f["version"]}, []any{200, "ann@lab.example", "lab", "member", name, "test"})
		same(t, name+" has rights", f["rights"], any([]any{"read", "submit"}))
		_, hasKey := f["key"]
		same(t, name+" has a key", hasKey, name != "proxy")
		_, ends := f["expiresAt"]
		same(t, name+" ends", ends, name == "session")
	}
	same(t, "rights of a key with scopes", s.send("GET", "/session", "", s.signedInAs(limited)...).fields(t)["rights"], any([]any{"submit"}))
	s.wantSent(401, "GET", "/session", "")
}

func TestSessionsEndWithTheirKey(t *testing.T) {
	root := app.Operator()
	user := func(s *service, disabled bool) error {
		return must.Error2(s.app.Accounts.ChangeUser(t.Context(), root, "lab", "ann@lab.example", access.UserChange{Disabled: &disabled}))
	}
	key := func(s *service, disabled bool) error {
		return must.Error2(s.app.Accounts.DisableKey(t.Context(), root, idOf(s.ann), disabled))
	}
	for name, end := range map[string]func(*service, []string) error{
		"the key is disabled":                   func(s *service, _ []string) error { return key(s, true) },
		"the key was disabled, and works again": func(s *service, _ []string) error { return errors.Join(key(s, true), key(s, false)) },
		"the key is deleted":                    func(s *service, _ []string) error { return s.app.Accounts.DeleteKey(t.Context(), root, idOf(s.ann)) },
		"the key is rotated": func(s *service, _ []string) error {
			return must.Error3(s.app.Accounts.RotateKey(t.Context(), root, idOf(s.ann), 0))
		},
		"the user is disabled":                   func(s *service, _ []string) error { return user(s, true) },
		"the user was disabled, and works again": func(s *service, _ []string) error { return errors.Join(user(s, true), user(s, false)) },
		"the user is deleted": func(s *service, _ []string) error {
			return s.app.Accounts.DeleteUser(t.Context(), root, "lab", "ann@lab.example")
		},
		"signed out": func(s *service, cookie []string) error {
			gone := s.wantSent(204, "DELETE", "/session", "", cookie...).header.Get("Set-Cookie")
			same(t, "signing out", strings.Contains(gone, "Max-Age=0"), true)
			return nil
		},
	} {
		s := start(t)
		byKey := s.signedInAs(s.ann)
		invited, err := s.app.Accounts.Invite(t.Context(), "lab", "ann@lab.example")
		must.OK(t, err)
		_, byLink := s.signIn(`{"token":"` + invited.Token + `"}`)
		for _, cookie := range [][]string{byKey, byLink} {
			s.wantSent(200, "GET", "/jobs", "", cookie...)
		}
		if err := end(s, byKey); err != nil {
			t.Fatal(name, err)
		}
		s.wantSent(401, "GET", "/jobs", "", byKey...)
		want := 200
		if strings.HasPrefix(name, "the user") {
			want = 401
		}
		s.wantSent(want, "GET", "/jobs", "", byLink...)
	}
}

func TestSessionsEndAfterTheirTime(t *testing.T) {
	c := &clock{now: time.Now()}
	s := start(t, func(with *setup) { with.now = c.read })
	brief, _, err := s.app.Accounts.CreateKey(t.Context(), app.Operator(), access.KeyRequest{Organization: "lab", Email: "ann@lab.example", Expires: time.Hour})
	must.OK(t, err)
	used, idle, expiring := s.signedInAs(s.ann), s.signedInAs(s.ann), s.signedInAs(brief)
	f := s.send("GET", "/session", "", expiring...).fields(t)
	same(t, "the end of a session of a key that expires", f["expiresAt"], f["key"].(map[string]any)["expiresAt"])
	answers := func(want int, cookies ...[]string) {
		t.Helper()
		for _, cookie := range cookies {
			s.wantSent(want, "GET", "/jobs", "", cookie...)
		}
		must.OK(t, s.app.Accounts.SaveKeyUses(t.Context()))
	}
	answers(200, used, idle, expiring)
	const step = apikey.SessionIdle / 2
	for left := apikey.SessionLife; left > step; left -= step {
		c.advance(step)
		answers(200, used)
		answers(401, expiring)
	}
	answers(401, idle)
	c.advance(step)
	answers(401, used)
	last := s.signedInAs(s.ann)
	c.advance(apikey.SessionIdle)
	answers(401, last)
	must.OK(t, s.app.Accounts.DeleteExpiredSessions(t.Context()))
	must.OK(t, s.store.View(t.Context(), func(tx app.Tx) error {
		for one := range tx.Sessions("") {
			t.Errorf("%+v is kept", one)
		}
		return nil
	}))
}

func TestSessionsKeepTheNetworksOfTheirKey(t *testing.T) {
	from := "10.0.0.9"
	s := signedIn(t, &from, false)
	key, _, err := s.app.Accounts.CreateKey(t.Context(), app.Operator(), access.KeyRequest{Organization: "lab", Email: "ann@lab.example", Networks: []string{"10.0.0.0/24"}})
	must.OK(t, err)
	cookie := s.signedInAs(key)
	for address, want := range map[string]int{"10.0.0.10": 200, "10.0.1.10": 401} {
		from = address
		s.wantSent(want, "GET", "/jobs", "", cookie...)
	}
	from = "10.0.1.10"
	s.wantSignIn(401, `{"key":"`+key+`"}`)
}

func TestKeyTakesPrecedenceOverProxyAndCookie(t *testing.T) {
	from := proxyAddress
	s := signedIn(t, &from, false)
	cookie := s.signedInAs(s.bob)
	for want, headers := range map[string][]string{
		"bob@lab.example":  cookie,
		"ann@lab.example":  append([]string{"Remote-User", "ann@lab.example"}, cookie...),
		"root@lab.example": append([]string{"Remote-User", "ann@lab.example", "x-api-key", s.root}, cookie...),
	} {
		same(t, "who it is", s.send("GET", "/session", "", headers...).fields(t)["email"], any(want))
	}
	for _, headers := range map[string][]string{
		"a bad key":       append([]string{"x-api-key", "molrun_x"}, cookie...),
		"two cookies":     {"Cookie", cookie[1] + "; " + cookie[1]},
		"another's name":  {"Cookie", strings.Replace(cookie[1], "molrun", "other", 1)},
		"a changed value": {"Cookie", cookie[1][:len(cookie[1])-1] + "0"},
		"no value":        {"Cookie", strings.SplitAfter(cookie[1], "=")[0]},
		"no secret":       {"Cookie", strings.SplitAfter(cookie[1], ".")[0]},
		"a long one":      {"Cookie", strings.SplitAfter(cookie[1], "=")[0] + strings.Repeat("A", 4000) + ".A"},
	} {
		s.wantSent(401, "GET", "/jobs", "", headers...)
	}
	s.wantSignIn(403, `{"key":"`+s.bob+`"}`, "Remote-User", "ann@lab.example")
}

// site is a page from which a browser sends requests, and the status of the response to
// requests that change something.
type site struct {
	name    string
	status  int
	headers []string
}

// sites returns pages as seen by a service at host with the public address
// http://lab.example.
func sites(host string) []site {
	return []site{
		{"no browser", 200, nil},
		{"another site", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		{"a neighbour", 403, []string{"Sec-Fetch-Site", "same-site"}},
		{"this site", 200, []string{"Sec-Fetch-Site", "same-origin"}},
		{"typed by the user", 200, []string{"Sec-Fetch-Site", "none"}},
		{"an old browser, another site", 403, []string{"Origin", "https://evil.example"}},
		{"an old browser, this site", 200, []string{"Origin", "http://" + host}},
		{"the public address", 200, []string{"Origin", "http://lab.example"}},
		{"no origin", 403, []string{"Origin", "null"}},
	}
}

func TestPagesOfOtherSitesChangeNothing(t *testing.T) {
	from := proxyAddress
	s := signedIn(t, &from, false, func(with *setup) { with.options.PublicURL = "http://lab.example/molrun" })
	cookie := s.signedInAs(s.ann)
	for _, from := range sites(strings.TrimPrefix(s.url, "http://")) {
		for _, who := range [][]string{cookie, {"Remote-User", "ann@lab.example"}} {
			headers := slices.Concat(from.headers, who)
			s.wantSent(from.status, "PUT", "/upload/a.txt", "", headers...)
			s.wantSent(200, "GET", "/jobs", "", headers...)
			s.wantSent(200, "PUT", "/upload/a.txt", "", append(headers, "x-api-key", s.ann)...)
		}
		s.wantSignIn(from.status, `{"key":"`+s.ann+`"}`, from.headers...)
	}
}

func TestLinksSignInOnce(t *testing.T) {
	c := &clock{now: time.Now()}
	s := start(t, func(with *setup) { with.now = c.read })
	invite := func(organization, email string) access.Invitation {
		t.Helper()
		made, err := s.app.Accounts.Invite(t.Context(), organization, email)
		must.OK(t, err)
		return made
	}
	made := invite("", "Ann@lab.example")
	a, cookie := s.signIn(`{"token":"` + made.Token + `"}`)
	same(t, "the user", []any{a.status, a.fields(t)["email"], a.fields(t)["role"], a.fields(t)["key"]}, []any{200, "ann@lab.example", "member", nil})
	s.wantSent(200, "POST", "/submit-job", `{"jobName":"a","type":"echo","settings":{}}`, append(cookie, "Content-Type", "application/json")...)
	for _, token := range map[string]string{
		"used": made.Token, "unknown": "AAAA", "empty but for a blank": " ", "a key": s.ann,
	} {
		s.wantSignIn(401, `{"token":"`+token+`"}`)
	}
	late := invite("lab", "root@lab.example")
	c.advance(access.LinkLife)
	s.wantSignIn(401, `{"token":"`+late.Token+`"}`)
	first := invite("lab", "bob@lab.example")
	for range 100 {
		c.advance(time.Millisecond)
		invite("lab", "bob@lab.example")
	}
	s.wantSignIn(401, `{"token":"`+first.Token+`"}`)
	for name, who := range map[string][2]string{"unknown": {"lab", "carl@lab.example"}, "several": {"", ""}, "several of lab": {"lab", "@"}} {
		if _, err := s.app.Accounts.Invite(t.Context(), who[0], who[1]); err == nil {
			t.Errorf("an invitation for %s", name)
		}
	}
	closed := newKey(t, s.app.Accounts, "lab", "closed@lab.example", apikey.Member)
	s.disable(closed)
	_, err := s.app.Accounts.Invite(t.Context(), "lab", "closed@lab.example")
	same(t, "an invitation for a user whose keys are closed", fault.CodeOf(err), fault.Invalid)
	same(t, "the only admin of lab", invite("lab", "").Email, "root@lab.example")
	off := true
	must.OK(t, must.Error2(s.app.Accounts.ChangeUser(t.Context(), app.Operator(), "lab", "bob@lab.example", access.UserChange{Disabled: &off})))
	if _, err := s.app.Accounts.Invite(t.Context(), "lab", "bob@lab.example"); err == nil {
		t.Error("an invitation for a disabled user")
	}
}

func TestTheFirstLinkMakesAnAdmin(t *testing.T) {
	s := start(t)
	s.without("lab")
	s.without("other")
	made, err := s.app.Accounts.Invite(t.Context(), "", "")
	must.OK(t, err)
	users, err := s.app.Accounts.Users(t.Context(), app.Operator())
	if err != nil || len(users) > 0 {
		t.Fatalf("users %v before the link is used: %v", users, err)
	}
	a, cookie := s.signIn(`{"token":"` + made.Token + `"}`)
	same(t, "the first user", []any{a.fields(t)["organization"], a.fields(t)["role"]}, []any{"lab", "admin"})
	key := s.send("POST", "/keys", "{}", append(cookie, "Content-Type", "application/json")...).made(t)
	s.wantAs(key, 200, "GET", "/admin/users", "")
}

func TestRefusedSignInsAreRateLimited(t *testing.T) {
	now := &clock{now: time.Now()}
	s := start(t, func(with *setup) {
		with.from = "192.0.2.1:1"
		with.options.Rates.Failed, with.options.Now = 3, now.read
	})
	statuses := []int{}
	for _, body := range []string{`{"key":"wrong"}`, `{"token":"wrong"}`, `{"key":"wrong"}`, `{"key":"wrong"}`, `{"token":"wrong"}`} {
		a, _ := s.signIn(body)
		statuses = append(statuses, a.status)
	}
	same(t, "answers", statuses, []int{401, 401, 401, 429, 429})
	s.wantSignIn(413, `{"key":"`+strings.Repeat("x", 20<<10)+`"}`)
	for _, body := range []string{`{}`, `{"key":"a","token":"b"}`, `{"key":""}`, `{"key":1}`} {
		s.wantSignIn(422, body)
	}
}

func TestSignInsAreAudited(t *testing.T) {
	log := entries{}
	s := start(t, func(with *setup) { with.options.Audit = log.add })
	cookie := s.signedInAs(s.ann)
	s.send("DELETE", "/session", "", cookie...)
	s.signIn(`{"key":"` + s.bob[:len(s.bob)-9] + "aaaaaaaaa" + `"}`)
	s.disable(s.bob)
	s.signIn(`{"key":"` + s.bob + `"}`)
	var got []audit.Entry
	for _, e := range log.take() {
		e.Time, e.Request = audit.Entry{}.Time, ""
		got = append(got, e)
	}
	same(t, "entries", got, []audit.Entry{
		{Action: "session.begin", Key: idOf(s.ann), Organization: "lab", Result: "ok", Remote: "127.0.0.1"},
		{Action: "session.end", Key: idOf(s.ann), Organization: "lab", Result: "ok", Remote: "127.0.0.1"},
		{Action: "authenticate", Result: "UNAUTHORIZED", Remote: "127.0.0.1"},
		{Action: "authenticate", Key: idOf(s.bob), Result: "UNAUTHORIZED", Remote: "127.0.0.1"},
	})
	if strings.Contains(s.log.String(), strings.Split(cookie[1], ".")[1]) {
		t.Error("the log holds a cookie")
	}
}

func TestAStreamEndsWithItsSession(t *testing.T) {
	s := start(t)
	cookie := s.signedInAs(s.ann)
	f, _ := s.follow("", "/events", cookie...)
	s.send("DELETE", "/session", "", cookie...)
	f.ends()
}

func TestAKeyHasABoundedNumberOfSessions(t *testing.T) {
	s := start(t)
	cookies := [][]string{}
	for range 21 {
		cookies = append(cookies, s.signedInAs(s.ann))
	}
	open := 0
	for _, cookie := range cookies {
		if s.send("GET", "/session", "", cookie...).status == 200 {
			open++
		}
	}
	same(t, "open sessions", open, 20)
}

func TestCookiesFitTheAddress(t *testing.T) {
	for _, tt := range []struct{ public, url, want string }{
		{"", "http://lab:8080/session", "molrun-8080=v; HttpOnly; SameSite=Strict"},
		{"", "http://lab/session", "molrun=v; HttpOnly; SameSite=Strict"},
		{"", "http://[::1]:8080/session", "molrun-8080=v; HttpOnly; SameSite=Strict"},
		{"", "https://lab:8443/session", "__Secure-molrun=v; HttpOnly; Secure; SameSite=Strict"},
		{"https://lab.example", "http://10.0.0.1:8080/session", "__Host-molrun=v; Path=/; HttpOnly; Secure; SameSite=Strict"},
		{"https://lab.example/", "https://lab.example/session", "__Host-molrun=v; Path=/; HttpOnly; Secure; SameSite=Strict"},
		{"https://lab.example/molrun", "http://10.0.0.1:8080/session", "__Secure-molrun=v; HttpOnly; Secure; SameSite=Strict"},
		{"http://lab.example/molrun", "http://lab.example/session", "molrun=v; HttpOnly; SameSite=Strict"},
	} {
		c, w, r := edge.Cookie{PublicURL: tt.public}, httptest.NewRecorder(), httptest.NewRequest("POST", tt.url, nil)
		c.Set(w, r, "v", time.Time{})
		same(t, tt.public+" "+tt.url, w.Header().Get("Set-Cookie"), tt.want)
		r.Header.Set("Cookie", strings.Split(tt.want, ";")[0])
		same(t, "read again", c.Value(r), "v")
		c.Clear(w, r)
		if cleared := w.Header().Values("Set-Cookie")[1]; !strings.HasPrefix(cleared, strings.Split(tt.want, "=")[0]+"=;") || !strings.Contains(cleared, "Max-Age=0") {
			t.Errorf("cleared by %s", cleared)
		}
	}
}

func TestFailuresToSignInOrOut(t *testing.T) {
	s := start(t, func(with *setup) { with.options.MaxBody = 200 })
	cookie := s.signedInAs(s.ann)
	body := `{"key":"` + s.ann + `"}`
	s.wantSent(415, "POST", "/session", body)
	s.wantSignIn(413, `{"key":"`+strings.Repeat("x", 300)+`"}`)
	s.wantSent(403, "DELETE", "/session", "", append(cookie, "Sec-Fetch-Site", "cross-site")...)
	for status, err := range map[int]error{
		500: fault.Errorf(fault.Internal, "the disk says secret-detail"),
		503: fault.Errorf(fault.Unavailable, "The service is stopping; send the request again."),
		507: fault.Errorf(fault.StorageFull, "The disk is full."),
	} {
		s.store.writing.Store(&err)
		a, none := s.signIn(body)
		if a.status != status || none[1] != "" || strings.Contains(a.body, "secret-detail") {
			t.Errorf("signing in: %d %s, want %d; cookie %v", a.status, a.body, status, none)
		}
		if a := s.send("DELETE", "/session", "", cookie...); a.status != status || a.header.Get("Set-Cookie") != "" {
			t.Errorf("signing out: %d %s, want %d", a.status, a.body, status)
		}
	}
	s.store.writing.Store(nil)
	s.wantSent(200, "GET", "/session", "", cookie...)
}

func TestHostileHostsDontShapeCookies(t *testing.T) {
	for _, host := range []string{"lab:1; Path=/x", "lab:80\r\nX: y", "lab:", ":", "[::1", "lab:http", "a:1:2", "lab:１", ""} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/session", nil)
		r.Host = host
		edge.Cookie{}.Set(w, r, "v", time.Time{})
		same(t, host, w.Header().Get("Set-Cookie"), "molrun=v; HttpOnly; SameSite=Strict")
	}
}

func TestSigningInAgainEndsTheFormerSession(t *testing.T) {
	s := start(t)
	former := s.sessionOf(s.ann)
	res := s.send("POST", "/session", fmt.Sprintf(`{"key":%q}`, s.bob), "Content-Type", "application/json", "Cookie", former)
	must.Equal(t, "status of a second sign-in", res.status, 200)
	must.Equal(t, "status with the former cookie", s.send("GET", "/jobs", "", "Cookie", former).status, 401)
	must.Equal(t, "status with the new one", s.send("GET", "/jobs", "", "Cookie", strings.Split(res.header.Get("Set-Cookie"), ";")[0]).status, 200)
}
