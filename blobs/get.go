package blobs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/fault"
)

// maxRanges is how many ranges one request may ask for; beyond, it gets the
// whole file, as the protocol allows.
const maxRanges = 16

// getUpload serves the bytes of an upload that arrived last.
func (h *handler) getUpload(s *sender, r *http.Request, c *claims) error {
	f, u, err := h.openUpload(r, app.UploadID(c.Subject))
	if err != nil {
		return err
	}
	defer f.Close()
	return h.content(s, r, c, download{content: f, etag: `"` + u.SHA256 + `"`, ranges: maxRanges})
}

// openUpload opens the current generation. A further PUT may replace it
// between the look at the record and the opening: then the record has moved
// on, and is looked at again.
func (h *handler) openUpload(r *http.Request, id app.UploadID) (*os.File, *app.Upload, error) {
	for try := 0; ; try++ {
		u, err := h.svc.Upload(r.Context(), id)
		if err != nil {
			return nil, nil, err
		}
		if u.Generation == 0 {
			return nil, nil, fault.Errorf(fault.UploadNotReceived, "Nothing was uploaded here yet; PUT the file to its upload link first.")
		}
		f, err := h.dir.openUpload(u)
		if err == nil || try == 10 || !errors.Is(err, fs.ErrNotExist) {
			return f, u, err
		}
	}
}

func (d *Dir) openUpload(u *app.Upload) (*os.File, error) {
	f, err := d.root.Open(uploadName(u.ID, u.Generation))
	if err != nil {
		return nil, fmt.Errorf("open upload: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() != u.Size {
		err = fmt.Errorf("it has %d bytes, not the %d of its record", info.Size(), u.Size)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open upload %s: %w", u.ID, err), f.Close())
	}
	return f, nil
}

// getResult serves one file of a job's result.
func (h *handler) getResult(s *sender, r *http.Request, c *claims) error {
	m, err := h.dir.Manifest(app.JobID(c.Subject))
	if err != nil {
		return err
	}
	if c.File < 0 || c.File >= len(m.Files) {
		return invalidLink(errors.New("the manifest has no such file"))
	}
	mf := &m.Files[c.File]
	dir, err := h.dir.root.OpenRoot(path.Join(jobsDir, c.Subject))
	if err != nil {
		return fmt.Errorf("open result: %w", err)
	}
	defer dir.Close()
	f, err := openResult(dir, mf)
	if err != nil {
		return fmt.Errorf("open result of job %s: %w", c.Subject, err)
	}
	defer f.Close()
	return h.content(s, r, c, download{content: f, etag: `"` + mf.SHA256 + `"`, ranges: maxRanges})
}

// getArchive serves a result as a zip file that is made while it is sent.
func (h *handler) getArchive(s *sender, r *http.Request, c *claims) error {
	folders, err := h.svc.ArchiveFolders(r.Context(), app.JobID(c.Subject), c.Kind == app.PartArchive)
	if err != nil {
		return err
	}
	a, err := h.dir.archive(folders)
	if err != nil {
		return err
	}
	content := &archiveContent{ctx: r.Context(), dir: h.dir, archive: a}
	if err := h.content(s, r, c, download{content: content, etag: a.etag, ranges: 1}); err != nil {
		return err
	}
	if content.err != nil && s.err == nil {
		return cutError{content.err} // the client's fault is in s.err
	}
	return nil
}

// download is what a GET gives.
type download struct {
	content io.ReadSeeker
	etag    string
	ranges  int // how many it serves at once
}

// content answers by the standard library: ranges, If-Range, If-None-Match
// and HEAD are all its own. Only its answer 416 is replaced.
func (h *handler) content(s *sender, r *http.Request, c *claims, d download) error {
	header := s.Header()
	header.Set("Content-Type", contentType(string(c.Filename)))
	header.Set("Content-Disposition", disposition(string(c.Filename)))
	header.Set("ETag", d.etag)
	size, err := d.content.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("measure content: %w", err)
	}
	limitRanges(r.Header, size, d.ranges)
	s.holdRange = true
	http.ServeContent(s, r, "", time.Time{}, d.content)
	s.holdRange = false
	if !s.rangeHeld {
		return nil
	}
	return refuseRange(header, size)
}

// limitRanges drops a Range of too many parts or of an empty file. "The last 0
// bytes", which the library would answer by a part of no bytes, becomes a range
// beyond the end.
func limitRanges(header http.Header, size int64, most int) {
	unit, list, _ := strings.Cut(header.Get("Range"), "=")
	parts := strings.Split(list, ",")
	if len(parts) > most || size == 0 {
		header.Del("Range")
		return
	}
	changed := false
	for i, part := range parts {
		if n, ok := strings.CutPrefix(strings.TrimSpace(part), "-"); ok && n != "" && strings.Trim(n, "0") == "" {
			parts[i] = fmt.Sprintf("%d-", size)
			changed = true
		}
	}
	if changed {
		header.Set("Range", unit+"="+strings.Join(parts, ","))
	}
}

// refuseRange makes the answer 416 an error like all others.
func refuseRange(header http.Header, size int64) error {
	for _, name := range []string{"Content-Type", "Content-Disposition", "ETag", "Content-Length"} {
		header.Del(name)
	}
	setSecureHeaders(header)
	header.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
	return fault.Errorf(fault.RangeInvalid, "The range is not within the file of %d bytes; ask for one that begins before its end.", size)
}
