package web_test

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

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
	raw := controlClient(socket)
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
