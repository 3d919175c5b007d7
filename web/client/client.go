// Package client is a typed client of the service's API, for programs in Go.
//
// It holds no rule of the service: what is wrong with a request, the service
// says, and it arrives as an [Error].
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client calls one service with one API key. It is safe for concurrent use.
type Client struct {
	base string
	key  string
	http *http.Client
}

// New gives a client of the service at base, such as http://127.0.0.1:8080.
func New(base, key string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), key: key, http: &http.Client{}}
}

// Error is an answer other than success.
type Error struct {
	Status  int
	Code    string  // such as JOB_ALREADY_EXISTS; "" with Details
	Message string  // says what to do next
	Details []Fault // of status 422: every fault of the request
}

// Fault is one fault of a request.
type Fault struct {
	Loc  []any  `json:"loc"`
	Msg  string `json:"msg"`
	Type string `json:"type"`
}

func (e *Error) Error() string {
	if len(e.Details) == 0 {
		return e.Message
	}
	lines := make([]string, len(e.Details))
	for i, d := range e.Details {
		place := make([]string, len(d.Loc))
		for k, part := range d.Loc {
			place[k] = fmt.Sprint(part)
		}
		lines[i] = strings.Join(place, ".") + ": " + d.Msg
	}
	return strings.Join(lines, "\n")
}

// maxAnswer bounds what is read of an answer that is no file: a page of 100
// batches with their rows.
const maxAnswer = 256 << 20

// call sends a request, JSON where body is not nil, and decodes the answer.
func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	return exchange(ctx, c.http, method, c.base+path, c.key, body, answer)
}

func exchange(ctx context.Context, doer *http.Client, method, target, key string, body, answer any) error {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return err
	}
	if key != "" {
		request.Header.Set("x-api-key", key)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := doer.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return errorOf(response)
	}
	if answer == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", request.URL.Path, err)
	}
	return nil
}

// errorOf reads an error object, or the faults of a 422.
func errorOf(response *http.Response) error {
	e := &Error{Status: response.StatusCode, Message: response.Status}
	var body struct {
		Error  struct{ Code, Message string }
		Detail []Fault
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil && json.Unmarshal(text, &body) == nil {
		e.Code, e.Details = body.Error.Code, body.Detail
		if body.Error.Message != "" {
			e.Message = body.Error.Message
		}
	}
	return e
}

// Submission asks for a job.
type Submission struct {
	JobName           string `json:"jobName"`
	Type              string `json:"type"`
	Settings          any    `json:"settings"` // marshals to an object
	Version           string `json:"version,omitempty"`
	Priority          int    `json:"priority,omitempty"`
	MaxRuntimeSeconds int64  `json:"maxRuntimeSeconds,omitempty"`
}

// Job is a job's record.
type Job struct {
	JobID             string          `json:"jobId"`
	JobName           string          `json:"jobName"`
	Type              string          `json:"type"`
	Version           string          `json:"version"`
	Status            string          `json:"status"` // QUEUED, RUNNING, COMPLETED, FAILED
	StatusReason      string          `json:"statusReason"`
	Settings          json.RawMessage `json:"settings"`
	Organization      string          `json:"organization"`
	JobEmail          string          `json:"jobEmail"`
	Batch             string          `json:"batch"`
	Priority          int             `json:"priority"`
	MaxRuntimeSeconds int64           `json:"maxRuntimeSeconds"`
	CreatedAt         time.Time       `json:"createdAt"`
	StartedAt         time.Time       `json:"startedAt"`
	CompletedAt       time.Time       `json:"completedAt"`
	Attempts          int             `json:"attempts"`
	Executor          string          `json:"executor"`
	Progress          *Progress       `json:"progress"`
	Metrics           json.RawMessage `json:"metrics"`
	Failure           *Failure        `json:"failure"`
	ResultBytes       int64           `json:"resultBytes"`
	SubjobCounts      map[string]int  `json:"subjobCounts"`
	Subjobs           []Job           `json:"subjobs"`
	Created           bool            `json:"created"` // of a submission's answer
}

// Finished reports whether the job has ended.
func (j *Job) Finished() bool { return j.Status == "COMPLETED" || j.Status == "FAILED" }

// Progress is what a running program last said of itself.
type Progress struct {
	Fraction float64 `json:"fraction"`
	Text     string  `json:"text"`
}

// Failure says why a job failed.
type Failure struct {
	Code     string `json:"code"`
	Message  string `json:"message"`
	ExitCode *int   `json:"exitCode"`
	Signal   string `json:"signal"`
	LogTail  string `json:"logTail"`
}

// Submit queues a job, or gives the one that the same submission made.
func (c *Client) Submit(ctx context.Context, s Submission) (*Job, error) {
	var job Job
	return &job, c.call(ctx, http.MethodPost, "/submit-job", s, &job)
}

// Job gives a job's record; with wait > 0 (a minute at most) once its state
// has changed or wait is over.
func (c *Client) Job(ctx context.Context, name string, wait time.Duration) (*Job, error) {
	path := jobPath(name)
	if wait > 0 {
		path += "?wait=" + wait.String()
	}
	var job Job
	return &job, c.call(ctx, http.MethodGet, path, nil, &job)
}

func jobPath(name string) string { return "/jobs/" + url.PathEscape(name) }

// Wait waits until a job has ended.
func (c *Client) Wait(ctx context.Context, name string) (*Job, error) {
	for {
		job, err := c.Job(ctx, name, 30*time.Second)
		if err != nil || job.Finished() {
			return job, err
		}
	}
}

// Cancel ends a job, or all rows of a batch.
func (c *Client) Cancel(ctx context.Context, name string) (*Job, error) {
	var job Job
	return &job, c.call(ctx, http.MethodPost, jobPath(name)+"/cancel", nil, &job)
}

// Retry queues a failed job again.
func (c *Client) Retry(ctx context.Context, name string) (*Job, error) {
	var job Job
	return &job, c.call(ctx, http.MethodPost, jobPath(name)+"/retry", nil, &job)
}

// Delete removes a finished job and its result.
func (c *Client) Delete(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, jobPath(name), nil, nil)
}

// JobQuery selects jobs; what is empty selects all.
type JobQuery struct {
	JobName, Batch, JobEmail, Algorithm, Status string
	Organization                                bool // everybody's, not only the caller's
	IncludeSubjobs                              bool
	Limit                                       int
	StartKey                                    string
}

func (q JobQuery) encode() string {
	v := url.Values{}
	for name, value := range map[string]string{
		"jobName": q.JobName, "batch": q.Batch, "jobEmail": q.JobEmail,
		"algorithm": q.Algorithm, "status": q.Status, "startKey": q.StartKey,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Organization {
		v.Set("organization", "true")
	}
	if q.IncludeSubjobs {
		v.Set("includeSubjobs", "true")
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v.Encode()
}

// JobPage is part of a listing; StartKey is "" on the last.
type JobPage struct {
	Jobs     []Job  `json:"jobs"`
	StartKey string `json:"startKey"`
}

// Jobs lists jobs, newest first.
func (c *Client) Jobs(ctx context.Context, q JobQuery) (*JobPage, error) {
	var page JobPage
	return &page, c.call(ctx, http.MethodGet, "/jobs?"+q.encode(), nil, &page)
}
