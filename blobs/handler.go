package blobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
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
	return &handler{dir: dir, svc: svc, fail: fail, slots: make(chan struct{}, dir.options.Streams)}
}

type handler struct {
	dir   *Dir
	svc   Service
	fail  Fail
	slots chan struct{} // one taken by each transfer
}

// cutError says why a transfer broke off when it was too late for an answer.
type cutError struct{ error }

func (e cutError) Unwrap() error { return e.error }

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := access{started: time.Now(), request: w.Header().Get("X-Request-Id"), method: r.Method}
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
		return app.Errorf(app.MethodNotAllowed, "Use GET or HEAD with a download link, PUT with an upload link.")
	}
	c, err := h.dir.links.verify(r)
	if err != nil {
		return err
	}
	a.kind, a.id = c.Kind, c.Subject
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		s.Header().Set("Retry-After", "5")
		return app.Errorf(app.Unavailable, "Too many files are on their way at once; try again in a few seconds.")
	}
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
	kind    app.LinkKind
	id      string
	taken   int64 // bytes of the body
	err     error
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
		e = e.Str("code", string(app.CodeOf(a.err)))
	case s.err != nil:
		e = e.Err(s.err)
	}
	e.Int("status", s.status).Int64("bytes", s.bytes+a.taken).Dur("took", time.Since(a.started)).Msg("blob request")
}
