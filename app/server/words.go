package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/unit"
	"molrun/app/job/audit"
	"molrun/web"
	"molrun/web/agent"
	"molrun/web/compat"
)

// inOtherWords adds what offers the API in other words: to language models at /mcp, and to
// clients of a hosted service below /compat/.
func inOtherWords(s *service, api http.Handler, version string) http.Handler {
	models := agent.Handler(api, version)
	var hosted http.Handler
	if l := s.config.Limits; s.config.Compat {
		hosted = compat.Handler(api, compat.Options{
			Log:     s.log,
			MaxBody: int64(l.BatchBody), Arrive: time.Duration(l.BatchTime), Finish: finisher(s), OnRevoke: s.accounts.OnRevoke,
			Base: func(r *http.Request) (string, error) { return web.BaseURL(s.config.PublicURL, r) },
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/mcp":
			models.ServeHTTP(w, r)
		case hosted != nil && strings.HasPrefix(r.URL.Path, compat.Path):
			hosted.ServeHTTP(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// finisher completes an upload for its owner: who has the link may.
func finisher(s *service) func(ctx context.Context, id string) error {
	return func(ctx context.Context, id string) error {
		u, err := s.uploads.Upload(ctx, app.UploadID(id))
		if err != nil {
			return err
		}
		_, err = s.uploads.Complete(ctx, app.Caller{Organization: u.Organization, Email: u.Email}, id, nil)
		if err == nil {
			s.audit.Add(audit.Entry{Time: unit.At(time.Now()), Organization: u.Organization, Action: "upload.complete", Object: id, Result: "ok", Remote: "link"})
		}
		return err
	}
}
