package client

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Job is a job's record.
type Job struct {
	ID               string            `json:"jobId"`
	Name             string            `json:"jobName"`
	Type             string            `json:"type"`
	Version          string            `json:"version"`
	Status           string            `json:"status"` // QUEUED, RUNNING, COMPLETED, FAILED
	StatusReason     string            `json:"statusReason,omitempty"`
	Settings         json.RawMessage   `json:"settings,omitempty"`
	Inputs           []Input           `json:"inputs,omitempty"`
	After            []string          `json:"after,omitempty"`
	AfterAny         bool              `json:"afterAny,omitempty"`
	Organization     string            `json:"organization"`
	Email            string            `json:"jobEmail"`
	Batch            string            `json:"batch,omitempty"`
	Priority         int               `json:"priority"`
	MaxRuntime       int64             `json:"maxRuntimeSeconds,omitempty"`
	CreatedAt        time.Time         `json:"createdAt"`
	StartedAt        time.Time         `json:"startedAt,omitzero"`
	CompletedAt      time.Time         `json:"completedAt,omitzero"`
	Attempts         int               `json:"attempts"`
	MemoryBytes      int64             `json:"memoryBytes,omitempty"` // reserved memory, if it was raised
	PastAttempts     []PastAttempt     `json:"pastAttempts,omitempty"`
	Executor         string            `json:"executor,omitempty"`
	Isolation        string            `json:"isolation,omitempty"` // bubblewrap, cgroup, bubblewrap+cgroup, none
	Slurm            *Slurm            `json:"slurm,omitempty"`
	Progress         *Progress         `json:"progress,omitempty"`
	Queue            *Queue            `json:"queue,omitempty"`
	ETASeconds       *int64            `json:"etaSeconds,omitempty"` // of a running job
	ETABasis         string            `json:"etaBasis,omitempty"`
	Tags             map[string]string `json:"tags,omitempty"`
	Note             string            `json:"note,omitempty"`
	Metrics          *Metrics          `json:"metrics,omitempty"`
	Warnings         []string          `json:"warnings,omitempty"`
	Failure          *Failure          `json:"failure,omitempty"`
	ResultBytes      int64             `json:"resultBytes,omitempty"`
	LeftOut          *LeftOut          `json:"leftOut,omitempty"`
	Pinned           bool              `json:"pinned"`
	Counts           map[string]int    `json:"subjobCounts,omitempty"` // for batches: number of jobs by status
	Subjobs          []Job             `json:"subjobs,omitempty"`
	SubjobsTruncated bool              `json:"subjobsTruncated,omitempty"`
	Created          bool              `json:"created,omitempty"` // created by this submission
}

// LeftOut lists files that the program created but that are not in the result.
type LeftOut struct {
	Count int `json:"count"`
	Paths []struct {
		Path   string `json:"path"`
		Reason string `json:"reason"`
	} `json:"paths"` // only the first ones
}

// PastAttempt is an attempt that ran out of memory, after which the job was restarted
// with more.
type PastAttempt struct {
	Attempt     int     `json:"attempt"`
	Code        string  `json:"code"`
	Message     string  `json:"message"`
	MemoryBytes int64   `json:"memoryBytes"` // memory it had
	MaxRSSBytes int64   `json:"maxRssBytes"`
	RunSeconds  float64 `json:"runSeconds"`
}

// Slurm is the Slurm job that runs, or ran, a job.
type Slurm struct {
	Job       string `json:"job"` // Slurm job number
	Node      string `json:"node,omitempty"`
	Partition string `json:"partition,omitempty"`
}

// Input is an input file of a job.
type Input struct {
	Setting  string `json:"setting"`
	FileID   string `json:"fileId,omitempty"`
	Job      string `json:"job,omitempty"`
	Output   string `json:"output,omitempty"` // output of that job's algorithm
	Path     string `json:"path,omitempty"`
	Filename string `json:"filename"`
	SHA256   string `json:"sha256"`
	Summary  string `json:"summary,omitempty"` // for structures
}

// Progress is the latest progress reported by a running program.
type Progress struct {
	Fraction float64 `json:"fraction"`
	Text     string  `json:"text,omitempty"`
	Basis    string  `json:"basis,omitempty"` // "steps" if based on the number of finished steps, whose lengths are unknown
}

// Queue is the queue position of a queued job. Unknown values are 0.
type Queue struct {
	Position   int    `json:"position"`
	Of         int    `json:"of"`
	BlockedBy  string `json:"blockedBy"`
	ETASeconds int64  `json:"etaSeconds"`
	ETABasis   string `json:"etaBasis"`
}

// Metrics holds the measurements and results of a finished job.
type Metrics struct {
	QueueSeconds float64         `json:"queueSeconds"`
	RunSeconds   float64         `json:"runSeconds"`
	CPUSeconds   float64         `json:"cpuSeconds"`
	MaxRSSBytes  int64           `json:"maxRssBytes"`
	Results      json.RawMessage `json:"results,omitempty"`
}

// Failure describes why a job failed.
type Failure struct {
	Code     string `json:"code"`
	Message  string `json:"message"`
	ExitCode *int   `json:"exitCode,omitempty"`
	Signal   string `json:"signal,omitempty"`
	LogTail  string `json:"logTail,omitempty"`
}

// Finished reports whether the job has completed or failed.
func (j *Job) Finished() bool { return j.Status == "COMPLETED" || j.Status == "FAILED" }

// Job returns the current state of a job.
func (c *Client) Job(ctx context.Context, name string) (*Job, error) {
	return requestJSON[Job](ctx, c, http.MethodGet, path("jobs", name), nil, nil)
}

// NextJob returns a job once its status changes, it is finished, or the wait has elapsed.
// The service waits at most a minute.
func (c *Client) NextJob(ctx context.Context, name string, wait time.Duration) (*Job, error) {
	wait = max(0, min(wait, time.Minute))
	return requestJSON[Job](ctx, c, http.MethodGet, path("jobs", name), url.Values{"wait": {wait.String()}}, nil)
}

// Wait returns a job once it is finished.
func (c *Client) Wait(ctx context.Context, name string) (*Job, error) {
	for {
		job, err := c.NextJob(ctx, name, time.Minute)
		if err != nil || job.Finished() {
			return job, err
		}
	}
}

// Cancel stops a job.
func (c *Client) Cancel(ctx context.Context, name string) (*Job, error) {
	return requestJSON[Job](ctx, c, http.MethodPost, path("jobs", name, "cancel"), nil, nil)
}

// Retry queues a failed job again.
func (c *Client) Retry(ctx context.Context, name string) (*Job, error) {
	return requestJSON[Job](ctx, c, http.MethodPost, path("jobs", name, "retry"), nil, nil)
}

// Pin exempts a job from retention and prune.
func (c *Client) Pin(ctx context.Context, name string) (*Job, error) {
	return requestJSON[Job](ctx, c, http.MethodPost, path("jobs", name, "pin"), nil, nil)
}

// Unpin ends the exemption of a pinned job.
func (c *Client) Unpin(ctx context.Context, name string) (*Job, error) {
	return requestJSON[Job](ctx, c, http.MethodDelete, path("jobs", name, "pin"), nil, nil)
}

// Delete deletes a finished job with its result.
func (c *Client) Delete(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, path("jobs", name), nil, nil, nil)
}

// JobFilter selects jobs. Empty members match all jobs.
type JobFilter struct {
	Name, Batch, Email, Algorithm, Status string
	WholeOrganization                     bool
	Subjobs                               bool // include the jobs of batches
	PageSize                              int  // 0 means the service's default
}

func (f JobFilter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"jobName": f.Name, "batch": f.Batch, "jobEmail": f.Email, "algorithm": f.Algorithm, "status": f.Status,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.WholeOrganization {
		q.Set("organization", "true")
	}
	if f.Subjobs {
		q.Set("includeSubjobs", "true")
	}
	if f.PageSize > 0 {
		q.Set("limit", strconv.Itoa(f.PageSize))
	}
	return q
}

// Jobs yields jobs, newest first, page by page. It stops at the first error.
func (c *Client) Jobs(ctx context.Context, f JobFilter) iter.Seq2[*Job, error] {
	return pages(func(startKey string) ([]*Job, string, error) {
		p, err := c.page(ctx, "/jobs", f.query(), startKey)
		return p.Jobs, p.StartKey, err
	})
}

// page is one page of a listing.
type page struct {
	Jobs     []*Job  `json:"jobs"`
	Files    []*File `json:"files"`
	StartKey string  `json:"startKey"`
}

func (c *Client) page(ctx context.Context, path string, query url.Values, startKey string) (p page, err error) {
	if startKey != "" {
		query.Set("startKey", startKey)
	}
	err = c.call(ctx, http.MethodGet, path, query, nil, &p)
	return p, err
}

// pages yields the items of all pages.
func pages[T any](page func(startKey string) ([]*T, string, error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for startKey := ""; ; {
			items, next, err := page(startKey)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			startKey = next
		}
	}
}

// Log returns a part of a job's log and the size of the whole log. Attempt 0 is the
// latest; a negative limit means up to the end. The caller must close the part.
func (c *Client) Log(ctx context.Context, name string, attempt int, offset, limit int64) (part io.ReadCloser, size int64, err error) {
	q := url.Values{}
	if attempt > 0 {
		q.Set("attempt", strconv.Itoa(attempt))
	}
	if offset > 0 {
		q.Set("offset", strconv.FormatInt(offset, 10))
	}
	if limit >= 0 {
		q.Set("limit", strconv.FormatInt(limit, 10))
	}
	resp, err := c.sendRequest(ctx, http.MethodGet, path("jobs", name, "logs"), q, nil)
	if err != nil {
		return nil, 0, err
	}
	size, err = strconv.ParseInt(resp.Header.Get("X-Log-Size"), 10, 64)
	if err != nil {
		resp.Body.Close()
		return nil, 0, err
	}
	return resp.Body, size, nil
}
