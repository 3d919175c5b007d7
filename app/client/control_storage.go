package client

import (
	"context"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"time"
)

// StorageReport is the disk usage in bytes.
type StorageReport struct {
	By   string `json:"by"`
	Disk struct {
		Size    int64 `json:"size"`
		Free    int64 `json:"free"`
		Reserve int64 `json:"reserve"` // free-space threshold: uploads and new jobs must leave this much of Free

		Files        int64 `json:"files"` // the same for files (inodes); 0 if unlimited
		FreeFiles    int64 `json:"freeFiles"`
		ReserveFiles int64 `json:"reserveFiles"`
	} `json:"disk"`
	Rows []StorageRow `json:"rows"`
}

// StorageRow is the storage used by one organization, user, algorithm or age. Members
// that do not distinguish the rows of the report are "".
type StorageRow struct {
	Organization string `json:"organization,omitempty"`
	User         string `json:"user,omitempty"`
	Algorithm    string `json:"algorithm,omitempty"` // "" for uploads
	Age          string `json:"age,omitempty"`

	Jobs        int   `json:"jobs"`
	Queued      int   `json:"queued"` // included in Jobs
	Files       int   `json:"files"`  // number of uploads
	ResultBytes int64 `json:"resultBytes"`
	UploadBytes int64 `json:"uploadBytes"`
	QuotaBytes  int64 `json:"quotaBytes,omitempty"` // if the organization has a quota
}

// Storage reports disk usage by organization, user, algorithm or age.
func (c *Control) Storage(ctx context.Context, by string) (*StorageReport, error) {
	return requestJSON[StorageReport](ctx, c.client, http.MethodGet, "/control/storage", url.Values{"by": {by}}, nil)
}

// UsageReport is the usage over a range of days, both ends inclusive.
type UsageReport struct {
	By    string     `json:"by"`
	Since string     `json:"since"`
	Until string     `json:"until"`
	Rows  []UsageRow `json:"rows"`
	Total UsageRow   `json:"total"`
}

// UsageRow is the usage of one organization, user, type or day. Members that do not
// distinguish the rows of the report are "".
type UsageRow struct {
	Organization string `json:"organization,omitempty"`
	User         string `json:"user,omitempty"`
	Type         string `json:"type,omitempty"` // "" for uploads
	Day          string `json:"day,omitempty"`

	Completed        int64   `json:"completed"`
	Failed           int64   `json:"failed"`
	Attempts         int64   `json:"attempts"`
	RunSeconds       float64 `json:"runSeconds"`
	CPUSeconds       float64 `json:"cpuSeconds"`
	CPUSecondsBooked float64 `json:"cpuSecondsBooked"`
	GPUSeconds       float64 `json:"gpuSeconds"`
	ResultBytes      int64   `json:"resultBytes"`
	Uploads          int64   `json:"uploads"`
	UploadBytes      int64   `json:"uploadBytes"`
}

// Usage reports usage. The query is the same as for GET /usage, and can also name an
// organization.
func (c *Control) Usage(ctx context.Context, query url.Values) (*UsageReport, error) {
	return requestJSON[UsageReport](ctx, c.client, http.MethodGet, "/control/usage", query, nil)
}

// UsageCSV is Usage as CSV, without the total.
func (c *Control) UsageCSV(ctx context.Context, query url.Values, to io.Writer) error {
	query = maps.Clone(query)
	query.Set("format", "csv")
	resp, err := c.client.sendRequest(ctx, http.MethodGet, "/control/usage", query, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // read-only
	_, err = io.Copy(to, resp.Body)
	return err
}

// PruneRequest selects finished jobs to delete. Empty members match all jobs.
type PruneRequest struct {
	EndedBefore  time.Time
	Failed       bool // only failed jobs
	Organization string
	User         string
	Algorithm    string
	LargerThan   int64 // size of the result in bytes
	DryRun       bool  // delete nothing
}

// Pruned describes a job that was deleted, or that would be deleted if this were not a
// dry run, together with its batch jobs and the uploads that no other job refers to.
type Pruned struct {
	JobID        string    `json:"jobId"`
	JobName      string    `json:"jobName"`
	Organization string    `json:"organization"`
	User         string    `json:"user"`
	Type         string    `json:"type"`
	Status       string    `json:"status"`
	CompletedAt  time.Time `json:"completedAt"`
	Rows         int       `json:"rows,omitempty"` // number of jobs in a batch
	Uploads      []string  `json:"uploads,omitempty"`
	Bytes        int64     `json:"bytes"` // on disk
}

// Prune deletes jobs page by page and yields them. It stops at the first error, or when
// the caller stops iterating.
func (c *Control) Prune(ctx context.Context, r PruneRequest) iter.Seq2[*Pruned, error] {
	body := map[string]any{"endedBefore": r.EndedBefore.UTC().Format("2006-01-02T15:04:05.000Z")}
	for name, value := range map[string]string{"organization": r.Organization, "user": r.User, "algorithm": r.Algorithm} {
		if value != "" {
			body[name] = value
		}
	}
	if r.Failed {
		body["failed"] = true
	}
	if r.LargerThan > 0 {
		body["largerThan"] = r.LargerThan
	}
	if r.DryRun {
		body["dryRun"] = true
	}
	return pages(func(after string) ([]*Pruned, string, error) {
		if after != "" {
			body["after"] = after
		}
		page, err := requestJSON[struct {
			Jobs []*Pruned `json:"jobs"`
			Next string    `json:"next"`
		}](ctx, c.client, http.MethodPost, "/control/prune", nil, body)
		if err != nil {
			return nil, "", err
		}
		return page.Jobs, page.Next, nil
	})
}
