package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// File is a completed upload.
type File struct {
	Status      string    `json:"status"`
	FileID      string    `json:"fileId"`
	Filename    string    `json:"filename"`
	Folder      string    `json:"folder"`
	Size        int64     `json:"size"`
	SHA256      string    `json:"sha256"`
	ContentType string    `json:"contentType"`
	UploadedAt  time.Time `json:"uploadedAt"`
}

// Upload sends the file at path through a presigned URL and completes it;
// settings may then name it as folder/filename.
func (c *Client) Upload(ctx context.Context, folder, path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	var grant struct {
		FileID       string `json:"fileId"`
		UploadURL    string `json:"uploadUrl"`
		Instructions struct {
			Headers map[string]string `json:"headers"`
		} `json:"instructions"`
	}
	query := url.Values{"folder": {folder}}
	target := "/upload/" + url.PathEscape(filepath.Base(path)) + "?" + query.Encode()
	if err := c.call(ctx, http.MethodPut, target, nil, &grant); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, grant.UploadURL, file)
	if err != nil {
		return nil, err
	}
	if request.ContentLength = info.Size(); info.Size() == 0 {
		request.Body = http.NoBody
	}
	for name, value := range grant.Instructions.Headers {
		request.Header.Set(name, value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return nil, errorOf(response)
	}
	var done File
	return &done, c.call(ctx, http.MethodPost, "/upload/"+grant.FileID+"/complete", map[string]int64{"size": info.Size()}, &done)
}

// ResultRequest asks for a link; FileName "" is the archive of all files.
type ResultRequest struct {
	JobName  string `json:"jobName"`
	FileName string `json:"fileName,omitempty"`
	Partial  bool   `json:"partial,omitempty"`
}

// ResultLink is a link to a result. It works for an hour.
type ResultLink struct {
	DownloadURL string    `json:"downloadUrl"`
	FileName    string    `json:"fileName"`
	Size        int64     `json:"size"`
	ExpiresAt   time.Time `json:"expiresAt"`
}

// Result asks for a link to a completed job's result.
func (c *Client) Result(ctx context.Context, r ResultRequest) (*ResultLink, error) {
	var link ResultLink
	return &link, c.call(ctx, http.MethodPost, "/result", r, &link)
}

// Download fetches a link into the file at path. It writes path + ".part" and
// renames it when all is there; a download that was cut goes on where it
// stopped, as long as the content is the same.
func (c *Client) Download(ctx context.Context, link, path string) error {
	const tries = 5
	var err error
	tag := ""
	for range tries {
		var again bool
		if again, err = c.downloadPart(ctx, link, path+".part", &tag); !again {
			break
		}
	}
	if err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// downloadPart appends what is missing. again says that another try may help.
func (c *Client) downloadPart(ctx context.Context, link, path string, tag *string) (again bool, err error) {
	mode := os.O_CREATE | os.O_WRONLY
	if *tag == "" {
		mode |= os.O_TRUNC // left by another download
	}
	file, err := os.OpenFile(path, mode, 0o600)
	if err != nil {
		return false, err
	}
	defer func() {
		if closeErr := file.Close(); err == nil && closeErr != nil {
			again, err = false, closeErr
		}
	}()
	have, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return false, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return false, err
	}
	if have > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		request.Header.Set("If-Range", *tag)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return ctx.Err() == nil, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK: // the whole, from the start
		if err := file.Truncate(0); err != nil {
			return false, err
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return false, err
		}
	default:
		return false, errorOf(response)
	}
	*tag = response.Header.Get("ETag")
	_, err = io.Copy(file, response.Body)
	return err != nil && ctx.Err() == nil && *tag != "", err
}

// Log copies what a job's latest attempt printed to w.
func (c *Client) Log(ctx context.Context, name string, w io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+jobPath(name)+"/logs", nil)
	if err != nil {
		return err
	}
	request.Header.Set("x-api-key", c.key)
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return errorOf(response)
	}
	_, err = io.Copy(w, response.Body)
	return err
}
