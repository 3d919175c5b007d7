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

// maxRanges is how many ranges a request may ask for. With more it gets the
// whole file, as the protocol allows.
const maxRanges = 16

// getUpload serves the current bytes of an upload.
func (h *Links) getUpload(s *sender, r *http.Request, l app.Link) error {
	f, u, err := h.openUpload(r, app.UploadID(l.ID))
	if err != nil {
		return err
	}
	defer f.Close()
	return serveContent(s, r, download{content: f, filename: l.Filename, etag: `"` + u.SHA256 + `"`, maxRanges: maxRanges})
}

// openUpload opens the current generation. A further PUT may replace and remove
// it after the record was read; then openUpload reads the record again.
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
			err = fmt.Errorf("it has %d bytes, not the %d of its record", info.Size(), u.Size)
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
	release() // an open file stays readable without its name
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

// lease returns what the archive of a result holds of what the records still know,
// and keeps the files of jobs and inputs readable until release is called.
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

// getArchive serves a result as a zip file that is made while it is sent.
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
	_ = s.control.Flush()                     // release may take long; an error shows as one of s
	if content.Err() != nil && s.err == nil { // s.err is the client's error
		return abortError{content.Err()}
	}
	return nil
}

// Serve answers a GET or HEAD with the target of an unsigned link: the caller decides
// who can have it. If it returns an error, it has written nothing.
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
		panic(http.ErrAbortHandler) // cut the connection: the client must not take a part for the whole
	}
	return err
}

// SendDownload answers a GET or HEAD with an open file. If it returns an error, it has
// written nothing. If the file shrinks while it is sent, the connection is broken, so
// that no client mistakes a part for the whole.
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

// download is what a GET serves.
type download struct {
	content   io.ReadSeeker
	filename  string
	etag      string
	maxRanges int
}

// serveContent answers with the standard library, which handles ranges,
// If-Range, If-None-Match and HEAD. Only its answer 416 is replaced by an error
// like all others.
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
	return fault.Errorf(fault.RangeInvalid, "The range is not within the file of %d bytes; request one that begins before its end.", size)
}

// limitRanges drops a Range of too many parts or of an empty file. It turns
// "the last 0 bytes", which the library would answer with an empty part, into a
// range beyond the end.
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
