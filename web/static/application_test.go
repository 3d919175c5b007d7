package static

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"molrun/app/test/must"
	"molrun/web/ui"
)

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	must.OK(t, must.Error2(io.WriteString(w, text)))
	must.OK(t, w.Close())
	return b.Bytes()
}

const script = "console.log('hello, hello, hello')"

// smallApplication serves a small application like the real one.
func smallApplication(t *testing.T) http.Handler {
	t.Helper()
	return before(fstest.MapFS{
		"dist/index.html":            {Data: []byte(`<!doctype html><head><base href="./"><script src="assets/a-1.js"></script>`)},
		"dist/favicon.svg":           {Data: []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`)},
		"dist/assets/a-1.js.gz":      {Data: zipped(t, script)},
		"dist/assets/style-2.css.gz": {Data: zipped(t, "a{}")},
		"dist/assets/font.woff2":     {Data: []byte("font")},
		"dist/.gitkeep":              {},
	}, teapot, Options{Version: "v1.2.0"})
}

func TestTheApplicationIsServed(t *testing.T) {
	h := smallApplication(t)
	for _, tt := range []struct {
		method, path, headers string
		status                int
		contentType, caching  string
	}{
		{"GET", "/ui/", "", 200, "text/html; charset=utf-8", "no-cache"},
		{"HEAD", "/ui/", "", 200, "text/html; charset=utf-8", "no-cache"},
		{"GET", "/ui/index.html", "", 200, "text/html; charset=utf-8", "no-cache"},
		{"GET", "/ui/jobs/a", "", 200, "text/html; charset=utf-8", "no-cache"},
		{"GET", "/ui/jobs/a.js", "", 200, "text/html; charset=utf-8", "no-cache"}, // a possible job name
		{"GET", "/ui/favicon.svg", "", 200, "image/svg+xml", "no-cache"},
		{"GET", "/ui/assets/a-1.js", "gzip", 200, "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"GET", "/ui/assets/a-1.js", "", 200, "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"HEAD", "/ui/assets/style-2.css", "gzip", 200, "text/css; charset=utf-8", "public, max-age=31536000, immutable"},
		{"GET", "/ui/assets/font.woff2", "gzip", 200, "font/woff2", "public, max-age=31536000, immutable"},
		{"GET", "/ui/assets/a-0.js", "gzip", 404, "application/json", "no-store"},
		{"GET", "/ui/assets/", "", 404, "application/json", "no-store"},
		{"GET", "/ui/assets/a-1.js.gz", "", 404, "application/json", "no-store"},
		{"GET", "/ui/assets/../assets/a-1.js", "", 404, "application/json", "no-store"},
		{"POST", "/ui/", "", 405, "application/json", "no-store"},
		{"PUT", "/ui/assets/a-1.js", "", 405, "application/json", "no-store"},
	} {
		a := ask(h, tt.method, tt.path, "Accept-Encoding", tt.headers)
		if a.Code != tt.status || a.Header().Get("Content-Type") != tt.contentType || a.Header().Get("Cache-Control") != tt.caching {
			t.Errorf("%s %s: %d %s %s", tt.method, tt.path, a.Code, a.Header().Get("Content-Type"), a.Header().Get("Cache-Control"))
		}
		wantSafe(t, tt.method, tt.path, a)
		for name, want := range map[string]string{
			"Content-Security-Policy": "frame-ancestors 'none'",
			"Referrer-Policy":         "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY",
		} {
			must.Contain(t, fmt.Sprintf("%s %s: %s", tt.method, tt.path, name), a.Header().Get(name), want)
		}
	}
}

func TestOnlyEmbeddedPagesAreShownInFrames(t *testing.T) {
	h := smallApplication(t)
	for path, framed := range map[string]bool{"/ui/embed/TOKEN": true, "/ui/shared/TOKEN": false, "/ui/embed": false, "/ui/jobs/embed/": false, "/ui/": false} {
		a := ask(h, "GET", path, "Accept-Encoding", "")
		csp, refused := a.Header().Get("Content-Security-Policy"), a.Header().Get("X-Frame-Options") == "DENY"
		if strings.HasSuffix(csp, "frame-ancestors *") != framed || strings.HasSuffix(csp, "frame-ancestors 'none'") == framed || refused == framed {
			t.Errorf("%s: %s, X-Frame-Options %q", path, csp, a.Header().Get("X-Frame-Options"))
		}
	}
}

func TestBrowsersAreSentToTheApplication(t *testing.T) {
	h := smallApplication(t)
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, tt := range []struct {
		method, path, accept string
		status               int
	}{
		{"GET", "/", browser, 302},
		{"HEAD", "/", browser, 302},
		{"GET", "/ui", "", 302},
		{"GET", "/", "*/*", 418},
		{"GET", "/", "application/json", 418},
		{"GET", "/", "", 418},
		{"POST", "/", browser, 418},
		{"GET", "/jobs", browser, 418},
		{"GET", "/uix", browser, 418},
		{"DELETE", "/ui", "", 418},
	} {
		a := ask(h, tt.method, tt.path, "Accept", tt.accept)
		if a.Code != tt.status || tt.status == 302 && a.Header().Get("Location") != "ui/" {
			t.Errorf("%s %s for %s: %d %s", tt.method, tt.path, tt.accept, a.Code, a.Header().Get("Location"))
		}
	}
}

// TestRelativeAddressesHoldOnEveryPage resolves the base URL of a page like a browser,
// with and without a path prefix that a proxy strips.
func TestRelativeAddressesHoldOnEveryPage(t *testing.T) {
	h := smallApplication(t)
	for _, path := range []string{"/ui/", "/ui/jobs", "/ui/jobs/", "/ui/jobs/a", "/ui/jobs/a%20b/files/c", "/ui/jobs/a%2Fb", "/ui//x", "/ui/x?y=/z/"} {
		_, rest, _ := strings.Cut(ask(h, "GET", path).Body.String(), `<base href="`)
		base, _, _ := strings.Cut(rest, `"`)
		for _, cut := range []string{"", "/lab/molrun"} {
			page := httptest.NewRequest("GET", "http://lab.example"+cut+path, nil).URL
			resolved, err := page.Parse(base)
			if err == nil {
				resolved, err = resolved.Parse("assets/a-1.js")
			}
			if want := cut + "/ui/assets/a-1.js"; err != nil || resolved.Path != want {
				t.Errorf("on %s the base %s leads to %v, want %s: %v", page, base, resolved, want, err)
			}
		}
	}
}

func TestClientsWithoutGzipGetPlainFiles(t *testing.T) {
	h := smallApplication(t)
	for accepted, zips := range map[string]bool{
		"gzip": true, "gzip, deflate, br": true, "br, GZIP;q=0.5": true, "gzip;q=0.001": true,
		"": false, "identity": false, "br": false, "gzip;q=0": false, "xgzip": false, "gzip;q=0, br": false,
	} {
		a := ask(h, "GET", "/ui/assets/a-1.js", "Accept-Encoding", accepted)
		text := a.Body.Bytes()
		if zips {
			plain, err := gzip.NewReader(a.Body)
			must.OK(t, err)
			text, err = io.ReadAll(plain)
			must.OK(t, err)
		}
		if string(text) != script || (a.Header().Get("Content-Encoding") == "gzip") != zips || a.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: %q %v", accepted, text, a.Header())
		}
	}
}

func TestCachedFilesAreNotSentAgain(t *testing.T) {
	h := smallApplication(t)
	tags := map[string]string{}
	for _, path := range []string{"/ui/", "/ui/jobs/a", "/ui/favicon.svg", "/ui/assets/a-1.js", "/ui/assets/style-2.css"} {
		for _, coding := range []string{"gzip", "identity"} {
			tag := ask(h, "GET", path, "Accept-Encoding", coding).Header().Get("ETag")
			if !strings.HasPrefix(tag, `"`) {
				t.Errorf("%s has the tag %s", path, tag)
			}
			if other := tags[tag]; other != "" && other != path {
				t.Errorf("%s and %s have the same tag", path, other)
			}
			tags[tag] = path
			if a := ask(h, "GET", path, "Accept-Encoding", coding, "If-None-Match", tag); a.Code != 304 || a.Body.Len() > 0 || a.Header().Get("ETag") != tag {
				t.Errorf("%s as %s again: %d", path, coding, a.Code)
			}
			must.Equal(t, path+", changed", ask(h, "GET", path, "Accept-Encoding", coding, "If-None-Match", `"other"`).Code, 200)
			if a := ask(h, "GET", path, "Accept-Encoding", coding, "Range", "bytes=0-1"); a.Code != 200 || a.Header().Get("Accept-Ranges") != "" {
				t.Errorf("a part of %s: %d", path, a.Code)
			}
		}
	}
	if ask(h, "GET", "/ui/assets/a-1.js", "Accept-Encoding", "gzip").Header().Get("ETag") == ask(h, "GET", "/ui/assets/a-1.js").Header().Get("ETag") {
		t.Error("the zipped and the plain file have the same tag")
	}
}

// TestTheApplicationIsPartOfTheProgram checks the built application, or its placeholder.
func TestTheApplicationIsPartOfTheProgram(t *testing.T) {
	h := Before(http.NotFoundHandler(), Options{Version: "v1.2.0"})
	page := ask(h, "GET", "/ui/").Body.String()
	if !strings.Contains(page, "<title>") || !strings.Contains(page, `<base href="./">`) {
		t.Errorf("the start page is %s", page)
	}
	for rest := page; ; {
		_, after, found := strings.Cut(rest, `"./assets/`)
		if !found {
			break
		}
		name, tail, _ := strings.Cut(after, `"`)
		if a := ask(h, "GET", "/ui/assets/"+name, "Accept-Encoding", "gzip"); a.Code != 200 || a.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %d %v", name, a.Code, a.Header())
		}
		rest = tail
	}
	var size int64
	must.OK(t, fs.WalkDir(ui.Built, ".", func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			info, err := entry.Info()
			if err != nil {
				return err
			}
			size += info.Size()
		}
		return err
	}))
	if size > 2<<20 {
		t.Errorf("the application adds %d bytes to the program, 2 MiB are allowed", size)
	}
}
