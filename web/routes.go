package web

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app"
)

// route is one line of a table of routes.
type route struct {
	method, path string
	handle       handler
	class        class
}

// handlers are the handlers of the API, by noun.
type handlers struct {
	algorithms  algorithms
	drain       drain
	files       files
	jobs        jobs
	probes      probes
	results     results
	streams     streams
	submissions submissions
	tables      tables
	uploads     uploads
	views       views
}

// routes lists every route of the API, sorted by path.
func (h handlers) routes() []route {
	return []route{
		{"DELETE", "/admin/drain", h.drain.end, keyed},
		{"GET", "/admin/drain", h.drain.show, keyed},
		{"POST", "/admin/drain", h.drain.begin, keyed},
		{"GET", "/algorithms", h.algorithms.list, keyed},
		{"GET", "/algorithms/:type", h.algorithms.get, keyed},
		{"POST", "/estimate", h.submissions.estimate, batch},
		{"GET", "/events", h.streams.all, following},
		{"GET", "/files", h.files.list, querying},
		{"DELETE", "/files/:fileId", h.files.delete, keyed},
		{"GET", "/healthz", h.probes.health, open},
		{"GET", "/jobs", h.jobs.list, querying},
		{"DELETE", "/jobs/:jobName", h.jobs.delete, keyed},
		{"GET", "/jobs/:jobName", h.jobs.get, keyed},
		{"PATCH", "/jobs/:jobName", h.jobs.label, keyed},
		{"POST", "/jobs/:jobName/cancel", h.jobs.cancel, keyed},
		{"GET", "/jobs/:jobName/events", h.streams.one, following},
		{"GET", "/jobs/:jobName/files", h.results.files, keyed},
		{"GET", "/jobs/:jobName/files/*path", h.results.file, keyed},
		{"GET", "/jobs/:jobName/logs", h.results.log, keyed},
		{"DELETE", "/jobs/:jobName/pin", h.jobs.unpin, keyed},
		{"POST", "/jobs/:jobName/pin", h.jobs.pin, keyed},
		{"POST", "/jobs/:jobName/retry", h.jobs.retry, keyed},
		{"GET", "/jobs/:jobName/series/:name", h.views.series, keyed},
		{"GET", "/jobs/:jobName/table", h.tables.get, querying},
		{"GET", "/jobs/:jobName/tables/:name", h.views.table, keyed},
		{"GET", "/jobs/:jobName/views", h.views.list, keyed},
		{"GET", "/jobs/summary", h.jobs.summary, querying},
		{"GET", "/metrics", h.probes.metrics, open},
		{"GET", "/openapi.yaml", h.probes.openAPI, open},
		{"GET", "/readyz", h.probes.readiness, open},
		{"POST", "/result", h.results.link, keyed},
		{"POST", "/submit-batch", h.submissions.batch, batch},
		{"POST", "/submit-job", h.submissions.job, submitting},
		{"POST", "/upload/:fileId/complete", h.uploads.complete, keyed},
		{"PUT", "/upload/:filename", h.uploads.create, uploading},
		{"POST", "/validate-job", h.submissions.validate, submitting},
		{"GET", "/version", h.probes.version, open},
	}
}

// mount adds the routes to the engine, each behind admit. A route that answers
// GET also answers HEAD.
func mount(e *gin.Engine, routes []route, admit func(class, handler) handler) {
	for _, r := range routes {
		handle := admit(r.class, r.handle)
		answer := func(c *gin.Context) {
			if err := handle(c, app.Caller{}); err != nil {
				fail(c, err)
			}
		}
		e.Handle(r.method, r.path, answer)
		if r.method == http.MethodGet {
			e.Handle(http.MethodHead, r.path, answer)
		}
	}
}
