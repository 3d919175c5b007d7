package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// forger misuses the token of a valid link.
type forger struct {
	t     *testing.T
	base  string
	path  string // path of the link: /blobs/<id>/<name>
	token string
}

// attempt is a request that must be rejected.
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

// attempts returns requests that misuse the token. Forged tokens are tested in package
// link.
func (f *forger) attempts(put string) []attempt {
	id := strings.Split(f.path, "/")[2]
	good := "token=" + f.token
	putPath, putQuery, _ := strings.Cut(put, "?")
	header := func(name, value string) http.Header { return http.Header{name: {value}} }
	get := func(name, path, query string) attempt {
		return attempt{name: name, method: "GET", path: path, query: query}
	}
	return []attempt{
		get("upload's token for a download", f.path, putQuery),
		get("upload link by GET", putPath, putQuery),
		{name: "upload link by GET with a method override", method: "GET", path: putPath, query: putQuery, header: header("X-Http-Method-Override", "PUT")},
		{name: "download link by PUT", method: "PUT", path: f.path, query: good, body: "text"},
		{name: "download link by PUT with a method override", method: "PUT", path: f.path, query: good, body: "text", header: header("X-Http-Method-Override", "GET")},
		{name: "upload link with another type", method: "PUT", path: putPath, query: putQuery, body: "text", header: header("Content-Type", "text/html")},
		get("token and an empty one", f.path, good+"&token="),
		get("an empty token and the token", f.path, "token=&"+good),
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
		get("id percent-encoded", "/blobs/%"+fmt.Sprintf("%X", id[0])+id[1:]+"/a.txt", good),
		get("truncated id", "/blobs/"+id[:25]+"/a.txt", good),
		get("id with a homoglyph", "/blobs/%D0%9E"+id[1:]+"/a.txt", good),
	}
}

func TestForgedLinksGetTheSameResponse(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	g := u.grant("a.txt")
	u.do("PUT", g.UploadURL, strings.NewReader("text")).want(200)
	path, token, _ := strings.Cut(strings.TrimPrefix(g.DownloadURL, s.base), "?token=")
	f := &forger{t, s.base, path, token}
	if status, body := f.do(attempt{method: "GET", path: path, query: "token=" + token}); status != 200 || body != "text" {
		t.Fatalf("the link is refused, so the test proves nothing: %d %s", status, body)
	}
	const want = `{"error":{"code":"LINK_INVALID","message":"This link does not allow the request; use it unchanged and with its own method, or request a new one."}}` + "\n"
	const wantType = `{"error":{"code":"LINK_INVALID","message":"This link accepts only Content-Type text/plain, but the request has text/html; send the accepted type or omit the header."}}` + "\n"
	for _, a := range f.attempts(strings.TrimPrefix(g.UploadURL, s.base)) {
		status, body := f.do(a)
		if a.name == "upload link with another type" && body == wantType {
			body = want
		}
		if status != 403 || body != want {
			t.Errorf("%s: %d %s\n%s %s?%s", a.name, status, body, a.method, a.path, a.query)
		}
	}
}
