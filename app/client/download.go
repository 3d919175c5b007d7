package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// During a download, the partial content is stored next to the file, together with a note
// that contains the ETag of the file.
const (
	partSuffix = ".part"
	noteSuffix = ".part.etag"
)

// maxStuck is how many consecutive attempts without progress end a download.
const maxStuck = 3

// Download writes a result to the file at path, which appears only once complete. It
// resumes after connection errors, and continues downloads left unfinished by an earlier
// call.
func (c *Client) Download(ctx context.Context, r ResultRequest, path string) error {
	_, err := c.DownloadWithProgress(ctx, r, path, func(int64, int64) {})
	return err
}

// DownloadWithProgress is Download with progress reports: bytes received so far and the
// total size. It returns the last link used.
func (c *Client) DownloadWithProgress(ctx context.Context, r ResultRequest, path string, progress func(done, size int64)) (link *Result, err error) {
	err = c.download(ctx, func() (_ *Result, err error) {
		link, err = c.Result(ctx, r)
		return link, err
	}, path, progress)
	return link, err
}

// download fetches the file of a link. It calls ask for a new link after each connection
// error.
func (c *Client) download(ctx context.Context, ask func() (*Result, error), path string, progress func(done, size int64)) error {
	for stuck := 0; ; {
		link, err := ask()
		if err != nil {
			return err
		}
		gained, err := c.fetch(ctx, link, path, progress)
		if err == nil {
			return publish(path)
		}
		if stuck++; gained > 0 {
			stuck = 0
		}
		if stuck >= maxStuck || !temporary(err) || !c.pause(ctx, stuck) {
			return fmt.Errorf("download %s: %w", link.FileName, err)
		}
	}
}

// temporary reports whether a retry could help. It cannot if the service rejects the
// request or this machine cannot store the file.
func temporary(err error) bool {
	var refused *Error
	var local *fs.PathError
	if errors.As(err, &refused) {
		return refused.Status >= http.StatusInternalServerError
	}
	return !errors.As(err, &local)
}

// pause backs off before the next attempt. It returns false once ctx is done.
func (c *Client) pause(ctx context.Context, stuck int) bool {
	timer := time.NewTimer(time.Duration(stuck) * c.backoff)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// fetch appends the missing part of a file and syncs it. It returns the number of bytes
// received, even with an error.
func (c *Client) fetch(ctx context.Context, link *Result, path string, progress func(done, size int64)) (gained int64, err error) {
	f, err := os.OpenFile(path+partSuffix, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	etag, have, err := begun(f, path+noteSuffix)
	if err != nil {
		return 0, err
	}
	// If the part is complete, fetch the last byte again so that the service confirms the
	// ETag.
	resp, err := c.getFrom(ctx, link.DownloadURL, etag, min(have, link.Size-1))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() // read-only
	have, err = prepare(f, resp, min(have, link.Size-1), path+noteSuffix)
	if err != nil {
		return 0, err
	}
	gained, err = io.Copy(f, &progressReader{resp.Body, have, func(done int64) { progress(done, link.Size) }})
	if err != nil {
		return gained, err
	}
	if have+gained != link.Size {
		return gained, fmt.Errorf("received %d of %d bytes", have+gained, link.Size)
	}
	return gained, f.Sync()
}

// begun returns the size of a partial download and the ETag of its file. A part without a
// note cannot be used.
func begun(part *os.File, note string) (etag string, have int64, err error) {
	info, err := part.Stat()
	if err != nil {
		return "", 0, err
	}
	text, err := os.ReadFile(note)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return "", 0, nil
	}
	return string(text), info.Size(), err
}

// getFrom requests the bytes from offset have on, or the whole file if its ETag differs.
func (c *Client) getFrom(ctx context.Context, url, etag string, have int64) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("the service returned an invalid downloadUrl: %w", withoutLink(err))
	}
	r.Header.Set("Accept-Encoding", "identity") // ranges refer to the uncompressed file
	if etag != "" && have > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		r.Header.Set("If-Range", etag)
	}
	return c.roundTrip(r)
}

// prepare truncates the part to where the response continues: after have bytes, or at the
// beginning if the response is a different file.
func prepare(f *os.File, resp *http.Response, have int64, note string) (int64, error) {
	whole := resp.StatusCode != http.StatusPartialContent
	if whole {
		have = 0
	} else if from := resp.Header.Get("Content-Range"); !strings.HasPrefix(from, fmt.Sprintf("bytes %d-", have)) {
		return 0, fmt.Errorf("the server sent %q, but byte %d was requested", from, have)
	}
	if err := f.Truncate(have); err != nil {
		return 0, err
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return 0, err
	}
	if !whole {
		return have, nil
	}
	// The old bytes must be removed from disk before the note names the new file.
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return 0, os.WriteFile(note, []byte(resp.Header.Get("ETag")), 0o666)
}

// publish renames a complete download to its final name.
func publish(path string) error {
	if err := os.Rename(path+partSuffix, path); err != nil {
		return err
	}
	if err := os.Remove(path + noteSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// progressReader reports how many bytes have been read.
type progressReader struct {
	io.Reader
	done   int64
	report func(done int64)
}

// Read implements io.Reader.
func (t *progressReader) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	t.done += int64(n)
	t.report(t.done)
	return n, err
}
