package e2e

import (
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app/server/host"
	"molrun/app/test/must"
	"molrun/app/test/whole"
)

// nginx runs a real nginx in front of the server, with TLS and the location from
// web/deploy/nginx.conf, and sends the test's requests through it until it is killed.
// instead has pairs of strings in its configuration and their replacements.
func (s *instance) nginx(prefix, listen string, instead ...string) (kill func()) {
	s.t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx"
	}
	if _, err := os.Stat(program); err != nil {
		must.Skip(s.t, "nginx is not installed")
	}
	dir := s.t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must.OK(s.t, host.EnsureSelfSigned(cert, key, []string{"127.0.0.1"}, time.Now()))
	example := must.Read(s.t, filepath.Join(root, "web", "deploy", "nginx.conf"))
	location := strings.ReplaceAll(example, "http://127.0.0.1:8080", s.base)
	if !strings.Contains(location, s.base+"/;") || !strings.Contains(location, "location "+prefix) {
		s.t.Fatalf("web/deploy/nginx.conf does not proxy to the server: %s", location)
	}
	config := fmt.Sprintf(`daemon off;
master_process off;
worker_processes 1;
pid %[1]s/pid;
error_log stderr;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  server {
    listen %[2]s ssl;
    ssl_certificate %[3]s;
    ssl_certificate_key %[4]s;
    %[5]s
  }
}
`, dir, listen, cert, key, location)
	file := filepath.Join(dir, "nginx.conf")
	must.OK(s.t, os.WriteFile(file, []byte(strings.NewReplacer(instead...).Replace(config)), 0o600))
	proxy := exec.Command(program, "-p", dir, "-e", "stderr", "-c", file)
	var log strings.Builder
	proxy.Stderr = &log
	must.OK(s.t, proxy.Start())
	kill = sync.OnceFunc(func() {
		_ = proxy.Process.Kill()
		_ = proxy.Wait() // returns an error because nginx was killed
	})
	s.t.Cleanup(func() {
		kill()
		if s.t.Failed() {
			s.t.Logf("nginx says:\n%s", log.String())
		}
	})
	// Responses are not checked against the API description, because it does not allow a
	// path prefix.
	s.http = &http.Client{Transport: &http.Transport{TLSClientConfig: s.secure(cert), ForceAttemptHTTP2: true}, Timeout: patience}
	s.base = "https://" + listen + strings.TrimSuffix(prefix, "/")
	s.eventually("nginx answers", func() bool {
		response, err := s.http.Get(s.base + "/healthz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode < http.StatusInternalServerError
	})
	return kill
}

// freeAddress returns a local address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := whole.FreeAddress()
	must.OK(t, err)
	return address
}

func TestServiceWorksBehindNginxUnderAPath(t *testing.T) {
	t.Parallel()
	listen := freeAddress(t)
	base := "https://" + listen + "/molrun"
	s := startServer(t, serverOptions{
		config:     fmt.Sprintf("public_url = %q\n[proxy]\ntrusted = \"127.0.0.1\"\n", base),
		algorithms: map[string]string{"shell.toml": shellFile},
	})
	key := s.user("lab", "ann@lab.example").key
	s.nginx("/molrun/", listen)
	u := user{s, key}
	const name = "größe 50% [a]+b.txt"
	g := u.grant(name)
	if !strings.HasPrefix(g.UploadURL, base+"/blobs/") || !strings.HasPrefix(g.DownloadURL, base+"/blobs/") {
		t.Errorf("links %s and %s do not begin with %s", g.UploadURL, g.DownloadURL, base)
	}
	text := strings.Repeat("0123456789abcdef", 300_000) // exceeds nginx's default body limit
	u.do("PUT", g.UploadURL, strings.NewReader(text), "Content-Type", "text/plain").want(200)
	u.do("POST", "/upload/"+g.FileID+"/complete", fmt.Sprintf(`{"size":%d}`, len(text))).want(200)
	whole := u.do("GET", g.DownloadURL, nil).want(200)
	if string(whole.body) != text || whole.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("download of %d bytes, want %d", len(whole.body), len(text))
	}
	part := u.do("GET", g.DownloadURL, nil, "Range", "bytes=4800000-", "If-Range", whole.header.Get("ETag"))
	if len(text) != 4_800_000 || part.status != 416 {
		t.Errorf("range beyond the end: status %d", part.status)
	}
	if part := u.do("GET", g.DownloadURL, nil, "Range", "bytes=-16", "If-Range", whole.header.Get("ETag")).want(206); string(part.body) != "0123456789abcdef" {
		t.Errorf("range: %q", part.body)
	}
	u.do("HEAD", g.DownloadURL, nil).want(200)
	u.submit("probe ü", "shell", script("true"))
	var page struct{ Jobs []record }
	u.do("GET", "/jobs?limit=1", nil).want(200).into(&page)
	must.Equal(t, "jobs in the listing", len(page.Jobs), 1)
	if j := u.job("probe ü"); j.JobName != "probe ü" {
		t.Errorf("%+v", j)
	}
	u.do("GET", "/jobs/no%20such%25job", nil).code(404, "NOT_FOUND")
	u.do("GET", "/jobs?x=1", nil).detail("query.x")
	user{s, "wrong"}.do("GET", "/jobs", nil).code(401, "UNAUTHORIZED")
	u.do("GET", g.UploadURL, nil).code(403, "LINK_INVALID")
	u.do("PUT", g.UploadURL, strings.NewReader("more")).code(409, "UPLOAD_COMPLETED")
	u.do("POST", "/submit-job", strings.Repeat(" ", 9<<20)).code(413, "BODY_TOO_LARGE")
	s.http.CloseIdleConnections() // nginx closes a connection if it has not read the request body
	u.do("PATCH", "/jobs", nil).code(405, "METHOD_NOT_ALLOWED")
	u.do("GET", "/none", nil).code(404, "NOT_FOUND")
	s.readDocs(base)
}

// readDocs follows all links in the documentation, as a browser does.
func (s *instance) readDocs(base string) {
	s.t.Helper()
	links := regexp.MustCompile(`href="([^"]*)"`)
	seen := map[string]bool{}
	for next := []string{base + "/docs"}; len(next) > 0; next = next[1:] {
		answer, err := s.http.Get(next[0])
		must.OK(s.t, err)
		page, err := io.ReadAll(answer.Body)
		must.OK(s.t, errors.Join(err, answer.Body.Close()))
		must.Equal(s.t, next[0]+": status", answer.StatusCode, http.StatusOK)
		if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			continue
		}
		for _, found := range links.FindAllSubmatch(page, -1) {
			to, err := answer.Request.URL.Parse(html.UnescapeString(string(found[1])))
			must.OK(s.t, err)
			if to.Fragment = ""; to.Host == answer.Request.URL.Host && !seen[to.String()] {
				seen[to.String()] = true
				if !strings.HasPrefix(to.String(), base+"/") {
					s.t.Errorf("%s links to %s, outside of the proxy's path", next[0], to)
				} else {
					next = append(next, to.String())
				}
			}
		}
	}
	if len(seen) < 6 {
		s.t.Errorf("the documentation has %d pages", len(seen))
	}
}

// TestProxySignInBehindNginx has nginx authenticate users by password. nginx connects
// from its own address, the only trusted one.
func TestProxySignInBehindNginx(t *testing.T) {
	t.Parallel()
	listen := freeAddress(t)
	base := "https://" + listen + "/molrun"
	s := startServer(t, serverOptions{config: fmt.Sprintf(`public_url = %q
[proxy]
trusted = "127.0.0.2"
[sign_in]
header = "Remote-User"
proxies = "127.0.0.2"
organization = "lab"
create = true
`, base)})
	direct, straight := s.base, s.http
	key := s.user("lab", "ann@lab.example").key
	passwords := filepath.Join(t.TempDir(), "passwords")
	must.OK(t, os.WriteFile(passwords, []byte("new@lab.example:{PLAIN}secret\n"), 0o600))
	s.nginx("/molrun/", listen, `proxy_set_header Remote-User "";`, fmt.Sprintf(`proxy_bind 127.0.0.2;
    auth_basic "molrun";
    auth_basic_user_file %s;
    proxy_set_header Authorization "";
    proxy_set_header Remote-User $remote_user;`, passwords))
	ask := func(client *http.Client, method, url string, headers ...string) (status int, body string) {
		t.Helper()
		r, err := http.NewRequest(method, url, nil)
		must.OK(t, err)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Add(headers[i], headers[i+1])
		}
		response, err := client.Do(r)
		must.OK(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		must.OK(t, err)
		return response.StatusCode, string(text)
	}
	const signedIn = "Basic bmV3QGxhYi5leGFtcGxlOnNlY3JldA==" // new@lab.example:secret
	for _, tt := range []struct {
		name    string
		status  int
		method  string
		headers []string
	}{
		{"signed in", 200, "PUT", []string{"Authorization", signedIn}},
		{"signed in on this page", 200, "PUT", []string{"Authorization", signedIn, "Origin", "https://" + listen}},
		{"signed in on another page", 403, "PUT", []string{"Authorization", signedIn, "Sec-Fetch-Site", "cross-site"}},
		{"not signed in", 401, "PUT", []string{"Remote-User", "ann@lab.example"}},
		{"signed in as somebody else", 200, "PUT", []string{"Authorization", signedIn, "Remote-User", "ann@lab.example"}},
		{"signed in, with underscores", 200, "PUT", []string{"Authorization", signedIn, "Remote_User", "ann@lab.example"}},
	} {
		status, body := ask(s.http, tt.method, s.base+"/upload/a.txt", tt.headers...)
		if status != tt.status {
			t.Errorf("%s: %d %s", tt.name, status, body)
		}
	}
	if status, body := ask(s.http, "GET", s.base+"/keys", "Authorization", signedIn, "x-api-key", key); status != 200 || !strings.Contains(body, "ann@lab.example") {
		t.Errorf("a key behind the proxy: %d %s", status, body)
	}
	if status, body := ask(s.http, "GET", s.base+"/files", "Authorization", signedIn, "Remote-User", "ann@lab.example"); status != 200 || strings.Contains(body, "ann@") || !strings.Contains(body, "a.txt") {
		t.Errorf("the files of the user who has signed in: %d %s", status, body)
	}
	if status, _ := ask(straight, "GET", direct+"/jobs", "Remote-User", "new@lab.example"); status != 401 {
		t.Errorf("the header straight to the server: %d", status)
	}
	if status, _ := ask(straight, "GET", direct+"/jobs", "x-api-key", key); status != 200 {
		t.Errorf("a key straight to the server: %d", status)
	}
	if !strings.Contains(s.log.String(), "not in sign_in.proxies") {
		t.Error("the log does not report the header from an untrusted address")
	}
}
