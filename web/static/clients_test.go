package static

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// stdSender sends files with the standard library.
type stdSender struct{ err error }

func (s stdSender) SendDownload(w http.ResponseWriter, r *http.Request, f app.Download) error {
	if s.err != nil {
		return s.err
	}
	info, err := f.Content.Stat()
	if err != nil {
		return err
	}
	w.Header().Set("ETag", f.ETag)
	http.ServeContent(w, r, f.Filename, info.ModTime(), f.Content)
	return nil
}

// served returns the clients page for an address, in front of an API that answers 418.
func served(address string, sender Sender) http.Handler {
	return Before(teapot, Options{
		Version: "v1.2.0", Sender: sender,
		Address: func(*http.Request) (string, error) { return address, nil },
	})
}

func TestClientsAreServed(t *testing.T) {
	h := served("http://lab.example:8080", stdSender{})
	for _, tt := range []struct {
		method, path string
		status       int
		contentType  string
	}{
		{"GET", "/client/", 200, "text/html; charset=utf-8"},
		{"HEAD", "/client/", 200, "text/html; charset=utf-8"},
		{"GET", "/client/checksums.txt", 200, "text/plain; charset=utf-8"},
		{"GET", "/client/molrun.zip", 200, "application/zip"},
		{"GET", "/client/molrun-1.2.0-py3-none-any.whl", 200, "application/zip"},
		{"HEAD", "/client/molrun-1.2.0-py3-none-any.whl", 200, "application/zip"},
		{"GET", "/client/molrun-1.1.0-py3-none-any.whl", 404, "application/json"},
		{"GET", "/client/../clients.go", 404, "application/json"},
		{"GET", "/client/backend.py", 404, "application/json"},
		{"POST", "/client/", 405, "application/json"},
		{"DELETE", "/client/molrun", 405, "application/json"},
		{"GET", "/clients", 418, ""},
		{"POST", "/client", 418, ""},
	} {
		a := ask(h, tt.method, tt.path)
		if a.Code != tt.status || a.Header().Get("Content-Type") != tt.contentType {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, a.Code, a.Header().Get("Content-Type"))
		}
		if tt.status != 418 {
			wantSafe(t, tt.method, tt.path, a)
			must.Equal(t, tt.path+" has scripts", strings.Contains(a.Header().Get("Content-Security-Policy"), "script"), false)
		}
	}
	for path, to := range map[string]string{"/client": "client/", "/client/molrun.whl": "molrun-1.2.0-py3-none-any.whl"} {
		if a := ask(h, "GET", path); a.Code != 302 || a.Header().Get("Location") != to {
			t.Errorf("%s: %d to %q", path, a.Code, a.Header().Get("Location"))
		}
	}
	first := ask(h, "GET", "/client/molrun.zip")
	must.Equal(t, "the archive is sent again", ask(h, "GET", "/client/molrun.zip", "If-None-Match", first.Header().Get("ETag")).Code, 304)
}

// TestClientsPageShowsItsAddressAsText uses an address that contains a script.
func TestClientsPageShowsItsAddressAsText(t *testing.T) {
	text := ask(served(`http://lab.example/"><script>alert(1)</script>`, stdSender{}), "GET", "/client/").Body.String()
	if strings.Contains(text, "<script") || !strings.Contains(text, "http://lab.example/&#34;&gt;&lt;script&gt;") {
		t.Errorf("the page is\n%s", text)
	}
	text = ask(served("https://lab.example/molrun", stdSender{}), "GET", "/client/").Body.String()
	for _, want := range []string{
		"pip install https://lab.example/molrun/client/molrun.zip\n", "curl -fLO https://lab.example/molrun/client/molrun ",
		"--server https://lab.example/molrun", `href="molrun-1.2.0-py3-none-any.whl"`,
	} {
		must.Contain(t, "the page", text, want)
	}
}

// TestRunningProgramIsServed compares the download with the test binary, whole and in
// part.
func TestRunningProgramIsServed(t *testing.T) {
	h := served("http://lab.example", stdSender{})
	path, err := os.Executable()
	must.OK(t, err)
	want, err := os.ReadFile(path)
	must.OK(t, err)
	whole := ask(h, "GET", "/client/molrun")
	if whole.Code != 200 || !bytes.Equal(whole.Body.Bytes(), want) || whole.Header().Get("ETag") != `"`+sum(want)+`"` {
		t.Errorf("not the running program: %d, %d bytes, %s", whole.Code, whole.Body.Len(), whole.Header().Get("ETag"))
	}
	part := ask(h, "GET", "/client/molrun", "Range", "bytes=5-9", "If-Range", whole.Header().Get("ETag"))
	if part.Code != 206 || !bytes.Equal(part.Body.Bytes(), want[5:10]) {
		t.Errorf("a part of it: %d %q", part.Code, part.Body.Bytes())
	}
	refused := ask(served("http://lab.example", stdSender{fault.Errorf(fault.Unavailable, "too many files")}), "GET", "/client/molrun")
	if refused.Code != 503 || refused.Header().Get("Retry-After") == "" {
		t.Errorf("a refused download: %d", refused.Code)
	}
}

func TestChecksumsAreThoseOfTheFiles(t *testing.T) {
	program := must.Installed(t, "sha256sum")
	h := served("http://lab.example", stdSender{})
	dir := t.TempDir()
	for _, name := range []string{"molrun", "molrun.zip", "molrun-1.2.0-py3-none-any.whl", "checksums.txt"} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), ask(h, "GET", "/client/"+name).Body.Bytes(), 0o600))
	}
	check := exec.Command(program, "--strict", "-c", "checksums.txt")
	check.Dir = dir
	out, err := check.CombinedOutput()
	if err != nil || strings.Count(string(out), ": OK\n") != 3 {
		t.Errorf("sha256sum says %s: %v", out, err)
	}
}
