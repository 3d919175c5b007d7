package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// File is an uploaded file.
type File struct {
	Status      string    `json:"status"` // completed or pending
	ID          string    `json:"fileId"`
	Filename    string    `json:"filename"`
	Folder      string    `json:"folder"`
	Size        int64     `json:"size"`
	SHA256      string    `json:"sha256"`
	ContentType string    `json:"contentType"`
	UploadedAt  time.Time `json:"uploadedAt,omitzero"`
	Email       string    `json:"email,omitempty"` // owner, in listings
}

// Upload holds the links of a new upload.
type Upload struct {
	FileID       string    `json:"fileId"`
	UploadURL    string    `json:"uploadUrl"`
	DownloadURL  string    `json:"downloadUrl"`
	Filename     string    `json:"filename"`
	Folder       string    `json:"folder"`
	ExpiresAt    time.Time `json:"expiresAt"`
	Instructions struct {
		Upload      string            `json:"upload"`
		Headers     map[string]string `json:"headers"`
		CurlExample string            `json:"curlExample"`
	} `json:"instructions"`
}

// CreateUpload creates an upload. An empty folder means the service's default.
func (c *Client) CreateUpload(ctx context.Context, folder, filename string) (*Upload, error) {
	q := url.Values{}
	if folder != "" {
		q.Set("folder", folder)
	}
	return requestJSON[Upload](ctx, c, http.MethodPut, path("upload", filename), q, nil)
}

// SendUpload sends size bytes of an upload, or everything in from if size is negative.
func (c *Client) SendUpload(ctx context.Context, u *Upload, from io.Reader, size int64) error {
	if size == 0 {
		from = http.NoBody
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, u.UploadURL, from)
	if err != nil {
		return fmt.Errorf("the service returned an invalid uploadUrl: %w", withoutLink(err))
	}
	r.ContentLength = size
	for name, value := range u.Instructions.Headers {
		r.Header.Set(name, value)
	}
	resp, err := c.roundTrip(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return err
}

// CompleteUpload confirms that size bytes were sent. A negative size is not checked.
func (c *Client) CompleteUpload(ctx context.Context, fileID string, size int64) (*File, error) {
	body := map[string]int64{}
	if size >= 0 {
		body["size"] = size
	}
	return requestJSON[File](ctx, c, http.MethodPost, path("upload", fileID, "complete"), nil, body)
}

// Upload uploads the file at path under its own name and confirms it.
func (c *Client) Upload(ctx context.Context, folder, path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read-only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	u, err := c.CreateUpload(ctx, folder, filepath.Base(path))
	if err != nil {
		return nil, err
	}
	if err := c.SendUpload(ctx, u, f, info.Size()); err != nil {
		return nil, fmt.Errorf("upload %s: %w", path, err)
	}
	return c.CompleteUpload(ctx, u.FileID, info.Size())
}

// UploadBytes uploads content under a name and confirms it.
func (c *Client) UploadBytes(ctx context.Context, folder, name string, content []byte) (*File, error) {
	u, err := c.CreateUpload(ctx, folder, name)
	if err != nil {
		return nil, err
	}
	size := int64(len(content))
	if err := c.SendUpload(ctx, u, bytes.NewReader(content), size); err != nil {
		return nil, err
	}
	return c.CompleteUpload(ctx, u.FileID, size)
}

// FileFilter selects files. Empty members match all files.
type FileFilter struct {
	Folder            string
	WholeOrganization bool
	PageSize          int // 0 means the service's default
}

func (f FileFilter) query() url.Values {
	q := url.Values{}
	if f.Folder != "" {
		q.Set("folder", f.Folder)
	}
	if f.WholeOrganization {
		q.Set("organization", "true")
	}
	if f.PageSize > 0 {
		q.Set("limit", strconv.Itoa(f.PageSize))
	}
	return q
}

// Files yields uploaded files, newest first. It stops at the first error.
func (c *Client) Files(ctx context.Context, f FileFilter) iter.Seq2[*File, error] {
	return pages(func(startKey string) ([]*File, string, error) {
		p, err := c.page(ctx, "/files", f.query(), startKey)
		return p.Files, p.StartKey, err
	})
}

// DeleteFile deletes an uploaded file.
func (c *Client) DeleteFile(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, path("files", id), nil, nil, nil)
}
