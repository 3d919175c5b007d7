package web

import (
	"encoding/json"
	"slices"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/strictjson"
)

type submitRequest struct{ app.Submission }

func (r *submitRequest) read(in *input) {
	b := in.object(required)
	r.Body = b.value
	r.Name = b.text("jobName", required)
	r.Type = b.text("type", required)
	r.Version = b.text("version", optional)
	r.Settings = b.member("settings", strictjson.Object, required)
	r.Priority = int(valueOf(b.integer("priority", -maxExact, maxExact)))
	r.MaxRuntime = valueOf(b.integer("maxRuntimeSeconds", 1, maxExact))
}

type batchRequest struct{ app.BatchSubmission }

func (r *batchRequest) read(in *input) {
	b := in.object(required)
	r.Body = b.value
	r.Name = b.text("batchName", required)
	r.Type = b.text("type", required)
	r.Version = b.text("version", optional)
	r.Rows = b.items("settings", strictjson.Object, required)
	r.RowNames = b.texts("jobNames")
	r.Priority = int(valueOf(b.integer("priority", -maxExact, maxExact)))
	r.MaxRuntime = valueOf(b.integer("maxRuntimeSeconds", 1, maxExact))
}

// submitJob handles POST /submit-job.
func (a *API) submitJob(c *gin.Context) {
	req, err := decode[submitRequest](c)
	if req.Faults, err = passOn(err, req.Body); err != nil {
		fail(c, err)
		return
	}
	about(c, req.Name)
	record, created, err := a.svc.Jobs.Submit(ctx(c), caller(c), req.Submission)
	if err != nil {
		fail(c, err)
		return
	}
	replyRecord(c, with(record, "created", created))
}

// submitBatch handles POST /submit-batch.
func (a *API) submitBatch(c *gin.Context) {
	req, err := decode[batchRequest](c)
	if req.Faults, err = passOn(err, req.Body); err != nil {
		fail(c, err)
		return
	}
	about(c, req.Name)
	record, created, err := a.svc.Jobs.SubmitBatch(ctx(c), caller(c), req.BatchSubmission)
	if err != nil {
		fail(c, err)
		return
	}
	replyRecord(c, with(record, "created", created))
}

type validationView struct {
	Valid      bool            `json:"valid"`
	Normalized json.RawMessage `json:"normalized,omitempty"`
	Detail     []fault.Field   `json:"detail"`
}

// validateJob handles POST /validate-job. What is wrong with a body that is a
// JSON object is its answer and no error.
func (a *API) validateJob(c *gin.Context) {
	req, err := decode[submitRequest](c)
	if req.Faults, err = passOn(err, req.Body); err != nil {
		fail(c, err)
		return
	}
	v, err := a.svc.Jobs.Validate(ctx(c), caller(c), req.Submission)
	if err != nil {
		fail(c, err)
		return
	}
	view := validationView{v.Valid, v.Normalized, v.Detail}
	if view.Detail == nil {
		view.Detail = []fault.Field{}
	}
	reply(c, view)
}

// passOn gives the faults that decode found in a body which could be read, so
// that the service tells them together with its own. Any other error stays.
func passOn(err error, body *strictjson.Value) ([]fault.Field, error) {
	faults := faultsOf(err)
	elsewhere := func(f fault.Field) bool { return f.Loc[0] != "body" }
	if body == nil || faults == nil || slices.ContainsFunc(faults, elsewhere) {
		return nil, err
	}
	return faults, nil
}
