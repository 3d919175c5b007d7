// Package web is the HTTP interface of the service. A handler decodes a request, calls
// one method of [app.Service], [listing.Lists] or [output.Outputs], and encodes the
// result; it contains no business rules. routes.go lists the routes, and openapi.yaml
// describes them.
package web

import (
	"net/http"
	"strings"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/job/access"
	"molrun/app/job/delivery"
	"molrun/app/job/follow"
	"molrun/app/job/listing"
	"molrun/app/job/output"
	"molrun/app/job/retention"
	"molrun/app/job/status"
	"molrun/app/job/upload"
	"molrun/app/job/usage"
	"molrun/web/edge"
	"molrun/web/static"
)

// Outer combines the API and the signed file links. Requests below /blobs/ keep the
// server's own ResponseWriter, so that files are sent with sendfile.
func Outer(api, blobs http.Handler, log zerolog.Logger) http.Handler {
	return edge.Trace(log, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.EscapedPath(), "/blobs/") {
			blobs.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}))
}

// Services are the services behind the API.
type Services struct {
	*app.Service
	Accounts *access.Accounts
	Files    *upload.Files
	Lists    *listing.Lists
	Outputs  *output.Outputs
	Results  *output.Results
	Shares   *output.Shares
	Linked   Linked
	Sender   Sender
	Follower *follow.Follower
	Usage    *usage.Reports
	Notices  *delivery.Webhooks
	Status   *status.Reports
	Keeper   *retention.Keeper
}

// New returns the handler of the API, the web application, the clients and the
// documentation, to be wrapped with [Outer].
func New(s Services, o Options) http.Handler {
	o = o.withDefaults()
	base := publicURL(o.PublicURL)
	api := handlers{
		algorithms:  algorithms{s.Algorithms, o.Example},
		drain:       drain{s.Runs},
		files:       files{s.Files, s.Lists},
		jobs:        jobs{s.Jobs, s.Lists, newWaiters(o), o.Stopping},
		keys:        keys{s.Accounts},
		probes:      probes{o.Version, o.Ready, o.Registry, o.Log},
		results:     results{s.Jobs, s.Results, s.Outputs, s.Sender, base, o.AnswerTime},
		service:     service{s.Accounts, s.Status, o.Version, o.Isolation, o.LastAudited},
		sessions:    sessions{s.Accounts, edge.Cookie{PublicURL: o.PublicURL}, o.Version, o.Features, bodyLimits{o.MaxBody, o.MaxBatchBody}},
		shares:      shares{s.Shares, s.Algorithms, s.Linked, base},
		storage:     storage{s.Keeper},
		streams:     streams{s.Follower, newListeners(o), o.AnswerTime, o.Stopping},
		submissions: submissions{s.Jobs, app.NewEstimates(s.Jobs, s.Runs)},
		tables:      tables{s.Lists, o.AnswerTime},
		uploads:     uploads{s.Files, base},
		usage:       usageReports{s.Usage},
		users:       users{s.Accounts},
		views:       views{s.Outputs, nil},
		sharedViews: views{s.Outputs, s.Shares},
		webhooks:    webhooks{s.Notices},
	}
	around := observer{newRequestMetrics(o.Registry), newAuditor(o.Audit, o.Now)}
	engine := newEngine(around.observe)
	mount(engine, api.routes(), newGuard(s.Accounts, o).admit)
	return static.Before(engine, static.Options{Version: o.Version, Address: base.of, Sender: s.Sender})
}
