package web

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/strictjson"
	"molrun/web/decode"
	"molrun/web/respond"
)

// submissions queues jobs and batches.
type submissions struct{ svc *app.Jobs }

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

// batchRequest asks for rows of one type or, with Jobs, for a pipeline.
type batchRequest struct {
	app.BatchSubmission
	pipeline bool
	jobs     []app.PipelineJob
}

// batch handles POST /submit-batch.
func (h submissions) batch(c *gin.Context, by app.Caller) error {
	req, faults, err := decode.Lenient(c, readBatch)
	if err != nil {
		return err
	}
	sub := req.BatchSubmission
	sub.Faults = faults
	auditObject(c, sub.Name)
	var record app.Record
	var created bool
	if req.pipeline {
		record, created, err = h.svc.SubmitPipeline(c.Request.Context(), by, app.Pipeline{BatchSubmission: sub, Jobs: req.jobs})
	} else {
		record, created, err = h.svc.SubmitBatch(c.Request.Context(), by, sub)
	}
	if err != nil {
		return err
	}
	respond.Record(c.Writer, strictjson.Append(record, "created", created))
	return nil
}

type validationView struct {
	Valid      bool            `json:"valid"`
	Normalized json.RawMessage `json:"normalized,omitempty"`
	Detail     []fault.Field   `json:"detail"`
}

// validate handles POST /validate-job. Faults of a body that is a JSON object
// are its answer, not an error.
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

func readJob(r *decode.Reader) app.Submission {
	b := r.Object(decode.Required)
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

func readBatch(r *decode.Reader) batchRequest {
	b := r.Object(decode.Required)
	pipeline := b.Has("jobs")
	needed := decode.Need(!pipeline)
	req := batchRequest{pipeline: pipeline, BatchSubmission: app.BatchSubmission{
		Body:       b.Value(),
		Name:       b.Text("batchName", decode.Required),
		Type:       b.Text("type", needed),
		Version:    b.Text("version", decode.Optional),
		Rows:       b.Items("settings", strictjson.Object, needed),
		RowNames:   b.Texts("jobNames"),
		Priority:   int(decode.OrZero(b.Integer("priority", -decode.MaxExact, decode.MaxExact))),
		MaxRuntime: decode.OrZero(b.Integer("maxRuntimeSeconds", 1, decode.MaxExact)),
		Labels:     readLabels(b),
		After:      readAfter(b),
	}}
	for _, job := range b.Objects("jobs") {
		req.jobs = append(req.jobs, readPipelineJob(job))
	}
	for _, member := range []string{"type", "version", "settings", "jobNames"} {
		if pipeline && b.Has(member) {
			b.Fault("value", member, "each of jobs has its own; leave this out, or jobs")
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

func readLabels(b *decode.Object) app.Labels {
	l := app.Labels{Tags: b.Pairs("tags")}
	if note := b.Member("note", strictjson.String, decode.Optional); note != nil {
		l.Note = &note.Text
	}
	return l
}
