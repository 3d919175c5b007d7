package static

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// teapot is an API that answers 418.
var teapot = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })

func ask(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestPolicyAllowsTheStyleOfPages computes the digest of the style as a browser does.
func TestPolicyAllowsTheStyleOfPages(t *testing.T) {
	for _, path := range []string{"/docs/server", "/client/"} {
		a := ask(served("http://lab.example", stdSender{}), "GET", path)
		_, rest, _ := strings.Cut(a.Body.String(), "<style>")
		shown, _, found := strings.Cut(rest, "</style>")
		if !found || !strings.Contains(a.Header().Get("Content-Security-Policy"), "style-src 'sha256-"+styleDigest(shown)+"'") {
			t.Errorf("%s: the policy %s does not allow the style\n%s", path, a.Header().Get("Content-Security-Policy"), shown)
		}
	}
}

// wantSafe requires that a page can't run scripts, and that HEAD has no body.
func wantSafe(t *testing.T, method, path string, a *httptest.ResponseRecorder) {
	t.Helper()
	csp := a.Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") || a.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s %s: policy %q", method, path, csp)
	}
	if method == "HEAD" && a.Body.Len() > 0 {
		t.Errorf("%s %s has a body", method, path)
	}
}
