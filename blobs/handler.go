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

// Service is the rules that the handler needs; *upload.Files and *app.Jobs
// implement it together.
type Service interface {
	Archives

	// Upload returns the record of an upload.
	Upload(ctx context.Context, id app.UploadID) (*app.Upload, error)
	// BeginUpload is called before a body is read. It returns the generation to
	// store it as, a new one for each call, and reserves quota for length bytes,
	// -1 if that is unknown. The caller must release it.
	BeginUpload(ctx context.Context, id app.UploadID, length int64) (generation int, quota *upload.Reservation, err error)
	// FinishUpload makes a stored generation current or refuses it. Stale is
	// the generation that it replaces, 0 for none.
	FinishUpload(ctx context.Context, id app.UploadID, f app.StoredFile) (stale int, err error)

	// BeginPart is BeginUpload for a request that begins a file in parts or adds to it.
	// The file will have size bytes at least when it ends, of which the record counts
	// some already.
	BeginPart(ctx context.Context, id app.UploadID, size, recorded int64) (generation int, quota *upload.Reservation, err error)
	// BeginPartial records that a file begins to arrive in parts, SavePartial what
	// of it is durable; DropPartial forgets it and removes its file.
	BeginPartial(ctx context.Context, id app.UploadID, p *app.Partial) error
	SavePartial(ctx context.Context, id app.UploadID, p *app.Partial) error
	DropPartial(ctx context.Context, id app.UploadID) error
}

// Archives is the rule of what archives hold.
type Archives interface {
	// Archive returns what the archive of a job or batch holds.
	Archive(ctx context.Context, id app.JobID, form app.ArchiveForm) (app.Archive, error)
}

// Fail answers a request with an error in the service's own form.
type Fail func(w http.ResponseWriter, r *http.Request, err error)

// Handler serves the links that dir signs: everything below /blobs/. Its
// ResponseWriter must be the connection's own, so that the kernel can copy
// files to it. It panics with http.ErrAbortHandler to close a connection on
// which a response cannot be completed.
func Handler(dir *Dir, svc Service, fail Fail) *Links {
	return &Links{
		dir: dir, svc: svc, fail: fail, writers: newUploadWriters(),
		buffers: sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }},
	}
}

// Links serves what links lead to.
type Links struct {
	dir     *Dir
	svc     Service
	fail    Fail
	writers *uploadWriters
	buffers sync.Pool // *[]byte of bufferSize
}

// abortError is why a transfer broke off when it was too late for an answer.
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
		if h.dir.options.Refused != nil {
			h.dir.options.Refused(a.err)
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
		if inParts(r) {
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
	return link.Invalid(fmt.Errorf("the token is of the unknown kind %q", l.Kind))
}

// access is the entry of a request in the access log. It leaves out the link,
// because anybody who reads the log could use it.
type access struct {
	started  time.Time
	request  string // its ID
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
