package web

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/algorithm/fanout"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/web/decode"
	"molrun/web/respond"
)

// submissions handles submissions of jobs and batches.
type submissions struct {
	svc       *app.Jobs
	estimates *app.Estimates
}

// job handles POST /submit-job.
func (h submissions) job(c *gin.Context, by app.Caller) error {
	sub, faults, err := decode.Lenient(c, readJob)
	if err != nil {
		return err
	}
	sub.Faults = faults
	auditObject(c, sub.Name)
	record, created, err := h.svc.Submit(c.Request.Context(), by, sub)
	if err != nil {
		return err
	}
	respond.Record(c.Writer, strictjson.Append(record, "created", created))
	return nil
}

// batchRequest is a request for a batch of one type or, if pipeline is set, for a
// pipeline.
type batchRequest struct {
	app.BatchSubmission
	pipeline bool
	jobs     []app.PipelineJob
}

// batch handles POST /submit-batch. Its body is JSON or a table.
func (h submissions) batch(c *gin.Context, by app.Caller) error {
	read, request := decode.Lenient[batchRequest], readBatch
	if decode.IsTable(c) {
		read, request = decode.Table, readTableBatch
	}
	req, faults, err := read(c, request)
	if err != nil {
		return err
	}
	req.Faults = faults
	auditObject(c, req.Name)
	table := req.FanOut
	record, created, err := req.submit(c.Request.Context(), h.svc, by)
	if err != nil {
		return inQuery(table, err)
	}
	respond.Record(c.Writer, strictjson.Append(record, "created", created))
	return nil
}

func (req batchRequest) submit(ctx context.Context, svc *app.Jobs, by app.Caller) (app.Record, bool, error) {
	if req.pipeline {
		return svc.SubmitPipeline(ctx, by, req.asPipeline())
	}
	return svc.SubmitBatch(ctx, by, req.BatchSubmission)
}

func (req batchRequest) asPipeline() app.Pipeline {
	return app.Pipeline{BatchSubmission: req.BatchSubmission, Jobs: req.jobs}
}

// estimate handles POST /estimate. Its body is the same as for submitting a job or a
// batch.
func (h submissions) estimate(c *gin.Context, by app.Caller) error {
	var job *app.Submission
	batch, faults, err := decode.Lenient(c, func(r *decode.Reader) (req batchRequest) {
		b := r.Object(decode.Required)
		if b.Has("batchName") {
			return readBatchOf(r, b)
		}
		sub := readJobOf(b)
		job = &sub
		return req
	})
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	est, err := h.estimates.Of(ctx, func(planner app.Planner) (*app.Planned, error) {
		batch.Faults = faults
		switch {
		case job != nil:
			job.Faults = faults
			return planner.Job(ctx, by, *job)
		case batch.pipeline:
			return planner.Pipeline(ctx, by, batch.asPipeline())
		}
		return planner.Batch(ctx, by, batch.BatchSubmission)
	})
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, est)
}

type validationView struct {
	Valid      bool            `json:"valid"`
	Normalized json.RawMessage `json:"normalized,omitempty"`
	Detail     []fault.Field   `json:"detail"`
}

// validate handles POST /validate-job. Errors in a body that is a JSON object are the
// response, not an error.
func (h submissions) validate(c *gin.Context, by app.Caller) error {
	sub, faults, err := decode.Lenient(c, readJob)
	if err != nil {
		return err
	}
	sub.Faults = faults
	v, err := h.svc.Validate(c.Request.Context(), by, sub)
	if err != nil {
		return err
	}
	view := validationView{v.Valid, v.Normalized, v.Detail}
	if view.Detail == nil {
		view.Detail = []fault.Field{}
	}
	return respond.JSON(c.Writer, http.StatusOK, view)
}

func readJob(r *decode.Reader) app.Submission { return readJobOf(r.Object(decode.Required)) }

func readJobOf(b *decode.Object) app.Submission {
	return app.Submission{
		Body:       b.Value(),
		Name:       b.Text("jobName", decode.Required),
		Type:       b.Text("type", decode.Required),
		Version:    b.Text("version", decode.Optional),
		Settings:   b.Member("settings", strictjson.Object, decode.Required),
		Priority:   int(decode.OrZero(b.Integer("priority", -decode.MaxExact, decode.MaxExact))),
		MaxRuntime: decode.OrZero(b.Integer("maxRuntimeSeconds", 1, decode.MaxExact)),
		Labels:     readLabels(b),
		After:      readAfter(b),
	}
}

func readAfter(b *decode.Object) app.After {
	return app.After{Names: b.Texts("after"), Any: b.Flag("afterAny")}
}

func readBatch(r *decode.Reader) batchRequest { return readBatchOf(r, r.Object(decode.Required)) }

func readBatchOf(r *decode.Reader, b *decode.Object) batchRequest {
	fanOut := readFanOut(r, b)
	pipeline := b.Has("jobs")
	needed := decode.Need(!pipeline)
	req := batchRequest{pipeline: pipeline, BatchSubmission: app.BatchSubmission{
		Body:       b.Value(),
		Name:       b.Text("batchName", decode.Required),
		Type:       b.Text("type", needed),
		Version:    b.Text("version", decode.Optional),
		Rows:       b.Items("settings", strictjson.Object, needed && decode.Need(fanOut == nil)),
		RowNames:   b.Texts("jobNames"),
		FanOut:     fanOut,
		Priority:   int(decode.OrZero(b.Integer("priority", -decode.MaxExact, decode.MaxExact))),
		MaxRuntime: decode.OrZero(b.Integer("maxRuntimeSeconds", 1, decode.MaxExact)),
		Labels:     readLabels(b),
		After:      readAfter(b),
	}}
	for _, job := range b.Objects("jobs") {
		req.jobs = append(req.jobs, readPipelineJob(job))
	}
	for _, member := range []string{"type", "version", "settings", "jobNames", fanout.Member} {
		if pipeline && b.Has(member) {
			b.Fault("value", member, "each item of jobs has its own; send either this or jobs")
		}
	}
	return req
}

func readPipelineJob(b *decode.Object) app.PipelineJob {
	j := app.PipelineJob{
		Name:       b.Text("jobName", decode.Optional),
		Type:       b.Text("type", decode.Required),
		Version:    b.Text("version", decode.Optional),
		Settings:   b.Member("settings", strictjson.Object, decode.Required),
		Priority:   b.Integer("priority", -decode.MaxExact, decode.MaxExact),
		MaxRuntime: decode.OrZero(b.Integer("maxRuntimeSeconds", 1, decode.MaxExact)),
	}
	if after := readAfter(b); b.Has("after") {
		j.After = &after
	}
	return j
}

// readFanOut reads the sources from which a batch's jobs are created. It returns nil if
// the jobs are listed instead.
func readFanOut(r *decode.Reader, b *decode.Object) *fanout.Request {
	v := b.Member(fanout.Member, strictjson.Object, decode.Optional)
	if v == nil {
		return nil
	}
	request, faults := fanout.ReadRequest(v)
	for _, f := range faults {
		r.Fault(f.Type, append([]any{"body"}, f.Loc...), "%s", f.Msg)
	}
	for _, member := range []string{"settings", "jobNames"} {
		if b.Has(member) {
			b.Fault("value", member, "fanOut creates the jobs and their names; send either this or fanOut")
		}
	}
	return &request
}

// readTableBatch reads a batch whose body is a table; everything else is in the query.
func readTableBatch(r *decode.Reader) batchRequest {
	text, tabs := r.Table()
	request := fanout.FromBody(text, tabs)
	sub := app.BatchSubmission{
		Body:       r.WithText(text),
		Name:       r.RequiredText("batchName"),
		Type:       r.RequiredText("type"),
		Version:    r.Text("version"),
		FanOut:     &request,
		Priority:   int(r.Integer("priority", -decode.MaxExact, decode.MaxExact, 0)),
		MaxRuntime: r.Integer("maxRuntimeSeconds", 1, decode.MaxExact, 0),
		After:      app.After{Names: r.Texts("after"), Any: r.Flag("afterAny")},
	}
	for _, tag := range readTags(r) {
		if sub.Labels.Tags == nil {
			sub.Labels.Tags = map[string]*string{}
		}
		sub.Labels.Tags[tag.Key] = &tag.Value
	}
	if note := r.Text("note"); note != "" {
		sub.Labels.Note = &note
	}
	sub.Labels.Notify = r.Texts("notify")
	return batchRequest{BatchSubmission: sub}
}

// inQuery moves the locations of errors from the body to the query. If the body is a
// table, the query has the members that are otherwise in the body.
func inQuery(table *fanout.Request, err error) error {
	if table == nil || !table.IsBody() {
		return err
	}
	for _, f := range decode.Faults(err) {
		if len(f.Loc) < 2 {
			continue
		}
		if member, isMember := f.Loc[1].(string); isMember {
			f.Loc[0] = "query"
			if member == "tags" {
				f.Loc[1] = "tag"
			}
		}
	}
	return err
}

func readLabels(b *decode.Object) app.Labels {
	l := app.Labels{Tags: b.Pairs("tags"), Notify: b.Texts("notify")}
	if note := b.Member("note", strictjson.String, decode.Optional); note != nil {
		l.Note = &note.Text
	}
	return l
}
