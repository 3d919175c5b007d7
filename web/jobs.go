package web

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/fault"
)

type jobsRequest struct{ app.JobQuery }

func (r *jobsRequest) read(in *input) {
	r.Name = in.text("jobName")
	r.Limit = int(in.integer("limit", 1, app.MaxPage, app.DefaultPage))
	r.StartKey = in.startKey()
	r.Batch = in.text("batch")
	r.WholeOrganization = in.flag("organization")
	r.Subjobs = in.flag("includeSubjobs")
	r.Statuses = in.flag("statuses")
	r.Email = in.text("jobEmail")
	r.Algorithm = in.text("algorithm")
	r.Status = in.status("status")
}

// jobs handles GET /jobs.
func (a *API) jobs(c *gin.Context) {
	req, err := decode[jobsRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	page, err := a.svc.Jobs.List(ctx(c), caller(c), req.JobQuery)
	if err != nil {
		fail(c, err)
		return
	}
	replyPage(c, "jobs", page.Records, page.StartKey, page.Statuses)
}

type jobRequest struct {
	name string
	wait time.Duration
}

func (r *jobRequest) read(in *input) {
	r.name = in.path("jobName")
	r.wait = in.duration("wait", app.MaxWait)
}

// job handles GET /jobs/{jobName}.
func (a *API) job(c *gin.Context) {
	req, err := decode[jobRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(req.wait + a.options.AnswerTime))
	record, err := a.waitForJob(ctx(c), caller(c), req)
	if err != nil {
		fail(c, err)
		return
	}
	replyRecord(c, record)
}

// waitForJob gives the record as the service does, but waits no longer than
// the server runs. Those who wait leave room for requests that don't.
func (a *API) waitForJob(ctx context.Context, by app.Caller, req jobRequest) (app.Record, error) {
	if req.wait > 0 {
		select {
		case a.waiting <- struct{}{}:
			defer func() { <-a.waiting }()
		default:
			return nil, fault.Errorf(fault.Unavailable, "Too many requests wait for a change; send this one again in a few seconds, or without wait.")
		}
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.options.Stopping, cancel)()
	record, err := a.svc.Jobs.Get(waiting, by, req.name, req.wait)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return a.svc.Jobs.Get(ctx, by, req.name, 0)
	}
	return record, err
}

// namedRequest asks for something to be done to a job, or shown of it.
type namedRequest struct{ name string }

func (r *namedRequest) read(in *input) {
	r.name = in.path("jobName")
	if in.c.Request.Method != http.MethodGet && in.c.Request.Method != http.MethodHead {
		in.noBody()
	}
}

// cancelJob handles POST /jobs/{jobName}/cancel.
func (a *API) cancelJob(c *gin.Context) { a.change(c, a.svc.Jobs.Cancel) }

// retryJob handles POST /jobs/{jobName}/retry.
func (a *API) retryJob(c *gin.Context) { a.change(c, a.svc.Jobs.Retry) }

// pinJob handles POST /jobs/{jobName}/pin.
func (a *API) pinJob(c *gin.Context) { a.change(c, a.svc.Jobs.Pin) }

// unpinJob handles DELETE /jobs/{jobName}/pin.
func (a *API) unpinJob(c *gin.Context) { a.change(c, a.svc.Jobs.Unpin) }

// change does something to a job and answers with its record.
func (a *API) change(c *gin.Context, do func(context.Context, app.Caller, string) (app.Record, error)) {
	req, err := decode[namedRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	record, err := do(ctx(c), caller(c), req.name)
	if err != nil {
		fail(c, err)
		return
	}
	replyRecord(c, record)
}

// deleteJob handles DELETE /jobs/{jobName}.
func (a *API) deleteJob(c *gin.Context) {
	req, err := decode[namedRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	if err := a.svc.Jobs.Delete(ctx(c), caller(c), req.name); err != nil {
		fail(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}
