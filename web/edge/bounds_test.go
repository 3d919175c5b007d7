package edge

import (
	"net/http"
	"testing"
	"time"
)

func TestConnectionsHaveTimeLimits(t *testing.T) {
	s := Server(http.NotFoundHandler())
	for name, limit := range map[string]time.Duration{"to send headers": s.ReadHeaderTimeout, "between requests": s.IdleTimeout} {
		if limit < time.Second || limit > 10*time.Minute {
			t.Errorf("%s: %v", name, limit)
		}
	}
	if s.MaxHeaderBytes < 8<<10 || s.MaxHeaderBytes > 1<<20 {
		t.Errorf("%d bytes of headers", s.MaxHeaderBytes)
	}
}

func TestAddressOfARequestOverASocketIsUnknown(t *testing.T) {
	for _, remote := range []string{"@", "", "/run/control.sock"} {
		r := &http.Request{RemoteAddr: remote}
		if Remote(r) != "" || Network(r) != "" || !Shared(r, nil) {
			t.Errorf("%q: remote %q, network %q, shared %v", remote, Remote(r), Network(r), Shared(r, nil))
		}
	}
}
