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

// StorageReport is the use of disk space, in bytes.
type StorageReport struct {
	By   string `json:"by"`
	Disk struct {
		Size    int64 `json:"size"`
		Free    int64 `json:"free"`
		Reserve int64 `json:"reserve"` // part of Free that uploads and new jobs leave alone

		Files        int64 `json:"files"` // the same for files (inodes); 0 if there is no limit
		FreeFiles    int64 `json:"freeFiles"`
		ReserveFiles int64 `json:"reserveFiles"`
	} `json:"disk"`
	Rows []StorageRow `json:"rows"`
}

// StorageRow is what one organization, user, algorithm or age stores. Members
// that do not distinguish the rows of the report are "".
type StorageRow struct {
	Organization string `json:"organization,omitempty"`
	User         string `json:"user,omitempty"`
	Algorithm    string `json:"algorithm,omitempty"` // "" for uploads
	Age          string `json:"age,omitempty"`

	Jobs        int   `json:"jobs"`
	Queued      int   `json:"queued"` // of the jobs
	Files       int   `json:"files"`  // uploads
	ResultBytes int64 `json:"resultBytes"`
	UploadBytes int64 `json:"uploadBytes"`
	QuotaBytes  int64 `json:"quotaBytes,omitempty"` // if the organization has one
}

// Storage reports disk use by organization, user, algorithm or age.
func (c *Control) Storage(ctx context.Context, by string) (*StorageReport, error) {
	return requestJSON[StorageReport](ctx, c.client, http.MethodGet, "/control/storage", url.Values{"by": {by}}, nil)
}

// UsageReport is the usage over a range of days, both ends included.
type UsageReport struct {
	By    string     `json:"by"`
	Since string     `json:"since"`
	Until string     `json:"until"`
	Rows  []UsageRow `json:"rows"`
	Total UsageRow   `json:"total"`
}

// UsageRow is what one organization, user, type or day has used. Members that do not
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

// Usage reports usage. The query is that of GET /usage; it may name an
// organization too.
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
	defer resp.Body.Close() // only read from
	_, err = io.Copy(to, resp.Body)
	return err
}

// PruneRequest selects finished jobs to delete. Empty members select all.
type PruneRequest struct {
	EndedBefore  time.Time
	Failed       bool // only failed jobs
	Organization string
	User         string
	Algorithm    string
	LargerThan   int64 // bytes of the result
	DryRun       bool  // delete nothing
}

// Pruned is a job that was deleted, or would be in a dry run, with its rows and
// the uploads that no other job refers to.
type Pruned struct {
	JobID        string    `json:"jobId"`
	JobName      string    `json:"jobName"`
	Organization string    `json:"organization"`
	User         string    `json:"user"`
	Type         string    `json:"type"`
	Status       string    `json:"status"`
	CompletedAt  time.Time `json:"completedAt"`
	Rows         int       `json:"rows,omitempty"` // of a batch
	Uploads      []string  `json:"uploads,omitempty"`
	Bytes        int64     `json:"bytes"` // on the disk
}

// Prune deletes jobs page by page and yields them. It stops at the first error,
// or when the caller stops iterating.
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
