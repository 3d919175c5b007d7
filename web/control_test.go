package web_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/client"
	"molrun/app/test/must"
	"molrun/web"
	"molrun/web/edge"
)

// control serves the control socket of the service.
func (s *service) control() (socket string) {
	s.t.Helper()
	return s.controlWith(web.ControlOptions{Log: zerolog.Nop()})
}

func (s *service) controlWith(o web.ControlOptions) (socket string) {
	s.t.Helper()
	socket = filepath.Join(s.t.TempDir(), "control.sock")
	listener, err := net.Listen("unix", socket)
	must.OK(s.t, err)
	server := &httptest.Server{Listener: listener, Config: edge.Server(web.Control(s.app.Service, s.app.Accounts, s.keeper, s.app.Usage, o))}
	server.Start()
	s.t.Cleanup(server.Close)
	return socket
}

func TestKeysAreCreatedListedDisabledAndDeleted(t *testing.T) {
	s := start(t)
	operator := client.NewControl(s.control())
	ctx := t.Context()
	made, err := operator.CreateKey(ctx, client.KeyRequest{Organization: "lab", Email: "Fay@lab.example", Role: "admin", Expires: 48 * time.Hour})
	must.OK(t, err)
	same(t, "made", []any{made.Organization, made.Email, made.Role, made.Disabled}, []any{"lab", "fay@lab.example", "admin", false})
	if life := made.ExpiresAt.Sub(made.CreatedAt); life < 48*time.Hour-time.Second || life > 48*time.Hour+time.Second {
		t.Errorf("it lives %v", life)
	}
	works := func(want int) {
		t.Helper()
		s.wantAs(made.Secret, want, "GET", "/jobs", "")
	}
	works(200)
	if k, err := operator.DisableKey(ctx, made.ID); err != nil || !k.Disabled {
		t.Errorf("disable: %+v, %v", k, err)
	}
	works(401)
	if k, err := operator.EnableKey(ctx, made.ID); err != nil || k.Disabled {
		t.Errorf("enable: %+v, %v", k, err)
	}
	works(200)
	keys, err := operator.Keys(ctx)
	if err != nil || len(keys) != 5 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	if err := operator.DeleteKey(ctx, made.ID); err != nil {
		t.Error(err)
	}
	works(401)
	if keys, err = operator.Keys(ctx); err != nil || len(keys) != 4 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	plain, err := operator.CreateKey(ctx, client.KeyRequest{Organization: "lab", Email: "gus@lab.example"})
	if err != nil || plain.Role != "member" || !plain.ExpiresAt.IsZero() {
		t.Errorf("%+v, %v", plain, err)
	}
}

func TestControlRejectsUnknownKeysAndRoutes(t *testing.T) {
	s := start(t)
	socket := s.control()
	operator := client.NewControl(socket)
	tests := []struct {
		name string
		do   func(context.Context) error
		code string
	}{
		{"disable", func(ctx context.Context) error { _, err := operator.DisableKey(ctx, "absent"); return err }, "NOT_FOUND"},
		{"enable", func(ctx context.Context) error { _, err := operator.EnableKey(ctx, "absent"); return err }, "NOT_FOUND"},
		{"delete", func(ctx context.Context) error { return operator.DeleteKey(ctx, "a/b") }, "NOT_FOUND"},
		{"create", func(ctx context.Context) error {
			_, err := operator.CreateKey(ctx, client.KeyRequest{Organization: "a/b", Email: "nobody", Role: "king"})
			return err
		}, "INVALID"},
	}
	for _, tt := range tests {
		var e *client.Error
		if err := tt.do(t.Context()); !errors.As(err, &e) || e.Code != tt.code {
			t.Errorf("%s: %v", tt.name, err)
		} else if tt.code == "INVALID" && len(e.Details) != 3 {
			t.Errorf("%s: %+v", tt.name, e.Details)
		}
	}
	raw := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	defer raw.CloseIdleConnections()
	for path, status := range map[string]int{"/control/nothing": 404, "/jobs": 404, "/control/keys?x=1": 422} {
		resp, err := raw.Get("http://molrun" + path)
		must.OK(t, err)
		resp.Body.Close()
		if resp.StatusCode != status || resp.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	s.wantAs(s.root, 404, "GET", "/control/keys", "")
	if strings.Contains(s.log.String(), "molrun_") {
		t.Error("the log holds a key")
	}
}
