package client

import (
	"context"
	"encoding/json"
	"net/http"

	"molrun/app/base/fault"
)

// Submission requests one job.
type Submission struct {
	Name     string          `json:"jobName,omitempty"`
	Type     string          `json:"type,omitempty"`
	Version  string          `json:"version,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"`
	Terms
}

// BatchSubmission requests one job for each element of Settings, each job that FanOut
// creates or, without Type, each element of Jobs.
type BatchSubmission struct {
	Name     string            `json:"batchName"`
	Type     string            `json:"type,omitempty"`
	Version  string            `json:"version,omitempty"`
	Settings []json.RawMessage `json:"settings,omitempty"`
	Names    []string          `json:"jobNames,omitempty"`
	FanOut   *FanOut           `json:"fanOut,omitempty"`
	Jobs     []Submission      `json:"jobs,omitempty"`
	Terms
}

// Terms holds the members common to job and batch submissions.
type Terms struct {
	Priority   int               `json:"priority,omitempty"`
	MaxRuntime int64             `json:"maxRuntimeSeconds,omitempty"`
	After      []string          `json:"after,omitempty"` // jobs that must be COMPLETED first
	AfterAny   bool              `json:"afterAny,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	Note       string            `json:"note,omitempty"`
	Notify     []string          `json:"notify,omitempty"` // recipients notified when it finishes: https://… or mailto:…
}

// FanOut creates the jobs of a batch from the sources in Each, which are given by
// setting.
type FanOut struct {
	Each     map[string]string `json:"each"`
	Settings json.RawMessage   `json:"settings,omitempty"` // common to all jobs
}

// Submit queues a job, or returns the existing job if the same submission was sent
// before. It is idempotent.
func (c *Client) Submit(ctx context.Context, s Submission) (*Job, error) {
	return requestJSON[Job](ctx, c, http.MethodPost, "/submit-job", nil, s)
}

// SubmitBatch queues many jobs, all or none.
func (c *Client) SubmitBatch(ctx context.Context, s BatchSubmission) (*Job, error) {
	return requestJSON[Job](ctx, c, http.MethodPost, "/submit-batch", nil, s)
}

// Validation is the result of validating a submission.
type Validation struct {
	Valid      bool            `json:"valid"`
	Normalized json.RawMessage `json:"normalized,omitempty"`
	Detail     []fault.Field   `json:"detail"`
}

// Validate checks a submission without submitting it.
func (c *Client) Validate(ctx context.Context, s Submission) (*Validation, error) {
	return requestJSON[Validation](ctx, c, http.MethodPost, "/validate-job", nil, s)
}
