package blobs

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

func TestDownloadServesRanges(t *testing.T) {
	f := start(t)
	const content = "0123456789"
	id := f.uploaded(content)
	job := f.result(map[string]string{"a.pdb": content, "b/c.csv": "x"})
	links := map[string]string{
		"upload": f.getLink(id),
		"result": f.resultLink(job, 0),
	}
	for name, link := range links {
		etag := f.do("HEAD", link, "").header.Get("ETag")
		tests := []struct {
			name    string
			headers []string
			status  int
			body    string
		}{
			{"whole", nil, 200, content},
			{"range", []string{"Range", "bytes=2-4"}, 206, "234"},
			{"from", []string{"Range", "bytes=7-"}, 206, "789"},
			{"beyond the end", []string{"Range", "bytes=7-100"}, 206, "789"},
			{"last", []string{"Range", "bytes=-3"}, 206, "789"},
			{"same version", []string{"Range", "bytes=2-4", "If-Range", etag}, 206, "234"},
			{"other version", []string{"Range", "bytes=2-4", "If-Range", `"other"`}, 200, content},
			{"known", []string{"If-None-Match", etag}, 304, ""},
			{"too many ranges", []string{"Range", "bytes=" + strings.Repeat("0-0,", maxRanges) + "1-1"}, 200, content},
		}
		for _, tt := range tests {
			t.Run(name+" "+tt.name, func(t *testing.T) {
				res := f.do("GET", link, "", tt.headers...)
				if res.status != tt.status || res.body != tt.body || res.err != nil {
					t.Errorf("status %d, body %q, err %v; want %d, %q", res.status, res.body, res.err, tt.status, tt.body)
				}
			})
		}
		if res := f.do("GET", link, "", "Range", "bytes=0-1,8-9"); res.status != 206 ||
			!strings.Contains(res.body, "bytes 0-1/10") || !strings.Contains(res.body, "bytes 8-9/10") {
			t.Errorf("%s, two ranges: status %d, body %q", name, res.status, res.body)
		}
		head := f.do("HEAD", link, "")
		if head.status != 200 || head.header.Get("Content-Length") != "10" || head.header.Get("Accept-Ranges") != "bytes" {
			t.Errorf("%s, HEAD: status %d, header %v", name, head.status, head.header)
		}
	}
}

func TestEmptyFileIsServed(t *testing.T) {
	f := start(t)
	id := f.uploaded("")
	for _, headers := range [][]string{nil, {"Range", "bytes=0-"}, {"Range", "bytes=-0"}, {"Range", "bytes=0-0"}, {"Range", "bytes=-0,-1"}} {
		if res := f.do("GET", f.getLink(id), "", headers...); res.status != 200 || res.body != "" {
			t.Errorf("%q: status %d, body %q; want 200 and nothing", headers, res.status, res.body)
		}
	}
}

func TestDownloadNeverRunsInABrowser(t *testing.T) {
	f := start(t)
	const nothing = "sandbox; default-src 'none'"
	const ownStyles = nothing + "; style-src 'unsafe-inline'; img-src data:; font-src data:"
	tests := []struct{ filename, contentType, policy string }{
		{"a.txt", "text/plain; charset=utf-8", nothing},
		{"A.PDB", "text/plain; charset=utf-8", nothing},
		{"a.json", "application/json", nothing},
		{"a.zip", "application/zip", nothing},
		{"a.png", "image/png", nothing},
		{"a.svg", "image/svg+xml", ownStyles},
		{"A.SVG", "image/svg+xml", ownStyles},
		{"a.svgz", "application/octet-stream", nothing},
		{"a.html", "application/octet-stream", nothing},
		{"a.xml", "application/octet-stream", nothing},
		{"a.pdf", "application/octet-stream", nothing},
		{"a.js", "application/octet-stream", nothing},
		{"svg", "application/octet-stream", nothing},
		{"html", "application/octet-stream", nothing},
	}
	id := f.newUpload("text/html")
	f.do("PUT", f.link(app.Link{Kind: app.UploadPut, ID: string(id), Filename: "a", ContentType: "text/html"}), "<script>")
	for _, tt := range tests {
		res := f.do("GET", f.link(app.Link{Kind: app.UploadGet, ID: string(id), Filename: tt.filename}), "")
		want := map[string]string{
			"Content-Type":                 tt.contentType,
			"Content-Disposition":          `attachment; filename="` + tt.filename + `"; filename*=UTF-8''` + tt.filename,
			"X-Content-Type-Options":       "nosniff",
			"Content-Security-Policy":      tt.policy,
			"Cross-Origin-Resource-Policy": "same-site",
			"Cache-Control":                "private, no-store",
			"Referrer-Policy":              "no-referrer",
		}
		for name, value := range want {
			must.Equal(t, tt.filename+": "+name, res.header.Get(name), value)
		}
	}
}

func TestMissingFileIsNotFound(t *testing.T) {
	f := start(t)
	job := f.result(map[string]string{"a": "x"})
	id := f.newUpload("text/plain")
	f.do("GET", f.getLink(app.UploadID(f.id())), "").want(t, 404, fault.NotFound)
	f.do("PUT", f.putLink(app.UploadID(f.id())), "x").want(t, 404, fault.NotFound)

	f.do("GET", f.resultLink(job, -1), "").want(t, 403, fault.LinkInvalid)
	must.OK(t, f.RemoveJob(job))
	f.do("GET", f.resultLink(job, 0), "").want(t, 404, fault.NotFound)
	f.upload(id, "x")
	if err := f.Dir.RemoveUpload(id, 1); err != nil { // while its record still exists
		t.Fatal(err)
	}
	f.do("GET", f.getLink(id), "").want(t, 500, fault.Internal)
}

func TestChangedFileIsNotServed(t *testing.T) {
	f := start(t)
	id := f.uploaded("0123456789")
	job := f.result(map[string]string{"a": "0123456789", "b": "0123456789"})
	must.OK(t, os.Truncate(f.UploadPath(id, 1), 5))
	must.OK(t, os.Truncate(filepath.Join(f.JobDir(job), "result", "a"), 5))
	outside := filepath.Join(f.path, "secret")
	inside := filepath.Join(f.JobDir(job), "result", "b")
	must.OK(t, errors.Join(os.Remove(inside), os.Symlink(outside, inside)))
	f.do("GET", f.getLink(id), "").want(t, 500, fault.Internal)
	f.do("GET", f.resultLink(job, 0), "").want(t, 500, fault.Internal)
	f.do("GET", f.resultLink(job, 1), "").want(t, 500, fault.Internal)
}

func TestOtherMethodsAreRefused(t *testing.T) {
	f := start(t)
	for _, method := range []string{"POST", "TRACE"} {
		res := f.do(method, f.getLink(f.newUpload("text/plain")), "")
		res.want(t, 405, fault.MethodNotAllowed)
		must.Equal(t, method+": Allow", res.header.Get("Allow"), "GET, HEAD, PUT, PATCH, DELETE, OPTIONS")
	}
	for _, method := range []string{"DELETE", "OPTIONS", "PATCH"} {
		link := f.getLink(f.newUpload("text/plain"))
		res := f.do(method, link, "")
		res.want(t, 405, fault.MethodNotAllowed)
		must.Equal(t, method+": Allow", res.header.Get("Allow"), "GET, HEAD")
		f.do(method, link+"x", "").want(t, 403, fault.LinkInvalid)
	}
	f.do("PUT", f.getLink(f.newUpload("text/plain")), "").want(t, 403, fault.LinkInvalid)
	f.do("GET", f.link(app.Link{Kind: "unknown", ID: string(f.newUpload("text/plain")), Filename: "a"}), "").want(t, 403, fault.LinkInvalid)
}

func TestTooManyTransfersAreRefused(t *testing.T) {
	f := start(t, func(o *Options) { o.Streams = 1 })
	id := f.newUpload("text/plain")
	conn, answer := f.dial("PUT", f.putLink(id), "Content-Length: 5", "Expect: 100-continue")
	wantLine(t, answer, "100 Continue")
	res := f.do("GET", f.getLink(id), "")
	res.want(t, 503, fault.Unavailable)
	if res.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	fmt.Fprint(conn, "hello")
	wantLine(t, answer, "200 OK")
}

// TestDownloadDuringReplacement downloads while uploads replace the file. Each response
// must be one complete upload.
func TestDownloadDuringReplacement(t *testing.T) {
	f := start(t)
	id := f.uploaded(strings.Repeat("a", 1000))
	link, put := f.getLink(id), f.putLink(id)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for i := range 40 {
			f.do("PUT", put, strings.Repeat(string(rune('a'+i%26)), 1000+i))
		}
	})
	for stop := false; !stop; {
		select {
		case <-done:
			stop = true
		default:
		}
		res := f.do("GET", link, "")
		if res.status != 200 || res.header.Get("ETag") != `"`+sha(res.body)+`"` {
			t.Errorf("status %d, ETag %s of %d bytes", res.status, res.header.Get("ETag"), len(res.body))
		}
	}
	wg.Wait()
}

func TestAccessLogOmitsTheLink(t *testing.T) {
	var log bytes.Buffer
	f := start(t, func(o *Options) { o.Log = zerolog.New(zerolog.SyncWriter(&log)) })
	f.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "req-1")
		Handler(f.Dir, f.rules, writeError).ServeHTTP(w, r)
	})
	id := f.uploaded("hello")
	link := f.getLink(id)
	f.do("GET", link, "", "Range", "bytes=0-1")
	f.do("GET", link+"x", "")
	f.server.Close()
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for i, want := range []string{
		`"request":"req-1","method":"PUT","kind":"put","id":"` + string(id) + `","status":200,"bytes":`,
		`"request":"req-1","method":"GET","kind":"get","id":"` + string(id) + `","status":206,"bytes":2,`,
		`"request":"req-1","method":"GET","code":"LINK_INVALID","status":403,`,
	} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Errorf("log %q lacks %s", lines, want)
		}
	}
	if strings.Contains(log.String(), "eyJ") {
		t.Errorf("the log holds a token: %s", &log)
	}
}

func FuzzDisposition(f *testing.F) {
	for _, s := range []string{"a.pdb", "α β.csv", `a"b\c.txt`, "100%41.txt", "x\r\nSet-Cookie: y", "\u202egpj.exe", "\xff", "..", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := disposition(name)
		for i := range len(got) {
			if got[i] < ' ' || got[i] > '~' {
				t.Fatalf("%q gives %q", name, got)
			}
		}
		kind, params, err := mime.ParseMediaType(got)
		if err != nil || kind != "attachment" {
			t.Fatalf("%q gives %q: %v", name, got, err)
		}
		saved := params["filename"]
		if saved != cleanName(name) || strings.ContainsAny(saved, "/\\\x00\n") || saved == "" || saved == ".." || !utf8.ValidString(saved) {
			t.Errorf("%q would be saved as %q", name, saved)
		}
	})
}
