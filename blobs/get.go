package blobs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/blobs/link"
	"molrun/blobs/result"
)

// maxRanges is the maximum number of ranges per request. Requests with more get the whole
// file, as HTTP allows.
const maxRanges = 16

// getUpload serves the current content of an upload.
func (h *Links) getUpload(s *sender, r *http.Request, l app.Link) error {
	f, u, err := h.openUpload(r, app.UploadID(l.ID))
	if err != nil {
		return err
	}
	defer f.Close()
	return serveContent(s, r, download{content: f, filename: l.Filename, etag: `"` + u.SHA256 + `"`, maxRanges: maxRanges})
}

// openUpload opens the current generation. If another PUT replaces and removes it after
// the record was read, openUpload reads the record again.
func (h *Links) openUpload(r *http.Request, id app.UploadID) (*os.File, *app.Upload, error) {
	for attempt := 0; ; attempt++ {
		u, err := h.svc.Upload(r.Context(), id)
		if err != nil {
			return nil, nil, err
		}
		if u.Generation == 0 {
			return nil, nil, fault.Errorf(fault.UploadNotReceived, "Nothing has been uploaded yet; PUT the file to its upload link first.")
		}
		f, err := h.dir.root.Open(uploadName(u.ID, u.Generation))
		if errors.Is(err, fs.ErrNotExist) && attempt < 10 {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("open upload: %w", err)
		}
		info, err := f.Stat()
		if err == nil && info.Size() != u.Size {
			err = fmt.Errorf("it has %d bytes, but its record says %d", info.Size(), u.Size)
		}
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("open upload %s: %w", u.ID, err), f.Close())
		}
		return f, u, nil
	}
}

// getResult serves one file of a job's result.
func (h *Links) getResult(s *sender, r *http.Request, l app.Link) error {
	_, release, err := h.lease(r, l)
	if err != nil {
		return err
	}
	f, mf, err := h.openResult(l)
	release() // an open file remains readable after removal
	if err != nil {
		return err
	}
	defer f.Close()
	return serveContent(s, r, download{content: f, filename: l.Filename, etag: `"` + mf.SHA256 + `"`, maxRanges: maxRanges})
}

// openResult opens a file of a leased result.
func (h *Links) openResult(l app.Link) (*os.File, *app.ManifestFile, error) {
	id := app.JobID(l.ID)
	dir, err := h.dir.jobs.Open(id)
	if err != nil {
		return nil, nil, fmt.Errorf("open result: %w", result.NotFound(err))
	}
	defer dir.Close()
	m, _, err := result.Manifest(dir, id)
	if err != nil {
		return nil, nil, result.NotFound(err)
	}
	if l.File < 0 || l.File >= len(m.Files) {
		return nil, nil, link.Invalid(errors.New("the manifest has no such file"))
	}
	f, err := result.OpenFile(dir, &m.Files[l.File])
	if err != nil {
		return nil, nil, fmt.Errorf("open result of job %s: %w", id, err)
	}
	return f, &m.Files[l.File], nil
}

// lease returns the content of a result's archive according to the records, and keeps the
// files of jobs and inputs readable until release is called.
func (h *Links) lease(r *http.Request, l app.Link) (archive app.Archive, release func(), err error) {
	archive, err = h.svc.Archive(r.Context(), app.JobID(l.ID), app.ArchiveForm{Partial: l.Kind == app.PartArchive, Inputs: l.Inputs, Files: l.Files})
	if err != nil {
		return archive, nil, err
	}
	unhold, err := h.dir.holdInputs(archive.Inputs)
	if err != nil {
		return archive, nil, err
	}
	lease, err := h.dir.jobs.Lease(archive.Jobs())
	if err != nil {
		unhold()
		return archive, nil, err
	}
	return archive, func() {
		unhold()
		if err := lease.End(); err != nil {
			h.dir.options.Log.Error().Err(err).Str("id", l.ID).Msg("deferred removal of a job failed")
		}
	}, nil
}

// getArchive serves a result as a zip file that is generated while it is sent.
func (h *Links) getArchive(s *sender, r *http.Request, l app.Link) error {
	archive, release, err := h.lease(r, l)
	if err != nil {
		return err
	}
	defer release()
	a, err := h.dir.archives.Open(archive)
	if err != nil {
		return err
	}
	content := a.Content(r.Context())
	if err := serveContent(s, r, download{content: content, filename: l.Filename, etag: a.ETag(), maxRanges: 1}); err != nil {
		return err
	}
	_ = s.control.Flush()                     // release can take a long time; s records any error
	if content.Err() != nil && s.err == nil { // s.err is the client's error
		return abortError{content.Err()}
	}
	return nil
}

// Serve responds to a GET or HEAD with the target of an unsigned link. The caller is
// responsible for authorization. If Serve returns an error, it has written nothing.
func (h *Links) Serve(w http.ResponseWriter, r *http.Request, l app.Link) error {
	end, err := h.dir.transfers.One(l.Holder)
	if err != nil {
		return err
	}
	defer end()
	setSecureHeaders(w.Header())
	s := newSender(w, h.dir.options.Idle)
	serve := h.getResult
	if l.Kind == app.ArchiveGet {
		serve = h.getArchive
	}
	err = serve(s, r, l)
	if errors.As(err, new(abortError)) {
		panic(http.ErrAbortHandler) // close the connection, so that a truncated response never looks complete
	}
	return err
}

// SendDownload responds to a GET or HEAD with an open file. If it returns an error, it
// has written nothing. If the file shrinks while it is sent, the connection is closed, so
// that a truncated response never looks complete.
func (d *Dir) SendDownload(w http.ResponseWriter, r *http.Request, f app.Download) error {
	end, err := d.transfers.One(f.Holder)
	if err != nil {
		return err
	}
	defer end()
	setSecureHeaders(w.Header())
	s := newSender(w, d.options.Idle)
	return serveContent(s, r, download{content: f.Content, filename: f.Filename, etag: f.ETag, maxRanges: maxRanges})
}

// download is the content served by a GET.
type download struct {
	content   io.ReadSeeker
	filename  string
	etag      string
	maxRanges int
}

// serveContent uses the standard library, which handles ranges, If-Range, If-None-Match
// and HEAD. Only its 416 response is replaced with an error in the usual format.
func serveContent(s *sender, r *http.Request, d download) error {
	header := s.Header()
	header.Set("Content-Type", contentType(d.filename))
	if contentType(d.filename) == svgImage {
		header.Set("Content-Security-Policy", svgPolicy)
	}
	header.Set("Content-Disposition", disposition(d.filename))
	header.Set("ETag", d.etag)
	size, err := d.content.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("measure content: %w", err)
	}
	limitRanges(r.Header, size, d.maxRanges)
	s.withhold416 = true
	http.ServeContent(s, r, "", time.Time{}, d.content)
	s.withhold416 = false
	if !s.withheld {
		return nil
	}
	for _, name := range []string{"Content-Type", "Content-Disposition", "ETag", "Content-Length"} {
		header.Del(name)
	}
	setSecureHeaders(header)
	header.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
	return fault.Errorf(fault.RangeInvalid, "The range is outside the file of %d bytes; request one that starts before the end.", size)
}

// limitRanges drops a Range header with too many parts or for an empty file. It replaces
// "the last 0 bytes", for which the library would send an empty part, with a range past
// the end.
func limitRanges(header http.Header, size int64, maxRanges int) {
	unit, list, _ := strings.Cut(header.Get("Range"), "=")
	parts := strings.Split(list, ",")
	if len(parts) > maxRanges || size == 0 {
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
