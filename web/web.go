// Package web is the HTTP interface of the service. A handler decodes a
// request, calls one method of [app.Service], [listing.Lists] or [output.Outputs] and encodes what
// that returns; it holds no rule. routes.go lists the routes, openapi.yaml describes them.
package web

import (
	"net/http"
	"strings"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/access"
	"molrun/app/estimate"
	"molrun/app/follow"
	"molrun/app/listing"
	"molrun/app/output"
	"molrun/app/upload"
	"molrun/web/edge"
)

// Outer joins the API and the links to files. Requests below /blobs/ keep the
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

// Services are the use cases that the API offers.
type Services struct {
	*app.Service
	Accounts *access.Accounts
	Files    *upload.Files
	Lists    *listing.Lists
	Outputs  *output.Outputs
	Sender   Sender
	Follower *follow.Follower
}

// New returns the handler of the API, to be served below [Outer].
func New(s Services, o Options) http.Handler {
	o = o.withDefaults()
	base := publicURL(o.PublicURL)
	api := handlers{
		algorithms:  algorithms{s.Algorithms},
		drain:       drain{s.Runs, func(by app.Caller) app.Caller { return by }},
		files:       files{s.Files, s.Lists},
		jobs:        jobs{s.Jobs, s.Lists, newWaiters(o)},
		probes:      probes{o.Version, o.Ready, o.Registry, o.Log},
		results:     results{s.Jobs, s.Outputs, s.Sender, base, o.AnswerTime},
		streams:     streams{s.Follower, newListeners(o), o.AnswerTime, o.Stopping},
		submissions: submissions{s.Jobs, estimate.New(s.Jobs, s.Runs)},
		tables:      tables{s.Lists, o.AnswerTime},
		uploads:     uploads{s.Files, base},
		views:       views{s.Outputs},
	}
	around := observer{newRequestMetrics(o.Registry), newAuditor(o.Audit, o.Now)}
	engine := newEngine(around.observe)
	mount(engine, api.routes(), newGuard(s.Accounts, o).admit)
	return engine
}
