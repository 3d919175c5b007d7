package client

import (
	"context"
	"net/http"
	"time"
)

// ResultRequest names a result of a job. File "" is the archive of all files;
// Partial takes the completed rows of a batch.
type ResultRequest struct {
	Job     string `json:"jobName"`
	File    string `json:"fileName,omitempty"`
	Partial bool   `json:"partial,omitempty"`
}

// Result is a link to a file, valid for an hour.
type Result struct {
	DownloadURL string    `json:"downloadUrl"`
	FileName    string    `json:"fileName"`
	Size        int64     `json:"size"`
	ExpiresAt   time.Time `json:"expiresAt"`
}

// Result requests a link.
func (c *Client) Result(ctx context.Context, r ResultRequest) (*Result, error) {
	return ask[Result](ctx, c, http.MethodPost, "/result", nil, r)
}

// ResultFile is a file of a job. Only those of completed jobs have a digest.
type ResultFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// ResultFiles lists the files of a job that is running, failed or completed.
func (c *Client) ResultFiles(ctx context.Context, name string) ([]ResultFile, error) {
	out, err := ask[struct {
		Files []ResultFile `json:"files"`
	}](ctx, c, http.MethodGet, path("jobs", name, "files"), nil, nil)
	if err != nil {
		return nil, err
	}
	return out.Files, nil
}
