package server

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/unit"
	"molrun/app/job/audit"
	"molrun/web"
	"molrun/web/agent"
	"molrun/web/compat"
	"molrun/web/msa"
)

// withAlternativeAPIs adds alternative forms of the API: for language models at /mcp, for
// clients of a hosted service under /compat/, and for clients of an alignment server
// under /msa/.
func withAlternativeAPIs(s *service, api http.Handler, version string) http.Handler {
	models := agent.Handler(api, version)
	var hosted http.Handler
	if l := s.config.Limits; s.config.Compat {
		hosted = compat.Handler(api, compat.Options{
			Log:     s.log,
			MaxBody: int64(l.BatchBody), Arrive: time.Duration(l.BatchTime), Finish: finisher(s), OnRevoke: s.accounts.OnRevoke,
			Base: func(r *http.Request) (string, error) { return web.BaseURL(s.config.PublicURL, r) },
		})
	}
	on, limits := s.config.MSA, s.config.Limits
	alignments := msa.Handler(api, msa.Options{
		Log: s.log, MaxBody: min(int64(limits.Body), 1<<20), Arrive: time.Duration(limits.BodyTime), Stall: time.Duration(limits.AnswerTime),
		Databases: s.databases, Cores: on.Cores,
		Trusted: s.config.Proxy.Trusted, Networks: on.Networks, Organization: on.Organization,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/mcp":
			models.ServeHTTP(w, r)
		case hosted != nil && strings.HasPrefix(r.URL.Path, compat.Path):
			hosted.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, msa.Path):
			alignments.ServeHTTP(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// databases identifies the databases searched by jobs of the type msa, which are named in
// a file in their folder.
func (s *service) databases() string {
	text, err := os.ReadFile(filepath.Join(s.config.Site.Paths["msa"], "databases.json"))
	if err != nil {
		return "" // the jobs then report what is missing
	}
	return string(text)
}

// makers returns the site's additions to jobs that create files for other jobs.
func (s *service) makers() map[string]app.MakerSite {
	settings := map[string]any{}
	if n := s.config.MSA.Cores; n > 0 {
		settings["cores"] = n
	}
	return map[string]app.MakerSite{"msa": {Settings: settings, Data: s.databases}}
}

// finisher completes an upload on behalf of its owner: possession of the link is
// sufficient.
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
