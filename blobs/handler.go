package blobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/fault"
)

// bufferSize is how much of an upload is gathered before it is written.
const bufferSize = 256 << 10

// Service are the rules that the handler asks; *app.Service has them.
type Service interface {
	// Upload gives the record of an upload.
	Upload(ctx context.Context, id app.UploadID) (*app.Upload, error)
	// BeginUpload is asked before a body is read; it gives the generation to
	// store it as, another one with each call.
	BeginUpload(ctx context.Context, id app.UploadID) (generation int, err error)
	// UploadRoom takes room for length bytes, -1 where that is not known. It has
	// to be released.
	UploadRoom(ctx context.Context, id app.UploadID, length int64) (*app.UploadRoom, error)
	// FinishUpload makes a stored generation current or refuses it. Stale is
	// the generation that is no longer needed, 0 for none.
	FinishUpload(ctx context.Context, id app.UploadID, f app.StoredFile) (stale int, err error)
	// ArchiveFolders gives the folders of the archive of a job or batch.
	ArchiveFolders(ctx context.Context, id app.JobID, partial bool) ([]app.Folder, error)
}

// Fail answers a request with an error as the whole service does.
type Fail func(w http.ResponseWriter, r *http.Request, err error)

// Handler serves the links that dir signs: everything below /blobs/. It wants
// a ResponseWriter that leads to the connection unchanged, for that is what
// lets the kernel copy files. It panics with http.ErrAbortHandler to cut a
// connection on which an answer can't be completed.
func Handler(dir *Dir, svc Service, fail Fail) http.Handler {
	return &handler{dir: dir, svc: svc, fail: fail, transfers: newTransfers(dir.options.Streams, dir.options.StreamsPerHolder)}
}

type handler struct {
	dir       *Dir
	svc       Service
	fail      Fail
	transfers *transfers
}

// cutError says why a transfer broke off when it was too late for an answer.
type cutError struct{ error }

func (e cutError) Unwrap() error { return e.error }

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := access{started: time.Now(), request: w.Header().Get("X-Request-Id"), method: r.Method, remote: remote(r)}
	s := newSender(w, h.dir.options.Idle)
	defer a.log(h.dir.options.Log, s)
	s.moveDeadline()
	setSecureHeaders(w.Header())
	a.err = h.serve(s, r, &a)
	var cut cutError
	switch {
	case errors.As(a.err, &cut):
		panic(http.ErrAbortHandler)
	case a.err != nil:
		h.fail(s, r, a.err)
	}
}

func (h *handler) serve(s *sender, r *http.Request, a *access) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPut:
	default:
		s.Header().Set("Allow", "GET, HEAD, PUT")
		return fault.Errorf(fault.MethodNotAllowed, "Use GET or HEAD with a download link, PUT with an upload link.")
	}
	c, err := h.dir.links.Load().verify(r)
	if err != nil {
		return err
	}
	a.kind, a.id = c.Kind, c.Subject
	end, err := h.transfers.begin(c.Holder)
	if err != nil {
		s.Header().Set("Retry-After", "5")
		return err
	}
	defer end()
	switch c.Kind {
	case app.UploadPut:
		return h.put(s, r, c, a)
	case app.UploadGet:
		return h.getUpload(s, r, c)
	case app.ResultGet:
		return h.getResult(s, r, c)
	case app.ArchiveGet, app.PartArchive:
		return h.getArchive(s, r, c)
	}
	return invalidLink(fmt.Errorf("the token is of the unknown kind %q", c.Kind))
}

// access is the line that the log gets of a request. The link itself is not
// in it: whoever reads logs could use it.
type access struct {
	started time.Time
	request string
	method  string
	remote  string
	kind    app.LinkKind
	id      string
	taken   int64 // bytes of the body
	err     error
}

// remote gives the address that a request came from.
func remote(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return from.Addr().Unmap().WithZone("").String()
}

func (a *access) log(log zerolog.Logger, s *sender) {
	e := log.Info().Str("request", a.request).Str("method", a.method)
	if a.id != "" {
		e = e.Str("kind", string(a.kind)).Str("id", a.id)
	}
	var cut cutError
	switch {
	case errors.As(a.err, &cut):
		e = e.Err(cut)
	case a.err != nil:
		e = e.Str("code", string(fault.CodeOf(a.err)))
	case s.err != nil:
		e = e.Err(s.err)
	}
	e.Int("status", s.status).Int64("bytes", s.bytes+a.taken).Dur("took", time.Since(a.started)).
		Str("remote", a.remote).Msg("blob request")
}
