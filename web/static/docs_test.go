package static

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"molrun/app/test/must"
	"molrun/web/docs"
)

// docsHandler serves the documentation in front of an API that answers 418.
func docsHandler() http.Handler { return Before(teapot, Options{Version: "v1.2.0"}) }

func TestTheDocumentationIsServed(t *testing.T) {
	h := docsHandler()
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/docs/", 200},
		{"GET", "/docs/server", 200},
		{"HEAD", "/docs/server", 200},
		{"GET", "/docs/format", 200},
		{"GET", "/docs/nothing", 404},
		{"GET", "/docs/server.md", 404},
		{"GET", "/docs/embed.go", 404},
		{"GET", "/docs/../server", 404},
		{"GET", "/docs/%00", 404},
		{"POST", "/docs/server", 405},
		{"GET", "/docsx", 418},
		{"POST", "/docs", 418},
	} {
		a := ask(h, tt.method, tt.path)
		must.Equal(t, fmt.Sprintf("%s %s", tt.method, tt.path), a.Code, tt.status)
		if tt.status != 418 {
			wantSafe(t, tt.method, tt.path, a)
			must.Equal(t, tt.path+" has scripts", strings.Contains(a.Header().Get("Content-Security-Policy"), "script"), false)
		}
	}
	if a := ask(h, "GET", "/docs/a/b"); !strings.Contains(a.Body.String(), `href="../"`) {
		t.Errorf("no way back from /docs/a/b: %s", a.Body)
	}
	if a := ask(h, "GET", "/docs"); a.Code != 302 || a.Header().Get("Location") != "docs/" {
		t.Errorf("/docs: %d to %q", a.Code, a.Header().Get("Location"))
	}
	first := ask(h, "GET", "/docs/api")
	if again := ask(h, "GET", "/docs/api", "If-None-Match", first.Header().Get("ETag")); again.Code != 304 || again.Body.Len() > 0 {
		t.Errorf("an unchanged page: %d", again.Code)
	}
	if first.Header().Get("ETag") == ask(h, "GET", "/docs/server").Header().Get("ETag") {
		t.Error("two pages have the same ETag")
	}
}

// TestLinksOfPagesLeadSomewhere follows every link of every page like a browser under a
// proxy's path prefix: all are relative, and refer to existing pages and anchors.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	d, err := allDocs()
	must.OK(t, err)
	all := d.pages
	outside := map[string]bool{"../ui/": true, "../openapi.yaml": true, "../client/": true, "./": true}
	n := 0
	for name, p := range all {
		for _, link := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(string(p.content), -1) {
			to, anchor, _ := strings.Cut(link[1], "#")
			if strings.HasPrefix(to, "http") || strings.HasPrefix(to, "data:") || outside[link[1]] {
				continue
			}
			n++
			target, ok := all[to]
			if to == "" {
				target, ok = p, true
			}
			if !ok || anchor != "" && !strings.Contains(string(target.content), ` id="`+anchor+`"`) {
				t.Errorf("%q links to %s", name, link[1])
			}
		}
	}
	if n < 250 {
		t.Errorf("only %d links were found", n)
	}
}

func TestEachFileIsAPage(t *testing.T) {
	found, err := fs.ReadDir(docs.Pages, ".")
	must.OK(t, err)
	for _, file := range found {
		if !file.IsDir() {
			must.Equal(t, file.Name(), ask(docsHandler(), "GET", "/docs/"+strings.TrimSuffix(file.Name(), ".md")).Code, 200)
		}
	}
}

func TestPagesHoldNoHTMLOfTheirFiles(t *testing.T) {
	d := documentation{pages: map[string]file{}}
	text := "# A < title\n\n<b>bold</b>\n\n<script>alert(1)</script>\n\n[a](javascript:alert(1)) [b](../../main.go) [c](server.md#tls)\n\n" +
		"| a |\n|---|\n| <img src=x onerror=y> |\n\n<!-- needs: root -->\n```sh\nid\n```\n"
	must.OK(t, d.add(docSource{name: "x", menu: "X"}, []byte(text)))
	html := string(d.pages["x"].content)
	for _, bad := range []string{"<script", "javascript:", "<img", "<b>", "main.go"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{`href="server#tls"`, "<em>Needs root.</em>", `<div class="table" tabindex="0"><table>`, "<h1>A &lt; title</h1>"} {
		must.Contain(t, "the page", html, want)
	}
}

func TestSearchFindsSections(t *testing.T) {
	h := docsHandler()
	for _, tt := range []struct{ query, first, has string }{
		{"isolation", `<h2><a href="server#isolation">Isolation</a></h2>`, "<mark>"},
		{"BUBBLEWRAP sandbox", "<h2><a href=", "<mark>bubblewrap</mark>"},
		{"SetEnvIf-is-nowhere", "<p>No section has all of these words.", ""},
		{`"><script>alert(1)</script>`, "<p>No section has all of these words.", `value="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"`},
		{strings.Repeat("x", 9999), "<p>No section has all of these words.", strings.Repeat("x", maxQuery) + `"`},
		{"  ", "<p>No section has all of these words.", ""},
	} {
		a := ask(h, "GET", "/docs/?q="+url.QueryEscape(tt.query))
		wantSafe(t, "GET", tt.query, a)
		_, results, _ := strings.Cut(a.Body.String(), "<h1>Search results</h1>\n")
		if a.Code != 200 || !strings.HasPrefix(results, tt.first) || !strings.Contains(strings.ToLower(a.Body.String()), strings.ToLower(tt.has)) {
			t.Errorf("%.50s: %d\n%.1000s", tt.query, a.Code, results)
		}
	}
}

func TestPicturesAreServed(t *testing.T) {
	found, err := fs.Glob(docs.Pages, "pictures/*")
	must.OK(t, err)
	if len(found) == 0 {
		t.Error("there are no pictures")
	}
	for _, name := range found {
		a := ask(docsHandler(), "GET", "/docs/"+name)
		must.Equal(t, name, a.Header().Get("Content-Type"), "image/svg+xml")
		must.Equal(t, name, a.Header().Get("Content-Security-Policy"), picturePolicy)
		if n := a.Body.Len(); a.Code != 200 || n > 50_000 {
			t.Errorf("%s: status %d, %d bytes", name, a.Code, n)
		}
	}
}
