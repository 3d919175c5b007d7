package web

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/job/apikey"
)

// route is an entry of a route table.
type route struct {
	method, path string
	handle       handler
	class        class
	needs        apikey.Rights // rights that the caller needs; 0 means none
}

// Rights that routes require.
const (
	read   = apikey.Read
	submit = apikey.Submit
	admin  = apikey.Administer
)

// handlers are the handlers of the API, by noun.
type handlers struct {
	algorithms  algorithms
	drain       drain
	files       files
	jobs        jobs
	keys        keys
	probes      probes
	results     results
	sessions    sessions
	service     service
	shares      shares
	storage     storage
	streams     streams
	submissions submissions
	tables      tables
	uploads     uploads
	usage       usageReports
	users       users
	views       views
	sharedViews views
	webhooks    webhooks
}

// routes lists every route of the API, sorted by path.
func (h handlers) routes() []route {
	return []route{
		{"GET", "/admin/audit", h.service.audit, querying, admin},
		{"DELETE", "/admin/drain", h.drain.end, keyed, admin},
		{"GET", "/admin/drain", h.drain.show, keyed, read},
		{"POST", "/admin/drain", h.drain.begin, keyed, admin},
		{"GET", "/admin/keys", h.keys.list, keyed, admin},
		{"POST", "/admin/keys", h.keys.create, keyed, admin},
		{"DELETE", "/admin/keys/:keyId", h.keys.delete, keyed, admin},
		{"PATCH", "/admin/keys/:keyId", h.keys.change, keyed, admin},
		{"POST", "/admin/keys/:keyId/disable", h.keys.disable, keyed, admin},
		{"POST", "/admin/keys/:keyId/enable", h.keys.enable, keyed, admin},
		{"POST", "/admin/keys/:keyId/revoke-links", h.keys.revokeLinks, keyed, admin},
		{"POST", "/admin/keys/:keyId/rotate", h.keys.rotate, keyed, admin},
		{"POST", "/admin/prune", h.storage.prune, keyed, admin},
		{"GET", "/admin/status", h.service.status, querying, admin},
		{"GET", "/admin/storage", h.storage.report, querying, admin},
		{"GET", "/admin/users", h.users.list, keyed, admin},
		{"DELETE", "/admin/users/:email", h.users.delete, keyed, admin},
		{"PATCH", "/admin/users/:email", h.users.change, keyed, admin},
		{"GET", "/algorithms", h.algorithms.list, keyed, read},
		{"GET", "/algorithms/:type", h.algorithms.get, keyed, read},
		{"GET", "/algorithms/:type/example/:filename", h.algorithms.exampleFile, keyed, read},
		{"POST", "/estimate", h.submissions.estimate, batch, submit},
		{"GET", "/events", h.streams.all, following, read},
		{"GET", "/files", h.files.list, querying, read},
		{"DELETE", "/files/:fileId", h.files.delete, keyed, submit},
		{"GET", "/files/:fileId/jobs", h.files.readers, querying, read},
		{"GET", "/healthz", h.probes.health, open, 0},
		{"GET", "/jobs", h.jobs.list, querying, read},
		{"DELETE", "/jobs/:jobName", h.jobs.delete, keyed, submit},
		{"GET", "/jobs/:jobName", h.jobs.get, keyed, read},
		{"PATCH", "/jobs/:jobName", h.jobs.label, keyed, submit},
		{"POST", "/jobs/:jobName/cancel", h.jobs.cancel, keyed, submit},
		{"GET", "/jobs/:jobName/dependants", h.jobs.dependants, querying, read},
		{"GET", "/jobs/:jobName/events", h.streams.one, following, read},
		{"GET", "/jobs/:jobName/files", h.results.files, keyed, read},
		{"GET", "/jobs/:jobName/files/*path", h.results.file, keyed, read},
		{"GET", "/jobs/:jobName/logs", h.results.log, keyed, read},
		{"GET", "/jobs/:jobName/notices", h.webhooks.ofJob, keyed, read},
		{"DELETE", "/jobs/:jobName/pin", h.jobs.unpin, keyed, submit},
		{"POST", "/jobs/:jobName/pin", h.jobs.pin, keyed, submit},
		{"POST", "/jobs/:jobName/retry", h.jobs.retry, keyed, submit},
		{"GET", "/jobs/:jobName/series/:name", h.views.series, keyed, read},
		{"POST", "/jobs/:jobName/share", h.shares.create, keyed, submit},
		{"GET", "/jobs/:jobName/table", h.tables.get, querying, read},
		{"GET", "/jobs/:jobName/tables/:name", h.views.table, keyed, read},
		{"GET", "/jobs/:jobName/views", h.views.list, keyed, read},
		{"GET", "/jobs/summary", h.jobs.summary, querying, read},
		{"GET", "/keys", h.keys.listOwn, keyed, read},
		{"POST", "/keys", h.keys.createOwn, keyed, submit},
		{"DELETE", "/keys/:keyId", h.keys.deleteOwn, keyed, submit},
		{"GET", "/metrics", h.probes.metrics, open, 0},
		{"GET", "/openapi.yaml", h.probes.openAPI, open, 0},
		{"GET", "/readyz", h.probes.readiness, open, 0},
		{"POST", "/result", h.results.link, keyed, read},
		{"DELETE", "/session", h.sessions.end, keyed, 0},
		{"GET", "/session", h.sessions.get, keyed, 0},
		{"POST", "/session", h.sessions.begin, sharing, 0},
		{"GET", "/shared/:token", h.shares.get, sharing, 0},
		{"GET", "/shared/:token/archive", h.shares.archive, sharing, 0},
		{"GET", "/shared/:token/files", h.shares.files, sharing, 0},
		{"GET", "/shared/:token/files/*path", h.shares.file, sharing, 0},
		{"GET", "/shared/:token/series/:name", h.sharedViews.series, sharing, 0},
		{"GET", "/shared/:token/tables/:name", h.sharedViews.table, sharing, 0},
		{"GET", "/shared/:token/views", h.sharedViews.list, sharing, 0},
		{"GET", "/shares", h.shares.list, querying, read},
		{"DELETE", "/shares/:id", h.shares.revoke, keyed, submit},
		{"POST", "/submit-batch", h.submissions.batch, batch, submit},
		{"POST", "/submit-job", h.submissions.job, submitting, submit},
		{"POST", "/upload/:fileId/complete", h.uploads.complete, keyed, submit},
		{"POST", "/upload/:fileId/link", h.uploads.renew, keyed, submit},
		{"PUT", "/upload/:filename", h.uploads.create, uploading, submit},
		{"GET", "/usage", h.usage.show, querying, read},
		{"POST", "/validate-job", h.submissions.validate, submitting, submit},
		{"GET", "/version", h.probes.version, open, 0},
		{"GET", "/webhooks", h.webhooks.list, keyed, admin},
		{"POST", "/webhooks", h.webhooks.create, keyed, admin},
		{"DELETE", "/webhooks/:webhookId", h.webhooks.delete, keyed, admin},
		{"PATCH", "/webhooks/:webhookId", h.webhooks.change, keyed, admin},
		{"GET", "/webhooks/:webhookId/deliveries", h.webhooks.deliveries, keyed, admin},
		{"POST", "/webhooks/:webhookId/rotate", h.webhooks.rotate, keyed, admin},
		{"POST", "/webhooks/:webhookId/test", h.webhooks.test, keyed, admin},
	}
}

// mount adds the routes to the engine, each wrapped by admit. A route for GET also
// handles HEAD.
func mount(e *gin.Engine, routes []route, admit func(route) handler) {
	for _, r := range routes {
		handle := admit(r)
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
