package blobs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
)

// resume serves an upload link according to the draft on resumable uploads
// (draft-ietf-httpbis-resumable-upload), and a PUT with Content-Range. The link is also
// the upload resource: its offset is 0 until bytes have arrived.
func (h *Links) resume(s *sender, r *http.Request, l app.Link, a *access) error {
	if r.Method == http.MethodOptions {
		s.Header().Set("Upload-Limit", h.limit(l, h.dir.options.Now()))
		s.WriteHeader(http.StatusNoContent)
		return nil
	}
	var t part
	var interrupt func()
	if r.Method == http.MethodPatch || r.Method == http.MethodPut {
		var err error
		if t, err = readPart(r, l); err != nil {
			return err
		}
		interrupt = s.interrupt
	}
	release, err := h.writers.acquire(r.Context(), app.UploadID(l.ID), interrupt)
	if err != nil {
		return err
	}
	defer release()
	u, err := h.svc.Upload(r.Context(), app.UploadID(l.ID))
	if err != nil {
		return err
	}
	if u.Partial, err = h.checkPartial(r.Context(), u); err != nil {
		return err
	}
	x := &exchange{Links: h, s: s, r: r, link: l, access: a, upload: u, part: t}
	switch r.Method {
	case http.MethodHead:
		return x.offset()
	case http.MethodDelete:
		return x.cancel()
	}
	return x.receivePart()
}

// limit returns the Upload-Limit of a file whose bytes last arrived at the given time.
func (h *Links) limit(l app.Link, last time.Time) string {
	end := last.Add(h.dir.options.Partial)
	if l.Expires.Before(end) {
		end = l.Expires
	}
	return fmt.Sprintf("max-age=%d", max(0, int64(end.Sub(h.dir.options.Now()).Seconds())))
}

// exchange is a request for a resumable upload that has acquired its slot, and the
// response.
type exchange struct {
	*Links
	s      *sender
	r      *http.Request
	link   app.Link
	access *access
	upload *app.Upload
	part   part
}

// setOffsetHeaders sets the headers that report how much of a file has arrived.
func (x *exchange) setOffsetHeaders(offset int64, complete bool) {
	header := x.s.Header()
	header.Set("Upload-Offset", strconv.FormatInt(offset, 10))
	header.Set("Upload-Complete", formatBoolean(complete))
	if x.part.ranged && offset > 0 {
		header.Set("Range", fmt.Sprintf("bytes=0-%d", offset-1))
	}
}

// isComplete reports whether the upload has a complete file and no partial one.
func (x *exchange) isComplete() bool { return x.upload.Partial == nil && x.upload.Generation > 0 }

// receivedBytes returns how many bytes have arrived.
func (x *exchange) receivedBytes() int64 {
	switch {
	case x.upload.Partial != nil:
		return x.upload.Partial.Offset
	case x.isComplete():
		return x.upload.Size
	}
	return 0
}

// offset responds to HEAD.
func (x *exchange) offset() error {
	header, last := x.s.Header(), x.dir.options.Now()
	x.setOffsetHeaders(x.receivedBytes(), x.isComplete())
	switch p := x.upload.Partial; {
	case p != nil:
		last = p.ReceivedAt.Time
		if p.Length != nil {
			header.Set("Upload-Length", strconv.FormatInt(*p.Length, 10))
		}
	case x.isComplete():
		header.Set("Upload-Length", strconv.FormatInt(x.upload.Size, 10))
	}
	header.Set("Upload-Limit", x.limit(x.link, last))
	x.s.WriteHeader(http.StatusNoContent)
	return nil
}

// cancel responds to DELETE. A completely received file is kept.
func (x *exchange) cancel() error {
	if x.upload.Completed() {
		return fault.Errorf(fault.UploadCompleted, "The upload is complete and cannot be canceled; delete the file instead.")
	}
	if err := x.svc.DropPartial(x.r.Context(), x.upload.ID); err != nil {
		return err
	}
	x.s.WriteHeader(http.StatusNoContent)
	return nil
}

// receivePart receives a part, or responds to a query for the offset.
func (x *exchange) receivePart() error {
	t := &x.part
	switch {
	case x.isComplete() && x.repeatsLastPart():
		return x.answerWhole(app.StoredFile{Size: x.upload.Size, SHA256: x.upload.SHA256})
	case x.upload.Completed():
		return fault.Errorf(fault.UploadCompleted, "The upload is complete and can't change; request a new upload URL.")
	case t.query:
		return x.answerPart(x.receivedBytes())
	}
	p, err := x.openForPart()
	if err != nil {
		return err
	}
	defer func() {
		if err := p.close(); err != nil {
			x.dir.options.Log.Error().Err(err).Msg("could not close a partial upload")
		}
	}()
	if t.begin {
		x.sendInterimLocation()
	}
	err = x.receive(p)
	if code := fault.CodeOf(err); err != nil && code != fault.Internal {
		x.setOffsetHeaders(p.state.Offset, false)
	}
	return err
}

// repeatsLastPart reports whether a client repeats its last request because it lost the
// response.
func (x *exchange) repeatsLastPart() bool {
	t := x.part
	if t.query {
		return t.length < 0 || t.length == x.upload.Size
	}
	return !t.begin && t.last && t.size == 0 && t.offset == x.upload.Size
}

// openForPart opens the file that the part belongs to, or creates one.
func (x *exchange) openForPart() (*partial, error) {
	t, here := x.part, x.receivedBytes()
	if t.begin || here == 0 && t.offset == 0 && x.upload.Partial == nil || x.isComplete() && t.ranged && t.offset == 0 {
		return x.beginPartial(x.r.Context(), x.upload.ID, t)
	}
	x.setOffsetHeaders(here, false) // for error responses
	if t.offset != here || x.upload.Partial == nil {
		return nil, offsetMismatch(here, t.offset)
	}
	if err := t.fits(x.upload.Partial); err != nil {
		return nil, err
	}
	return x.openPartial(x.r.Context(), x.upload, t)
}

// fits returns an error if a part contradicts the previously announced length.
func (t part) fits(p *app.Partial) error {
	switch {
	case p.Length == nil:
		return nil
	case t.length >= 0 && t.length != *p.Length:
		return lengthMismatch(fmt.Sprintf("The announced file size changed from %d to %d bytes; DELETE the upload to start another file.", *p.Length, t.length))
	case t.size >= 0 && t.offset+t.size > *p.Length:
		return lengthMismatch(fmt.Sprintf("These bytes exceed the announced length of %d.", *p.Length))
	}
	return nil
}

// receive copies the body into the file, saves progress periodically, and responds.
func (x *exchange) receive(p *partial) error {
	t, ctx := x.part, x.r.Context()
	content := t.content.on(sha256.New())
	readErr, err := x.copyPart(p, content)
	x.access.received = p.size - p.first.Offset
	if err != nil {
		return errors.Join(err, p.truncateUnrecorded())
	}
	if readErr != io.EOF {
		if !t.content.any() {
			err = p.saveProgress(ctx)
		}
		return abortError{errors.Join(fmt.Errorf("receive part: %w", readErr), err)}
	}
	x.s.endReading()
	if t.content.any() {
		if err := t.content.check(content.Sum(nil)); err != nil {
			return errors.Join(err, p.truncateUnrecorded())
		}
	}
	if t.last && (!t.ranged || p.size == t.offset+t.size) {
		return x.finishPartial(p)
	}
	if err := p.saveProgress(ctx); err != nil {
		return err
	}
	return x.answerPart(p.size)
}

// copyPart copies until the body ends with readErr or writing fails.
func (x *exchange) copyPart(p *partial, content hash.Hash) (readErr, err error) {
	buffer := x.buffers.Get().(*[]byte)
	defer x.buffers.Put(buffer)
	t, announceAt := x.part, p.size+4*p.dir.options.Block
	for readErr == nil {
		var n int
		n, readErr = fillBuffer(x.s, x.r.Body, *buffer)
		if most := t.maxEnd(p.state.Length); most >= 0 && p.size+int64(n) > most {
			return nil, lengthMismatch(fmt.Sprintf("The request exceeds the announced %d bytes.", most))
		}
		if err := p.quota.Grow(x.r.Context(), p.size+int64(n)); err != nil {
			return nil, err
		}
		if _, err := p.Write((*buffer)[:n]); err != nil {
			return nil, err
		}
		if t.content.any() {
			content.Write((*buffer)[:n])
			continue // these bytes count only once all are verified
		}
		if !p.due() {
			continue
		}
		if err := p.saveProgress(x.r.Context()); err != nil {
			return nil, err
		}
		if p.size >= announceAt && x.interim(func(h http.Header) { h.Set("Upload-Offset", strconv.FormatInt(p.size, 10)) }) {
			p.announced, announceAt = true, 2*p.size // doubling limits how many are sent, because some clients accept only a few
		}
	}
	return readErr, nil
}

// maxEnd returns the maximum end position of the bytes of a part, or -1 for no limit.
func (t part) maxEnd(length *int64) int64 {
	switch {
	case t.ranged:
		return t.offset + t.size
	case length != nil:
		return *length
	}
	return -1
}

// finishPartial makes a complete and verified file the upload's content.
func (x *exchange) finishPartial(p *partial) error {
	ctx := x.r.Context()
	if p.state.Length != nil && p.size != *p.state.Length {
		if err := p.saveProgress(ctx); err != nil {
			return err
		}
		return lengthMismatch(fmt.Sprintf("The file ends after %d bytes instead of the announced %d.", p.size, *p.state.Length))
	}
	if err := p.checkDigests(); err != nil {
		return errors.Join(err, p.discardUnannounced(ctx))
	}
	generation, err := p.publish()
	if errors.Is(err, fs.ErrNotExist) { // it might have been deleted, abandoned or expired
		err = cmp.Or(p.svc.SavePartial(ctx, p.id, &p.state), err)
	}
	if err != nil {
		return err
	}
	f := app.StoredFile{Generation: generation, Size: p.size, SHA256: p.sum(), CRC32: p.crc}
	if err := x.finish(ctx, p.id, f); err != nil {
		return err
	}
	p.quota.Release() // the client can continue once it has the response
	return x.answerWhole(f)
}

// answerWhole confirms that all bytes are stored.
func (x *exchange) answerWhole(f app.StoredFile) error {
	x.setOffsetHeaders(f.Size, true)
	x.s.Header().Del("Range")
	if sum, err := hex.DecodeString(f.SHA256); err == nil {
		x.s.Header().Set("Repr-Digest", formatDigest("sha-256", sum))
	}
	return answerReceived(x.s, f)
}

// answerPart confirms the bytes received so far.
func (x *exchange) answerPart(offset int64) error {
	x.setOffsetHeaders(offset, false)
	status := http.StatusNoContent
	switch {
	case x.part.ranged:
		status = http.StatusPermanentRedirect // 308 without a Location requests the rest
		x.s.Header().Set("Content-Length", "0")
	case x.part.begin:
		status = http.StatusCreated
		x.s.Header().Set("Location", location(x.r))
		x.s.Header().Set("Content-Length", "0")
	}
	x.s.Header().Set("Upload-Limit", x.limit(x.link, x.dir.options.Now()))
	x.s.WriteHeader(status)
	return nil
}

// location returns the link of a request relative to itself, since only the client knows
// the path prefix added by a proxy.
func location(r *http.Request) string {
	return "./" + path.Base(r.URL.EscapedPath()) + "?" + r.URL.RawQuery
}

// sendInterimLocation sends a client of the draft the URL for resuming, before reading
// its bytes.
func (x *exchange) sendInterimLocation() {
	x.interim(func(h http.Header) {
		h.Set("Location", location(x.r))
		h.Set("Upload-Limit", x.limit(x.link, x.dir.options.Now()))
	})
}

// interop is the supported version of the draft's protocol.
const interop = "8"

// statusResumption is the status 104 (Upload Resumption Supported).
const statusResumption = 104

// interim sends an informational response with only these headers to clients that use
// this version of the draft. It sends none through a proxy: many, such as nginx before
// 1.29, treat it as the final response.
func (x *exchange) interim(set func(http.Header)) bool {
	for _, name := range []string{"Via", "X-Forwarded-For", "Forwarded"} {
		if x.r.Header.Get(name) != "" {
			return false
		}
	}
	if x.r.Header.Get("Upload-Draft-Interop-Version") != interop || !x.r.ProtoAtLeast(1, 1) {
		return false
	}
	header := x.s.Header()
	final := header.Clone()
	clear(header)
	header.Set("Upload-Draft-Interop-Version", interop)
	set(header)
	x.s.WriteHeader(statusResumption)
	clear(header)
	for name, values := range final {
		header[name] = values
	}
	return true
}
