package link

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/app/test/must"
)

var someID = sortid.ID{0: 1, 14: 0xfe, 15: 0xdc}.String()

// clock is a wall clock that changes only when moved.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 20, 10, 40, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) move(d time.Duration) { c.now = c.now.Add(d) }

func newSigner(t testing.TB) (*Signer, *clock) {
	t.Helper()
	c := newClock()
	return NewSigner(t.TempDir(), newSecret(), c.Now), c
}

func request(t testing.TB, method, target string) *http.Request {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	must.OK(t, err)
	return &http.Request{Method: method, URL: u}
}

// getLink signs a download link for an upload.
func getLink(s *Signer, life time.Duration) string {
	return s.Sign(app.Link{Kind: app.UploadGet, ID: someID, Filename: "a", Expires: s.now().Add(life)})
}

// verify checks the error for a request; want is "" if there should be none.
func verify(t testing.TB, s *Signer, when, method, target string, want fault.Code) app.Link {
	t.Helper()
	got, err := s.Verify(request(t, method, target))
	if want == "" && err != nil || want != "" && !errors.Is(err, want) {
		t.Errorf("%s, %s: error %v, want %q", when, method, err, want)
	}
	return got
}

func TestLinkAllowsOnlyItsVerb(t *testing.T) {
	s, c := newSigner(t)
	for _, kind := range []app.LinkKind{app.UploadPut, app.UploadGet, app.ResultGet, app.ArchiveGet, app.PartArchive} {
		want := app.Link{Kind: kind, ID: someID, File: 3, Filename: "β%?.pdb", ContentType: "text/plain", Expires: c.Now().Add(time.Hour)}
		signed := want
		signed.Filename = "α 1/β%?.pdb"
		link := s.Sign(signed)
		allowed := []string{"GET", "HEAD"}
		if kind == app.UploadPut {
			allowed = []string{"HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"}
		}
		verify(t, s, "link of kind "+string(kind)+" to another ID", allowed[1], strings.Replace(link, someID, sortid.ID{0: 1}.String(), 1), fault.LinkInvalid)
		for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "POST"} {
			if !slices.Contains(allowed, method) {
				refusal := fault.LinkInvalid
				if kind != app.UploadPut && slices.Contains([]string{"PATCH", "DELETE", "OPTIONS"}, method) {
					refusal = fault.MethodNotAllowed
				}
				verify(t, s, "link of kind "+string(kind), method, link, refusal)
				continue
			}
			got := verify(t, s, "link of kind "+string(kind), method, link, "")
			must.Equal(t, method, got, want)
		}
	}
}

func TestLinkPathNamesTheFile(t *testing.T) {
	s, _ := newSigner(t)
	tests := []struct{ filename, want string }{
		{"a b.pdb", "a%20b.pdb"},
		{"x/y.cif", "y.cif"},
		{"", "download"},
		{"..", "download"},
		{"50%?.csv", "50%25%3F.csv"},
	}
	for _, tt := range tests {
		link := s.Sign(app.Link{Kind: app.UploadGet, ID: someID, Filename: tt.filename, Expires: s.now().Add(time.Hour)})
		if want := "/blobs/" + someID + "/" + tt.want + "?token="; !strings.HasPrefix(link, want) {
			t.Errorf("link to %q is %q, want it to begin with %q", tt.filename, link, want)
		}
	}
}

func TestLinkExpires(t *testing.T) {
	s, c := newSigner(t)
	link := getLink(s, time.Hour)
	c.move(time.Hour + leeway - time.Second)
	verify(t, s, "within the leeway", "GET", link, "")
	c.move(time.Second)
	verify(t, s, "after its time", "GET", link, fault.LinkExpired)
	c.move(-2 * time.Hour)
	verify(t, s, "before it was signed", "GET", link, fault.LinkInvalid)
}

func TestLinkLivesAtMostAWeek(t *testing.T) {
	s, c := newSigner(t)
	link := getLink(s, 30*24*time.Hour)
	verify(t, s, "link for a month", "GET", link, "")
	c.move(MaxLifetime + leeway)
	verify(t, s, "after a week", "GET", link, fault.LinkExpired)
}

func TestLinkWorksUntilItsKeyIsGone(t *testing.T) {
	c := newClock()
	secret := newSecret()
	link := getLink(NewSigner("", secret, c.Now), time.Hour)
	newer := newSecret().Keys[0]
	newer.CreatedAt = secret.Keys[0].CreatedAt.Add(time.Hour)
	rotated := &Secret{StoreID: secret.StoreID, Keys: append(slices.Clone(secret.Keys), newer)}
	verify(t, NewSigner("", rotated, c.Now), "after a new key", "GET", link, "")
	rotated.Keys = rotated.Keys[1:]
	verify(t, NewSigner("", rotated, c.Now), "after its key is gone", "GET", link, fault.LinkInvalid)
}

func TestLongestNameFitsInAToken(t *testing.T) {
	s, c := newSigner(t)
	for _, filename := range []string{
		strings.Repeat("𝛼", 200) + ".zip",
		strings.Repeat("<", 816) + ".zip",
		strings.Repeat("x", 5000) + ".zip",
	} {
		link := s.Sign(app.Link{
			Kind: app.PartArchive, ID: someID, File: 1 << 40, Filename: filename,
			ContentType: "application/x-a-rather-long-type", Expires: c.Now().Add(time.Hour),
		})
		got := verify(t, s, fmt.Sprintf("name of %d bytes", len(filename)), "GET", link, "").Filename
		if !strings.HasSuffix(filename, got) || !strings.HasSuffix(got, ".zip") || len(filename) <= maxTokenName && got != filename {
			t.Errorf("name %.20q… became %.20q…", filename, got)
		}
	}
}

// TestForgedLinkIsRefused signs claims with the service's key that the service never
// signs, and modifies links that it signed.
func TestForgedLinkIsRefused(t *testing.T) {
	s, c := newSigner(t)
	good := getLink(s, time.Hour)
	path, token, _ := strings.Cut(good, "?token=")
	other := sortid.ID{0: 1, 14: 0xfe, 15: 0xdd}.String()
	ring := s.ring.Load()

	type change func(*claims, *jwt.Token)
	forge := func(method jwt.SigningMethod, key any, f change) string {
		cl := &claims{
			RegisteredClaims: jwt.RegisteredClaims{
				Issuer: ring.issuer, Audience: jwt.ClaimStrings{audienceGet}, Subject: someID,
				ExpiresAt: jwt.NewNumericDate(c.Now().Add(time.Hour)), IssuedAt: jwt.NewNumericDate(c.Now()), ID: "id",
			},
			Method: "GET", Kind: app.UploadGet, Filename: []byte("a"),
		}
		tok := jwt.NewWithClaims(method, cl)
		tok.Header["kid"] = ring.kid
		f(cl, tok)
		text, err := tok.SignedString(key)
		must.OK(t, err)
		return path + "?token=" + text
	}
	signed := func(f change) string { return forge(jwt.SigningMethodHS256, ring.get.keys[ring.kid], f) }
	verify(t, s, "the forgeries' unchanged pattern", "GET", signed(func(*claims, *jwt.Token) {}), "")

	last := token[len(token)-1]
	sibling := "AEIMQUYcgkosw048"[(strings.IndexByte("AEIMQUYcgkosw048", last)+1)%16]
	tests := map[string]string{
		"other id":             strings.Replace(good, someID, other, 1),
		"no id":                "/blobs/?token=" + token,
		"no name":              "/blobs/" + someID + "/?token=" + token,
		"two names":            path + "/b?token=" + token,
		"other prefix":         "/blob/" + someID + "/a?token=" + token,
		"id in lower case":     strings.Replace(good, someID, strings.ToLower(someID), 1),
		"no token":             path,
		"empty token":          path + "?token=",
		"two tokens":           good + "&token=" + token,
		"another parameter":    good + "&x=1",
		"semicolon":            good + ";x=1",
		"signature altered":    good[:len(good)-1] + string(sibling),
		"signature padded":     good + "=",
		"last bits altered":    good[:len(good)-1] + string(last+1),
		"no signature":         good[:strings.LastIndexByte(good, '.')+1],
		"too long":             path + "?token=" + strings.Repeat("a", maxToken+1),
		"many dots":            path + "?token=" + strings.Repeat(".", maxToken),
		"not signed":           forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, func(*claims, *jwt.Token) {}),
		"HS512":                forge(jwt.SigningMethodHS512, ring.get.keys[ring.kid], func(*claims, *jwt.Token) {}),
		"empty key":            forge(jwt.SigningMethodHS256, []byte{}, func(*claims, *jwt.Token) {}),
		"unknown kid":          signed(func(_ *claims, t *jwt.Token) { t.Header["kid"] = "../secret" }),
		"no kid":               signed(func(_ *claims, t *jwt.Token) { delete(t.Header, "kid") }),
		"kid is not text":      signed(func(_ *claims, t *jwt.Token) { t.Header["kid"] = []int{1} }),
		"issued in the future": signed(func(cl *claims, _ *jwt.Token) { cl.IssuedAt = jwt.NewNumericDate(c.Now().Add(time.Minute)) }),
		"other store":          signed(func(c *claims, _ *jwt.Token) { c.Issuer = "another" }),
		"other store, expired": signed(func(cl *claims, _ *jwt.Token) {
			cl.Issuer, cl.IssuedAt, cl.ExpiresAt = "another", jwt.NewNumericDate(c.Now().Add(-time.Hour)), jwt.NewNumericDate(c.Now().Add(-time.Minute))
		}),
		"other audience":         signed(func(c *claims, _ *jwt.Token) { c.Audience = jwt.ClaimStrings{audiencePut} }),
		"other method":           signed(func(c *claims, _ *jwt.Token) { c.Method = "PUT" }),
		"kind of the other verb": signed(func(c *claims, _ *jwt.Token) { c.Kind = app.UploadPut }),
		"subject of another id":  signed(func(c *claims, _ *jwt.Token) { c.Subject = other }),
	}
	for name, target := range tests {
		verify(t, s, name, "GET", target, fault.LinkInvalid)
	}
}

func FuzzLink(f *testing.F) {
	s, c := newSigner(f)
	good := s.Sign(app.Link{Kind: app.ResultGet, ID: someID, Filename: "a.pdb", Expires: c.Now().Add(time.Hour)})
	path, token, _ := strings.Cut(good, "?token=")
	f.Add("GET", path, "token="+token)
	f.Add("HEAD", "/blobs/"+someID+"/x", "token="+token)
	f.Add("PUT", "/blobs/%2e%2e/x", "token=a.b.c&token=")
	f.Fuzz(func(t *testing.T, method, path, query string) {
		u := &url.URL{Path: path, RawQuery: query}
		got, err := s.Verify(&http.Request{Method: method, URL: u})
		if err != nil {
			if !errors.Is(err, fault.LinkInvalid) {
				t.Errorf("error %v without LINK_INVALID", err)
			}
			return
		}
		values, _ := url.ParseQuery(query)
		if values.Get("token") != token || !strings.HasPrefix(path, Prefix+someID+"/") || got.ID != someID ||
			method != "GET" && method != "HEAD" {
			t.Errorf("accepted %s %q ? %q", method, path, query)
		}
	})
}
