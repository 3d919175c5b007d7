package respond_test

import (
	"net/http/httptest"
	"strconv"
	"testing"

	"molrun/app/base/fault"
	"molrun/app/test/must"
	"molrun/web/respond"
)

// TestErrorDropsHeadersOfTheIntendedBody sets the headers that a handler sets
// before it fails.
func TestErrorDropsHeadersOfTheIntendedBody(t *testing.T) {
	w := httptest.NewRecorder()
	for _, name := range []string{"Content-Disposition", "Content-Encoding", "Content-Length", "ETag", "Last-Modified", "X-Log-Size"} {
		w.Header().Set(name, "1")
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set(respond.RequestID, "kept")
	respond.Error(w, httptest.NewRequest("GET", "/", nil), fault.Errorf(fault.NotFound, "nothing is there"))
	for name := range w.Header() {
		switch name {
		case "Cache-Control", "Content-Length", "Content-Type", "X-Content-Type-Options", respond.RequestID:
		default:
			t.Errorf("%s: %s is left", name, w.Header().Get(name))
		}
	}
	must.Equal(t, "Content-Length", w.Header().Get("Content-Length"), strconv.Itoa(w.Body.Len()))
	if w.Header().Get("Content-Type") != "application/json" || w.Header().Get(respond.RequestID) != "kept" {
		t.Errorf("headers %v", w.Header())
	}
}

func TestUnencodableValueSendsNothing(t *testing.T) {
	w := httptest.NewRecorder()
	if err := respond.JSON(w, 200, make(chan int)); err == nil || w.Body.Len() > 0 {
		t.Errorf("error %v, sent %q", err, w.Body)
	}
}
