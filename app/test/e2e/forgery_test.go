package e2e

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// forger knows the service's secret and builds tokens by hand from the texts of
// their parts.
type forger struct {
	t       *testing.T
	base    string
	storeID string
	kid     string
	master  []byte
	path    string // of a working link: /blobs/<id>/<name>
	token   string // of that link
	header  string // texts of the token's parts
	payload string
}

func newForger(t *testing.T, s *instance, link string) *forger {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.data(), "secret"))
	must.OK(t, err)
	var secret struct {
		StoreID string
		Keys    []struct {
			KID string
			Key []byte
		}
	}
	must.OK(t, json.Unmarshal(text, &secret))
	f := &forger{t: t, base: s.base, storeID: secret.StoreID, kid: secret.Keys[0].KID, master: secret.Keys[0].Key}
	f.path, f.token, _ = strings.Cut(strings.TrimPrefix(link, s.base), "?token=")
	parts := strings.Split(f.token, ".")
	f.header, f.payload = unbase64(t, parts[0]), unbase64(t, parts[1])
	return f
}

func unbase64(t *testing.T, text string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	must.OK(t, err)
	return string(b)
}

func base64URL(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// key derives the key for a purpose like the service.
func (f *forger) key(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, f.master, []byte(f.storeID), purpose, 32)
	must.OK(f.t, err)
	return key
}

// sign makes a token from the texts of its header and payload.
func (f *forger) sign(header, payload string, sign func(text string) []byte) string {
	text := base64URL([]byte(header)) + "." + base64URL([]byte(payload))
	return text + "." + base64URL(sign(text))
}

func (f *forger) hmac(h func() hash.Hash, key []byte) func(string) []byte {
	return func(text string) []byte {
		mac := hmac.New(h, key)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
}

// signed makes a token with a valid signature.
func (f *forger) signed(header, payload string) string {
	return f.sign(header, payload, f.hmac(sha256.New, f.key("blob-get")))
}

// with changes a member of a JSON object, or removes it if value is "". It keeps the
// order of the members, so that the change is the only difference.
func (f *forger) with(object, member, value string) string {
	f.t.Helper()
	var members map[string]json.RawMessage
	must.OK(f.t, json.Unmarshal([]byte(object), &members))
	old, there := members[member]
	switch {
	case !there:
		return strings.TrimSuffix(object, "}") + fmt.Sprintf(`,%q:%s}`, member, value)
	case value == "":
		text := fmt.Sprintf("%q:%s", member, old)
		if strings.Contains(object, text+",") {
			return strings.Replace(object, text+",", "", 1)
		}
		return strings.Replace(object, ","+text, "", 1)
	}
	changed := strings.Replace(object, fmt.Sprintf("%q:%s", member, old), fmt.Sprintf("%q:%s", member, value), 1)
	if changed == object {
		f.t.Fatalf("%s of %s did not change", member, object)
	}
	return changed
}

func (f *forger) claim(member, value string) string {
	return f.signed(f.header, f.with(f.payload, member, value))
}

func (f *forger) head(member, value string) string {
	return f.signed(f.with(f.header, member, value), f.payload)
}

// attempt is a request that must be refused.
type attempt struct {
	name, method, path, query string
	header                    http.Header
	body                      string
}

func (f *forger) do(a attempt) (status int, body string) {
	f.t.Helper()
	u, err := url.Parse(f.base)
	must.OK(f.t, err)
	u.Opaque, u.RawQuery = "//"+u.Host+a.path, a.query
	if a.header == nil {
		a.header = http.Header{}
	}
	r := (&http.Request{Method: a.method, URL: u, Header: a.header, Host: u.Host}).WithContext(f.t.Context())
	if a.body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(a.body)), int64(len(a.body))
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	must.OK(f.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.OK(f.t, err)
	return response.StatusCode, string(text)
}

// tokens returns forged tokens by name, all meant for the link that works. Package link
// has those of each claim.
func (f *forger) tokens() map[string]string {
	none := func(string) []byte { return nil }
	own := []byte("0123456789abcdef0123456789abcdef")
	oct := fmt.Sprintf(`{"kty":"oct","k":%q}`, base64URL(own))
	parts := strings.Split(f.token, ".")
	return map[string]string{
		"algorithm None":                   f.sign(f.with(f.header, "alg", `"None"`), f.payload, none),
		"algorithm nOnE with a signature":  f.signed(f.with(f.header, "alg", `"nOnE"`), f.payload),
		"algorithm HS384":                  f.sign(f.with(f.header, "alg", `"HS384"`), f.payload, f.hmac(sha512.New384, f.key("blob-get"))),
		"key of the forger":                f.sign(f.header, f.payload, f.hmac(sha256.New, own)),
		"key of the ring itself":           f.sign(f.header, f.payload, f.hmac(sha256.New, f.master)),
		"key of uploads":                   f.sign(f.header, f.payload, f.hmac(sha256.New, f.key("blob-put"))),
		"key of cursors":                   f.sign(f.header, f.payload, f.hmac(sha256.New, f.key("cursors"))),
		"kid a device":                     f.head("kid", `"/dev/null"`),
		"header jwk with its signature":    f.sign(f.with(f.header, "jwk", oct), f.payload, f.hmac(sha256.New, own)),
		"header jku":                       f.head("jku", `"https://attacker.example/keys"`),
		"header crit":                      f.head("crit", `["exp"]`),
		"header b64 and crit":              f.signed(f.with(f.with(f.header, "b64", "false"), "crit", `["b64"]`), f.payload),
		"header of another type":           f.head("typ", `"at+jwt"`),
		"header with alg twice":            f.signed(`{"alg":"none",`+f.header[1:], f.payload),
		"header with spaces":               f.signed(strings.Replace(f.header, ":", ": ", 1), f.payload),
		"audience twice":                   f.claim("aud", `["blob-get","blob-get"]`),
		"expiry a text":                    f.claim("exp", `"99999999999"`),
		"expiry at the end of time":        f.claim("exp", "9223372036854775807"),
		"subject a path":                   f.claim("sub", `"../secret"`),
		"method any":                       f.claim("m", `"*"`),
		"kind unknown":                     f.claim("k", `"everything"`),
		"claim unknown":                    f.claim("admin", `true`),
		"claim twice":                      f.signed(f.header, `{"sub":"00000000010000000000000000",`+f.payload[1:]),
		"claim in upper case":              f.signed(f.header, strings.Replace(f.payload, `"sub"`, `"SUB"`, 1)),
		"claims and another document":      f.signed(f.header, f.payload+"{}"),
		"claims not UTF-8":                 f.signed(f.header, strings.Replace(f.payload, "GET", "G\xffT", 1)),
		"signature in the other alphabet":  parts[0] + "." + parts[1] + "." + base64.StdEncoding.EncodeToString(f.hmac(sha256.New, f.key("blob-get"))(parts[0]+"."+parts[1])),
		"parts too many":                   f.token + "." + parts[2],
		"token with a space before":        "%20" + f.token,
		"token with a NUL":                 f.token + "%00",
		"token with a letter like another": strings.Replace(f.token, "e", "%D0%B5", 1),
		"token percent-encoded":            "%65" + f.token[1:],
		"token's dots percent-encoded":     strings.ReplaceAll(f.token, ".", "%2E"),
		"token behind Bearer":              "Bearer%20" + f.token,
	}
}

// attempts returns other misuses of the valid token.
func (f *forger) attempts(put, other string) []attempt {
	id := strings.Split(f.path, "/")[2]
	good := "token=" + f.token
	putPath, putQuery, _ := strings.Cut(put, "?")
	_, otherQuery, _ := strings.Cut(other, "?")
	header := func(name, value string) http.Header { return http.Header{name: {value}} }
	get := func(name, path, query string) attempt {
		return attempt{name: name, method: "GET", path: path, query: query}
	}
	return []attempt{
		get("token of another file", f.path, otherQuery),
		get("upload's token for a download", f.path, putQuery),
		get("upload link by GET", putPath, putQuery),
		{name: "upload link by GET with a method override", method: "GET", path: putPath, query: putQuery, header: header("X-Http-Method-Override", "PUT")},
		{name: "download link by PUT", method: "PUT", path: f.path, query: good, body: "text"},
		{name: "download link by PUT with a method override", method: "PUT", path: f.path, query: good, body: "text", header: header("X-Http-Method-Override", "GET")},
		{name: "upload link with another type", method: "PUT", path: putPath, query: putQuery, body: "text", header: header("Content-Type", "text/html")},
		get("token and an empty one", f.path, good+"&token="),
		get("an empty token and the token", f.path, "token=&"+good),
		get("another parameter and the token", f.path, "x=1&"+good),
		get("token behind a semicolon", f.path, "x=1;"+good),
		get("token as a list", f.path, "token[]="+f.token),
		get("parameter in upper case", f.path, "TOKEN="+f.token),
		get("parameter percent-encoded", f.path, "%74oken="+f.token),
		get("token in the fragment", f.path, "%23"+good),
		get("token in the path", f.path+";"+good, ""),
		{name: "token in a header", method: "GET", path: f.path, header: header("Authorization", "Bearer "+f.token)},
		{name: "token in x-api-key", method: "GET", path: f.path, header: header("X-Api-Key", f.token)},
		{name: "token in a cookie", method: "GET", path: f.path, header: header("Cookie", "token="+f.token)},
		{name: "token in the body", method: "GET", path: f.path, body: good, header: header("Content-Type", "application/x-www-form-urlencoded")},
		{name: "path in a header", method: "GET", path: "/blobs/" + id + "/other.txt", query: good, header: header("X-Original-Url", f.path)},
		get("trailing slash", f.path+"/", good),
		get("double slash", "/blobs//"+id+"/a.txt", good),
		get("double slash before the name", "/blobs/"+id+"//a.txt", good),
		get("no name and no slash", "/blobs/"+id, good),
		get("another name", "/blobs/"+id+"/other.txt", good),
		get("name in upper case", "/blobs/"+id+"/A.TXT", good),
		get("name percent-encoded twice", "/blobs/"+id+"/a%252Etxt", good),
		get("name with a NUL", "/blobs/"+id+"/a.txt%00", good),
		get("name with dots", "/blobs/"+id+"/..", good),
		get("name with encoded dots", "/blobs/"+id+"/%2e%2e%2fsecret", good),
		get("path with dots", "/blobs/../blobs/"+id+"/a.txt", good),
		get("path with encoded dots", "/blobs/%2e%2e/"+id+"/a.txt", good),
		get("path with a single dot", "/blobs/./"+id+"/a.txt", good),
		get("path to the secret", "/blobs/../secret", good),
		get("id in lower case", "/blobs/"+strings.ToLower(id)+"/a.txt", good),
		get("id percent-encoded", "/blobs/%"+fmt.Sprintf("%X", id[0])+id[1:]+"/a.txt", good),
		get("truncated id", "/blobs/"+id[:25]+"/a.txt", good),
		get("id with a homoglyph", "/blobs/%D0%9E"+id[1:]+"/a.txt", good),
	}
}

// TestForgedLinksGetTheSameResponse tries forged tokens, even some signed with the
// right key, and misuses of valid links.
func TestForgedLinksGetTheSameResponse(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	var links [2]struct{ FileID, UploadURL, DownloadURL string }
	for i := range links {
		u.do("PUT", "/upload/a.txt", nil).want(200).into(&links[i])
		u.do("PUT", links[i].UploadURL, strings.NewReader("text")).want(200)
	}
	f := newForger(t, s, links[0].DownloadURL)
	if status, body := f.do(attempt{method: "GET", path: f.path, query: "token=" + f.signed(f.header, f.payload)}); status != 200 || body != "text" {
		t.Fatalf("a correctly forged link is refused, so the test proves nothing: %d %s", status, body)
	}
	attempts := f.attempts(strings.TrimPrefix(links[0].UploadURL, s.base), links[1].DownloadURL)
	for name, token := range f.tokens() {
		attempts = append(attempts, attempt{name: name, method: "GET", path: f.path, query: "token=" + token})
	}
	const want = `{"error":{"code":"LINK_INVALID","message":"This link does not allow the request; use it unchanged and with its own method, or ask for a new one."}}` + "\n"
	const wantType = `{"error":{"code":"LINK_INVALID","message":"This link takes the Content-Type text/plain, not text/html; send that or none."}}` + "\n"
	for _, a := range attempts {
		status, body := f.do(a)
		if a.name == "upload link with another type" && body == wantType {
			body = want
		}
		if status != 403 || body != want {
			t.Errorf("%s: %d %s\n%s %s?%s", a.name, status, body, a.method, a.path, a.query)
		}
	}
	t.Logf("tried %d forgeries", len(attempts))
}
