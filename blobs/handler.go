package blobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/upload"
	"molrun/blobs/link"
)

// Service provides the rules that the handler needs; *upload.Files and *app.Jobs together
// implement it.
type Service interface {
	Archives

	// Upload returns the record of an upload.
	Upload(ctx context.Context, id app.UploadID) (*app.Upload, error)
	// BeginUpload is called before a body is read. It returns the generation under which
	// to store the body, a new one for each call, and reserves quota for length bytes, or
	// for an unknown length if length is -1. The caller must release the quota.
	BeginUpload(ctx context.Context, id app.UploadID, length int64) (generation int, quota *upload.Reservation, err error)
	// FinishUpload makes a stored generation current or rejects it. stale is the
	// generation that it replaces, or 0 for none.
	FinishUpload(ctx context.Context, id app.UploadID, f app.StoredFile) (stale int, err error)

	// BeginPart is BeginUpload for a request that starts or continues a resumable upload.
	// The finished file will have at least size bytes, of which the record already counts
	// recorded bytes.
	BeginPart(ctx context.Context, id app.UploadID, size, recorded int64) (generation int, quota *upload.Reservation, err error)
	// BeginPartial records the start of a resumable upload, and SavePartial records which
	// part of it is durable; DropPartial deletes that record and the file.
	BeginPartial(ctx context.Context, id app.UploadID, p *app.Partial) error
	SavePartial(ctx context.Context, id app.UploadID, p *app.Partial) error
	DropPartial(ctx context.Context, id app.UploadID) error
}

// Archives defines the content of archives.
type Archives interface {
	// Archive returns the content of the archive of a job or batch.
	Archive(ctx context.Context, id app.JobID, form app.ArchiveForm) (app.Archive, error)
}

// Fail writes an error response in the service's format.
type Fail func(w http.ResponseWriter, r *http.Request, err error)

// Handler serves the links that dir signs: everything under /blobs/. Its ResponseWriter
// must be the connection's own, so that the kernel can copy files to it. It panics with
// http.ErrAbortHandler to close a connection on which a response cannot be completed.
func Handler(dir *Dir, svc Service, fail Fail) *Links {
	return &Links{
		dir: dir, svc: svc, fail: fail, writers: newUploadWriters(),
		buffers: sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }},
	}
}

// Links serves the targets of links.
type Links struct {
	dir     *Dir
	svc     Service
	fail    Fail
	writers *uploadWriters
	buffers sync.Pool // *[]byte of bufferSize
}

// abortError is the reason why a transfer was aborted after it was too late for an error
// response.
type abortError struct{ error }

func (e abortError) Unwrap() error { return e.error }

// ServeHTTP implements http.Handler.
func (h *Links) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := access{started: time.Now(), request: w.Header().Get("X-Request-Id")}
	s := newSender(w, h.dir.options.Idle)
	defer func() { a.log(h.dir.options.Log, r, s) }()
	s.extendDeadline()
	setSecureHeaders(w.Header())
	a.err = h.serve(s, r, &a)
	var abort abortError
	switch {
	case errors.As(a.err, &abort):
		panic(http.ErrAbortHandler)
	case a.err != nil:
		if h.dir.options.Rejected != nil {
			h.dir.options.Rejected(a.err)
		}
		h.fail(s, r, a.err)
	}
}

func (h *Links) serve(s *sender, r *http.Request, a *access) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		s.Header().Set("Allow", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS")
		return fault.Errorf(fault.MethodNotAllowed, "Use GET or HEAD with a download link, PUT, or HEAD, PATCH and DELETE, with an upload link.")
	}
	l, err := h.dir.signer.Verify(r)
	if err != nil {
		if errors.Is(err, fault.MethodNotAllowed) {
			s.Header().Set("Allow", "GET, HEAD")
		}
		return err
	}
	a.kind, a.id = l.Kind, l.ID
	end, err := h.dir.transfers.One(l.Holder)
	if err != nil {
		s.Header().Set("Retry-After", "5")
		return err
	}
	defer end()
	switch l.Kind {
	case app.UploadPut:
		if isResumable(r) {
			return h.resume(s, r, l, a)
		}
		return h.putUpload(s, r, l, a)
	case app.UploadGet:
		return h.getUpload(s, r, l)
	case app.ResultGet:
		return h.getResult(s, r, l)
	case app.ArchiveGet, app.PartArchive:
		return h.getArchive(s, r, l)
	}
	return link.Invalid(fmt.Errorf("the token has an unknown kind, %q", l.Kind))
}

// access is a request's entry in the access log. It omits the link, which any reader of
// the log could otherwise use.
type access struct {
	started  time.Time
	request  string // request ID
	kind     app.LinkKind
	id       string
	received int64 // bytes of the body
	err      error
}

func (a *access) log(log zerolog.Logger, r *http.Request, s *sender) {
	e := log.Info().Str("request", a.request).Str("method", r.Method)
	if a.id != "" {
		e = e.Str("kind", string(a.kind)).Str("id", a.id)
	}
	var abort abortError
	switch {
	case errors.As(a.err, &abort):
		e = e.Err(abort)
	case a.err != nil:
		e = e.Str("code", string(fault.CodeOf(a.err)))
	case s.err != nil:
		e = e.Err(s.err)
	}
	var remote string
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		remote = from.Addr().Unmap().WithZone("").String()
	}
	e.Int("status", s.status).Int64("bytes", s.bytes+a.received).Dur("took", time.Since(a.started)).
		Str("remote", remote).Msg("blob request")
}
