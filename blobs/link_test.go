package blobs

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"molrun/app"
	"molrun/app/fault"
)

var someID = app.IDBytes{0: 1, 14: 0xfe, 15: 0xdc}.String()

func testLinks(t testing.TB) (*links, *clock) {
	t.Helper()
	c := newClock()
	return newLinks(newSecret(), c.Now), c
}

func request(t testing.TB, method, target string) *http.Request {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Request{Method: method, URL: u}
}

func TestLinkAllowsItsVerbOnly(t *testing.T) {
	l, c := testLinks(t)
	for _, kind := range []app.LinkKind{app.UploadPut, app.UploadGet, app.ResultGet, app.ArchiveGet, app.PartArchive} {
		link := l.sign(app.Link{
			Kind: kind, ID: someID, File: 3, Filename: "α 1/β%?.pdb", ContentType: "text/plain", Expires: c.Now().Add(time.Hour),
		})
		for _, method := range []string{"GET", "HEAD", "PUT"} {
			got, err := l.verify(request(t, method, link))
			if (method == "PUT") != (kind == app.UploadPut) {
				if !errors.Is(err, fault.LinkInvalid) {
					t.Errorf("%s with a link of kind %s: error %v, want LINK_INVALID", method, kind, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s with a link of kind %s: %v", method, kind, err)
				continue
			}
			if got.Kind != kind || got.Subject != someID || got.File != 3 || string(got.Filename) != "β%?.pdb" ||
				got.ContentType != "text/plain" {
				t.Errorf("claims %+v", got)
			}
		}
	}
}

func TestLinkPathNamesTheFile(t *testing.T) {
	l, c := testLinks(t)
	tests := []struct{ filename, want string }{
		{"a b.pdb", "a%20b.pdb"},
		{"x/y.cif", "y.cif"},
		{"", "download"},
		{"..", "download"},
		{"50%?.csv", "50%25%3F.csv"},
	}
	for _, tt := range tests {
		link := l.sign(app.Link{Kind: app.UploadGet, ID: someID, Filename: tt.filename, Expires: c.Now().Add(time.Hour)})
		if want := "/blobs/" + someID + "/" + tt.want + "?token="; !strings.HasPrefix(link, want) {
			t.Errorf("link to %q is %q, want it to begin with %q", tt.filename, link, want)
		}
	}
}

func TestLinkExpires(t *testing.T) {
	l, c := testLinks(t)
	link := l.sign(app.Link{Kind: app.UploadGet, ID: someID, Filename: "a", Expires: c.Now().Add(time.Hour)})
	c.move(time.Hour + leeway - time.Second)
	if _, err := l.verify(request(t, "GET", link)); err != nil {
		t.Errorf("within the leeway: %v", err)
	}
	c.move(time.Second)
	if _, err := l.verify(request(t, "GET", link)); !errors.Is(err, fault.LinkExpired) {
		t.Errorf("after its time: error %v, want LINK_EXPIRED", err)
	}
	c.move(-2 * time.Hour)
	if _, err := l.verify(request(t, "GET", link)); !errors.Is(err, fault.LinkInvalid) {
		t.Errorf("before it was made: error %v, want LINK_INVALID", err)
	}
}

func TestLinkLivesAWeekAtMost(t *testing.T) {
	l, c := testLinks(t)
	link := l.sign(app.Link{Kind: app.UploadPut, ID: someID, Filename: "a", Expires: c.Now().Add(30 * 24 * time.Hour)})
	if _, err := l.verify(request(t, "PUT", link)); err != nil {
		t.Errorf("a link for a month does not work for a week: %v", err)
	}
	c.move(MaxLinkLife + leeway)
	if _, err := l.verify(request(t, "PUT", link)); !errors.Is(err, fault.LinkExpired) {
		t.Errorf("after a week: error %v, want LINK_EXPIRED", err)
	}
}

func TestLinkOfOlderKeyStillWorks(t *testing.T) {
	c := newClock()
	secret := newSecret()
	link := newLinks(secret, c.Now).sign(app.Link{Kind: app.UploadGet, ID: someID, Filename: "a", Expires: c.Now().Add(time.Hour)})
	newer := newSecret().Keys[0]
	newer.CreatedAt = secret.Keys[0].CreatedAt.Add(time.Hour)
	rotated := &Secret{StoreID: secret.StoreID, Keys: append(slices.Clone(secret.Keys), newer)}
	if _, err := newLinks(rotated, c.Now).verify(request(t, "GET", link)); err != nil {
		t.Errorf("after a new key: %v", err)
	}
	rotated.Keys = rotated.Keys[1:]
	if _, err := newLinks(rotated, c.Now).verify(request(t, "GET", link)); !errors.Is(err, fault.LinkInvalid) {
		t.Errorf("after its key is gone: error %v, want LINK_INVALID", err)
	}
}

func TestLongestNameFitsInAToken(t *testing.T) {
	l, c := testLinks(t)
	for _, filename := range []string{
		strings.Repeat("𝛼", 200) + ".zip",
		strings.Repeat("<", 816) + ".zip",
		strings.Repeat("x", 5000) + ".zip",
	} {
		link := l.sign(app.Link{
			Kind: app.PartArchive, ID: someID, File: 1 << 40, Filename: filename,
			ContentType: "application/x-a-rather-long-type", Expires: c.Now().Add(time.Hour),
		})
		got, err := l.verify(request(t, "GET", link))
		if err != nil {
			t.Errorf("name of %d bytes: %v", len(filename), err)
			continue
		}
		if !strings.HasSuffix(filename, string(got.Filename)) || !strings.HasSuffix(string(got.Filename), ".zip") {
			t.Errorf("name %.20q… became %.20q…", filename, got.Filename)
		}
	}
}

// TestForgedLinkIsRefused signs with the right key what the service would
// never sign, and changes what it did sign.
func TestForgedLinkIsRefused(t *testing.T) {
	l, c := testLinks(t)
	good := l.sign(app.Link{Kind: app.UploadGet, ID: someID, Filename: "a", Expires: c.Now().Add(time.Hour)})
	path, token, _ := strings.Cut(good, "?token=")
	other := app.IDBytes{0: 1, 14: 0xfe, 15: 0xdd}.String()

	type change func(*claims, *jwt.Token)
	forge := func(method jwt.SigningMethod, key any, f change) string {
		cl := &claims{
			RegisteredClaims: jwt.RegisteredClaims{
				Issuer: l.issuer, Audience: jwt.ClaimStrings{audienceGet}, Subject: someID,
				ExpiresAt: jwt.NewNumericDate(c.Now().Add(time.Hour)), IssuedAt: jwt.NewNumericDate(c.Now()), ID: "id",
			},
			Method: "GET", Kind: app.UploadGet, Filename: []byte("a"),
		}
		tok := jwt.NewWithClaims(method, cl)
		tok.Header["kid"] = l.kid
		f(cl, tok)
		s, err := tok.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return path + "?token=" + s
	}
	signed := func(f change) string { return forge(jwt.SigningMethodHS256, l.get.keys[l.kid], f) }
	if _, err := l.verify(request(t, "GET", signed(func(*claims, *jwt.Token) {}))); err != nil {
		t.Fatalf("the forger's pattern is not accepted itself: %v", err)
	}

	last := token[len(token)-1]
	sibling := "AEIMQUYcgkosw048"[(strings.IndexByte("AEIMQUYcgkosw048", last)+1)%16]
	tests := map[string]string{
		"other id":           strings.Replace(good, someID, other, 1),
		"no id":              "/blobs/?token=" + token,
		"no name":            "/blobs/" + someID + "/?token=" + token,
		"two names":          path + "/b?token=" + token,
		"other prefix":       "/blob/" + someID + "/a?token=" + token,
		"id in lower case":   strings.Replace(good, someID, strings.ToLower(someID), 1),
		"no token":           path,
		"empty token":        path + "?token=",
		"two tokens":         good + "&token=" + token,
		"another parameter":  good + "&x=1",
		"semicolon":          good + ";x=1",
		"signature altered":  good[:len(good)-1] + string(sibling),
		"signature padded":   good + "=",
		"last bits altered":  good[:len(good)-1] + string(last+1),
		"signature gone":     good[:strings.LastIndexByte(good, '.')+1],
		"too long":           path + "?token=" + strings.Repeat("a", maxToken+1),
		"many dots":          path + "?token=" + strings.Repeat(".", maxToken),
		"not signed":         forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, func(*claims, *jwt.Token) {}),
		"HS512":              forge(jwt.SigningMethodHS512, l.get.keys[l.kid], func(*claims, *jwt.Token) {}),
		"empty key":          forge(jwt.SigningMethodHS256, []byte{}, func(*claims, *jwt.Token) {}),
		"unknown kid":        signed(func(_ *claims, t *jwt.Token) { t.Header["kid"] = "../secret" }),
		"no kid":             signed(func(_ *claims, t *jwt.Token) { delete(t.Header, "kid") }),
		"kid is no text":     signed(func(_ *claims, t *jwt.Token) { t.Header["kid"] = []int{1} }),
		"no end":             signed(func(c *claims, _ *jwt.Token) { c.ExpiresAt = nil }),
		"no beginning":       signed(func(c *claims, _ *jwt.Token) { c.IssuedAt = nil }),
		"made in the future": signed(func(cl *claims, _ *jwt.Token) { cl.IssuedAt = jwt.NewNumericDate(c.Now().Add(time.Minute)) }),
		"lives too long": signed(func(cl *claims, _ *jwt.Token) {
			cl.ExpiresAt = jwt.NewNumericDate(c.Now().Add(MaxLinkLife + 2*time.Second))
		}),
		"other store":           signed(func(c *claims, _ *jwt.Token) { c.Issuer = "another" }),
		"other audience":        signed(func(c *claims, _ *jwt.Token) { c.Audience = jwt.ClaimStrings{audiencePut} }),
		"other method":          signed(func(c *claims, _ *jwt.Token) { c.Method = "PUT" }),
		"kind of another verb":  signed(func(c *claims, _ *jwt.Token) { c.Kind = app.UploadPut }),
		"subject of another id": signed(func(c *claims, _ *jwt.Token) { c.Subject = other }),
	}
	for name, target := range tests {
		if _, err := l.verify(request(t, "GET", target)); !errors.Is(err, fault.LinkInvalid) {
			t.Errorf("%s: error %v, want LINK_INVALID", name, err)
		}
	}
}

func FuzzLink(f *testing.F) {
	l, c := testLinks(f)
	good := l.sign(app.Link{Kind: app.ResultGet, ID: someID, Filename: "a.pdb", Expires: c.Now().Add(time.Hour)})
	path, token, _ := strings.Cut(good, "?token=")
	f.Add("GET", path, "token="+token)
	f.Add("HEAD", "/blobs/"+someID+"/x", "token="+token)
	f.Add("PUT", "/blobs/%2e%2e/x", "token=a.b.c&token=")
	f.Fuzz(func(t *testing.T, method, path, query string) {
		u := &url.URL{Path: path, RawQuery: query}
		got, err := l.verify(&http.Request{Method: method, URL: u})
		if err != nil {
			if !errors.Is(err, fault.LinkInvalid) {
				t.Errorf("error %v without LINK_INVALID", err)
			}
			return
		}
		values, _ := url.ParseQuery(query)
		if values.Get("token") != token || !strings.HasPrefix(path, Prefix+someID+"/") || got.Subject != someID ||
			method != "GET" && method != "HEAD" {
			t.Errorf("accepted %s %q ? %q", method, path, query)
		}
	})
}

func BenchmarkLink(b *testing.B) {
	l, c := testLinks(b)
	link := app.Link{Kind: app.ResultGet, ID: someID, Filename: "trajectory.xtc", Expires: c.Now().Add(time.Hour)}
	r := request(b, "GET", l.sign(link))
	b.Run("sign", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.sign(link)
		}
	})
	b.Run("verify", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := l.verify(r); err != nil {
				b.Fatal(err)
			}
		}
	})
}
