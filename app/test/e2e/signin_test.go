package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"molrun/app/test/must"
	"molrun/app/test/whole"
)

// browser is a client that keeps cookies.
type browser struct {
	t      *testing.T
	client *http.Client
	base   string
}

func (s *instance) browser() *browser {
	jar, err := cookiejar.New(nil)
	must.OK(s.t, err)
	client := *s.http
	client.Jar = jar
	return &browser{s.t, &client, s.base}
}

// do sends a request as a page of the service would.
func (b *browser) do(method, path, body string) (status int, text string, header http.Header) {
	b.t.Helper()
	r, err := http.NewRequest(method, b.base+path, strings.NewReader(body))
	must.OK(b.t, err)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := b.client.Do(r)
	must.OK(b.t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	must.OK(b.t, err)
	return response.StatusCode, string(content), response.Header
}

// follow opens a sign-in link as the web application does.
func (b *browser) follow(link string) (status int, text string) {
	b.t.Helper()
	u, err := url.Parse(link)
	must.OK(b.t, err)
	values, err := url.ParseQuery(u.Fragment)
	must.OK(b.t, err)
	if want := strings.TrimSuffix(b.base, "/") + "/ui/"; !strings.HasPrefix(link, want) {
		b.t.Errorf("the link %s does not begin with %s", link, want)
	}
	status, text, _ = b.do("POST", "/session", fmt.Sprintf(`{"token":%q}`, values.Get("signin")))
	return status, text
}

// signInLink returns the first sign-in link in the output, or "" if none has been printed
// yet.
func signInLink(out *whole.Log) string {
	for _, word := range strings.Fields(out.String()) {
		if strings.Contains(word, "#signin=") {
			return word
		}
	}
	return ""
}

func TestAFreshServicePrintsALinkForTheFirstAdmin(t *testing.T) {
	t.Parallel()
	s := unstarted(t, "listen = \"127.0.0.1:0\"\n[database]\nfile_system = \"any\"\n")
	s.http = checkedClient(t)
	start := func(terminal bool) (*whole.Log, func()) {
		out := &whole.Log{}
		c := s.command("serve")
		c.Stdout, c.Stderr = out, out
		if terminal {
			ours, theirs := terminalPair(t)
			defer theirs.Close()
			c.Stdout = theirs
			go func() { _, _ = io.Copy(out, ours) }() // ends with an error when the service exits
		}
		must.OK(t, c.Start())
		stop := sync.OnceFunc(func() {
			_ = c.Process.Signal(syscall.SIGTERM)
			_ = c.Wait() // returns an error because of the signal
		})
		t.Cleanup(stop)
		s.eventually("it has started", func() bool { return strings.Contains(out.String(), `"started"`) })
		return out, stop
	}
	hidden, stop := start(false)
	s.eventually("it says how to sign in", func() bool { return strings.Contains(hidden.String(), "molrun sign-in") })
	stop()
	must.Equal(t, "a log gets the link", signInLink(hidden), "")
	out, stop := start(true)
	s.eventually("it prints a link", func() bool { return signInLink(out) != "" })
	s.base, _, _ = strings.Cut(signInLink(out), "/ui/")
	b := s.browser()
	if status, text := b.follow(signInLink(out)); status != 200 || !strings.Contains(text, `"role":"admin"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := b.follow(signInLink(out)); status != 401 {
		t.Errorf("a second time: %d", status)
	}
	if status, text, _ := b.do("GET", "/admin/users", ""); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	again, errs, code := s.run("sign-in")
	if code != 0 || len(strings.Fields(again)) != 1 || !strings.Contains(errs, "admin@localhost") {
		t.Errorf("sign-in prints %q and %q, exit code %d", again, errs, code)
	}
	stop()
	if _, errs, code := s.run("sign-in"); code == 0 || !strings.Contains(errs, "molrun serve") {
		t.Errorf("sign-in without a service: %q, exit code %d", errs, code)
	}
	out, _ = start(true)
	if status, text, _ := (&browser{t, b.client, addressOf(t, out)}).do("GET", "/session", ""); status != 401 {
		t.Errorf("a cookie of another port: %d %s", status, text) // the cookie of the restarted service
	}
	must.Equal(t, "a service with users prints", signInLink(out), "")
}

// addressOf finds the address of a service in its log.
func addressOf(t *testing.T, out *whole.Log) string {
	t.Helper()
	_, rest, _ := strings.Cut(out.String(), `"listen":"`)
	address, _, found := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("no address in %s", out)
	}
	return "http://" + address
}

func TestSessionsOutliveARestart(t *testing.T) {
	t.Parallel()
	listen := freeAddress(t)
	s := startServer(t, serverOptions{flags: []string{"--listen", listen}})
	key := s.user("lab", "ann@lab.example").key
	b := s.browser()
	if status, text, header := b.do("POST", "/session", fmt.Sprintf(`{"key":%q}`, key)); status != 200 || strings.Contains(header.Get("Set-Cookie"), key) {
		t.Fatalf("%d %s", status, text)
	}
	link, _, _ := s.run("sign-in", "--user", "ann@lab.example")
	s.stop()
	s.start()
	if status, text, _ := b.do("GET", "/session", ""); status != 200 || !strings.Contains(text, "ann@lab.example") {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := b.follow(strings.TrimSpace(link)); status != 401 {
		t.Errorf("a link from before the restart: %d", status)
	}
}

// TestTheDemonstrationEndsWithALink opens the finished job with the link that the
// demonstration prints. It needs --stay, because the demonstration exits by itself when
// it is not on a terminal.
func TestTheDemonstrationEndsWithALink(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it simulates for some seconds")
	}
	s := unstarted(t, "[database]\nfile_system = \"any\"\n")
	s.http = checkedClient(t)
	out := &whole.Log{}
	c := s.command("demo", "--stay")
	c.Stdout, c.Stderr = out, out
	must.OK(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() { _ = c.Process.Kill() }) // in case it is still running
	s.eventually("it prints a link", func() bool { return signInLink(out) != "" })
	link, to, _ := strings.Cut(signInLink(out), "&to=")
	must.Equal(t, "the link leads to", to, "jobs/demo-hst5")
	s.base, _, _ = strings.Cut(link, "/ui/")
	b := s.browser()
	if status, text := b.follow(link); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if status, text, _ := b.do("GET", "/"+to, ""); status != 200 || !strings.Contains(text, "COMPLETED") {
		t.Errorf("%d %s", status, text)
	}
	must.OK(t, c.Process.Signal(os.Interrupt))
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("after Ctrl-C: %v: %s", err, out)
		}
	case <-time.After(patience):
		t.Error("it continues after Ctrl-C")
	}
}

// TestTheApplicationWorksBehindNginxUnderAPath has a proxy that removes a path prefix.
// The service is configured with its public address, or not.
func TestTheApplicationWorksBehindNginxUnderAPath(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		listen, config := freeAddress(t), ""
		if known {
			config = fmt.Sprintf("public_url = %q\n", "https://"+listen+"/molrun")
		}
		s := startServer(t, serverOptions{config: config})
		key := s.user("lab", "ann@lab.example").key
		stop := s.nginx("/molrun/", listen)
		b := s.browser()
		r, err := http.NewRequest("GET", s.base+"/", nil)
		must.OK(t, err)
		r.Header.Set("Accept", "text/html")
		response, err := b.client.Do(r)
		must.OK(t, err)
		response.Body.Close()
		if got := response.Request.URL.String(); got != s.base+"/ui/" || response.StatusCode != 200 {
			t.Errorf("a browser is sent to %s: %d", got, response.StatusCode)
		}
		for path, base := range map[string]string{"/ui/": "./", "/ui/jobs/a": "../", "/ui/jobs/a/files/b": "../../../"} {
			status, page, header := b.do("GET", path, "")
			if status != 200 || !strings.Contains(page, `<base href="`+base+`">`) || !strings.Contains(header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
				t.Errorf("%s: %d %s", path, status, page)
			}
		}
		if status, text, _ := b.do("POST", "/session", fmt.Sprintf(`{"key":%q}`, key)); status != 200 {
			t.Errorf("signing in: %d %s", status, text)
		}
		if status, text, _ := b.do("PUT", "/upload/a.txt", ""); status != 200 {
			t.Errorf("in the session: %d %s", status, text)
		}
		outside := *b
		outside.base = "https://" + listen
		for path, want := range map[string]int{"/molrun": 0, "/molrunx": 0, "/": 0, "/molrun/jobs": 1} {
			u, err := url.Parse(outside.base + path)
			must.OK(t, err)
			if got := len(b.client.Jar.Cookies(u)); got != want && path != "/molrun" {
				t.Errorf("%d cookies are sent to %s, want %d", got, path, want)
			}
		}
		if status, _, _ := b.do("DELETE", "/session", ""); status != 204 {
			t.Errorf("signing out: %d", status)
		}
		if status, _, _ := b.do("GET", "/jobs", ""); status != 401 {
			t.Errorf("after signing out: %d", status)
		}
		stop()
	}
}
