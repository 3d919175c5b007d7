package web

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// class says how a route is guarded and limited.
type class int

const (
	keyed   class = iota // wants an API key
	open                 // wants none
	listing              // the others want one, and have a rate
	submitting
	batch // submitting, with a large body
	uploading
)

// route is one line of a table of routes.
type route struct {
	method, path string
	handle       gin.HandlerFunc
	class        class
}

// routes is every route of the API, sorted by path.
func (a *API) routes() []route {
	return []route{
		{"GET", "/algorithms", a.algorithms, keyed},
		{"GET", "/algorithms/:type", a.algorithm, keyed},
		{"GET", "/files", a.files, listing},
		{"DELETE", "/files/:fileId", a.deleteFile, keyed},
		{"GET", "/healthz", a.healthz, open},
		{"GET", "/jobs", a.jobs, listing},
		{"DELETE", "/jobs/:jobName", a.deleteJob, keyed},
		{"GET", "/jobs/:jobName", a.job, keyed},
		{"POST", "/jobs/:jobName/cancel", a.cancelJob, keyed},
		{"GET", "/jobs/:jobName/files", a.resultFiles, keyed},
		{"GET", "/jobs/:jobName/logs", a.log, keyed},
		{"DELETE", "/jobs/:jobName/pin", a.unpinJob, keyed},
		{"POST", "/jobs/:jobName/pin", a.pinJob, keyed},
		{"POST", "/jobs/:jobName/retry", a.retryJob, keyed},
		{"GET", "/metrics", a.metrics, open},
		{"GET", "/openapi.yaml", a.openAPI, open},
		{"GET", "/readyz", a.readyz, open},
		{"POST", "/result", a.result, keyed},
		{"POST", "/submit-batch", a.submitBatch, batch},
		{"POST", "/submit-job", a.submitJob, submitting},
		{"POST", "/upload/:fileId/complete", a.completeUpload, keyed},
		{"PUT", "/upload/:filename", a.createUpload, uploading},
		{"POST", "/validate-job", a.validateJob, submitting},
		{"GET", "/version", a.version, open},
	}
}

// mount adds the routes to the engine, each behind what admit gives for its
// class. What answers GET also answers HEAD.
func mount(e *gin.Engine, routes []route, admit func(class) gin.HandlerFunc) {
	for _, r := range routes {
		e.Handle(r.method, r.path, admit(r.class), r.handle)
		if r.method == http.MethodGet {
			e.Handle(http.MethodHead, r.path, admit(r.class), r.handle)
		}
	}
}
