package client

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"molrun/app/base/digest"
)

// Local is a local file with a known digest.
type Local struct {
	Path   string
	Size   int64
	SHA256 string
}

// Digest reads a file and computes its digest.
func Digest(ctx context.Context, path string) (l Local, err error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return l, errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	sum, size, err := digest.New().File(ctx, path)
	return Local{path, size, sum}, err
}

// upload is the response to creating an upload with a known digest.
type upload struct {
	Upload
	Status string `json:"status"` // completed if the service already has the content
}

// UploadOnce uploads a file unless the service already has the same content from this
// user. It resumes the upload if the connection breaks or the service restarts. sent is
// false if nothing had to be sent; the name of the returned file can then differ.
func (c *Client) UploadOnce(ctx context.Context, folder, name string, l Local, progress func(done int64)) (f *File, sent bool, err error) {
	q := url.Values{"sha256": {l.SHA256}}
	if folder != "" {
		q.Set("folder", folder)
	}
	u, err := requestJSON[upload](ctx, c, http.MethodPut, path("upload", name), q, nil)
	if err != nil {
		return nil, false, err
	}
	if u.Status == "completed" {
		progress(l.Size)
		return &File{Status: u.Status, ID: u.FileID, Filename: u.Filename, Folder: u.Folder, Size: l.Size, SHA256: l.SHA256}, false, nil
	}
	f, err = c.sendWhole(ctx, &u.Upload, l, progress)
	return f, true, err
}

// UploadAgain is UploadOnce, but always sends the file.
func (c *Client) UploadAgain(ctx context.Context, folder, name string, l Local, progress func(done int64)) (*File, error) {
	u, err := c.CreateUpload(ctx, folder, name)
	if err != nil {
		return nil, err
	}
	return c.sendWhole(ctx, u, l, progress)
}

// sendWhole sends a file and confirms it.
func (c *Client) sendWhole(ctx context.Context, u *Upload, l Local, progress func(done int64)) (*File, error) {
	if err := c.sendAll(ctx, u, l, progress); err != nil {
		return nil, fmt.Errorf("upload %s: %w", l.Path, err)
	}
	f, err := c.CompleteUpload(ctx, u.FileID, l.Size)
	if err == nil && f.SHA256 != l.SHA256 {
		return nil, fmt.Errorf("%s changed while being sent; send it again", l.Path)
	}
	return f, err
}

// patience is how long an upload is retried without progress.
const patience = 10 * time.Minute

// sendAll sends a file, and resumes after connection errors.
func (c *Client) sendAll(ctx context.Context, u *Upload, l Local, progress func(done int64)) error {
	f, err := os.Open(l.Path)
	if err != nil {
		return err
	}
	defer f.Close() // read-only
	moved := time.Now()
	for stuck := 0; ; {
		from, done, err := c.offset(ctx, u, stuck > 0)
		if done {
			return nil
		}
		if err == nil {
			err = c.sendFrom(ctx, u, f, l, from, func(at int64) {
				if at > from {
					moved = time.Now()
				}
				progress(at)
			})
		}
		switch {
		case err == nil:
			return nil
		case expired(err):
			if u, err = c.RenewUpload(ctx, u.FileID); err != nil {
				return err
			}
		case !temporary(err) || time.Since(moved) > patience:
			return err
		}
		if stuck++; time.Since(moved) < time.Second {
			stuck = 1
		}
		if !c.pause(ctx, min(stuck, 20)) {
			return errors.Join(err, ctx.Err())
		}
	}
}

func expired(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Code == "LINK_EXPIRED"
}

// RenewUpload returns new links for an incomplete upload.
func (c *Client) RenewUpload(ctx context.Context, fileID string) (*Upload, error) {
	return requestJSON[Upload](ctx, c, http.MethodPost, path("upload", fileID, "link"), nil, nil)
}

// offset queries how many bytes of an upload have arrived. It sends no request if begun
// is false.
func (c *Client) offset(ctx context.Context, u *Upload, begun bool) (at int64, done bool, err error) {
	if !begun {
		return 0, false, nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, u.UploadURL, nil)
	if err != nil {
		return 0, false, withoutLink(err)
	}
	resp, err := c.roundTrip(r)
	if err != nil {
		return 0, false, err
	}
	resp.Body.Close()
	if resp.Header.Get("Upload-Complete") == "?1" {
		return 0, true, nil
	}
	at, err = strconv.ParseInt(resp.Header.Get("Upload-Offset"), 10, 64)
	return at, false, err
}

// sendFrom sends the rest of a file.
func (c *Client) sendFrom(ctx context.Context, u *Upload, f *os.File, l Local, from int64, progress func(at int64)) error {
	rest := io.NewSectionReader(f, from, l.Size-from)
	var body io.Reader = &progressReader{rest, from, progress}
	if l.Size == from {
		body = http.NoBody
	}
	method := http.MethodPut
	if from > 0 {
		method = http.MethodPatch
	}
	r, err := http.NewRequestWithContext(ctx, method, u.UploadURL, body)
	if err != nil {
		return withoutLink(err)
	}
	r.ContentLength = l.Size - from
	for name, value := range u.Instructions.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Upload-Complete", "?1")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/partial-upload")
		r.Header.Set("Upload-Offset", strconv.FormatInt(from, 10))
	}
	sum, err := hex.DecodeString(l.SHA256)
	if err != nil {
		return err
	}
	r.Header.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum)+":")
	resp, err := c.roundTrip(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return err
}

// FetchUpload downloads an upload of this user to the file at path, which appears only
// once complete.
func (c *Client) FetchUpload(ctx context.Context, f *File, path string, progress func(done, size int64)) error {
	link := func() (*Result, error) {
		u, err := c.linkOf(ctx, f)
		if err != nil {
			return nil, err
		}
		return &Result{DownloadURL: u.DownloadURL, FileName: f.Filename, Size: f.Size}, nil
	}
	return c.download(ctx, link, path, progress)
}

// linkOf returns links for a completed upload. The service returns them when asked to
// upload the same content again.
func (c *Client) linkOf(ctx context.Context, f *File) (*Upload, error) {
	u, err := requestJSON[upload](ctx, c, http.MethodPut, path("upload", f.Filename), url.Values{"folder": {f.Folder}, "sha256": {f.SHA256}}, nil)
	if err != nil {
		return nil, err
	}
	if u.Status != "completed" {
		return nil, &Error{Status: http.StatusNotFound, Code: "NOT_FOUND", Message: "the file was deleted"}
	}
	return &u.Upload, nil
}
