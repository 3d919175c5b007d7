package blobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/fault"
)

// bufferSize is how much of an upload is gathered before it is written.
const bufferSize = 256 << 10

// finishTime bounds how long recording a received file may take.
const finishTime = time.Minute

// put answers a PUT once its body is stored and recorded.
func (h *handler) put(s *sender, r *http.Request, l app.Link, a *access) error {
	if err := checkPut(r, l.ContentType); err != nil {
		return err
	}
	f, err := h.store(s, r, app.UploadID(l.ID), a)
	if err != nil {
		return err
	}
	body, err := json.Marshal(struct {
		Status string `json:"status"`
		Size   int64  `json:"size"`
		SHA256 string `json:"sha256"`
	}{"received", f.Size, f.SHA256})
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	s.Header().Set("Content-Type", "application/json")
	s.Header().Set("ETag", `"`+f.SHA256+`"`)
	s.extendDeadline()
	_, _ = s.Write(append(body, '\n')) // s.err keeps the client's error
	return nil
}

// checkPut refuses a body that is not the file itself.
func checkPut(r *http.Request, want string) error {
	if given := r.Header.Values("Content-Type"); len(given) > 1 || len(given) == 1 && !sameType(given[0], want) {
		return fault.Errorf(fault.LinkInvalid, "This link takes the Content-Type %s, not %s; send that or none.",
			want, strings.Join(given, ", "))
	}
	if r.Header.Get("Content-Range") != "" {
		return fault.List(fault.Field{
			Loc: []any{"header", "Content-Range"}, Msg: "send the whole file without Content-Range", Type: "unknown",
		})
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return fault.Errorf(fault.UnsupportedMediaType, "Send the file as it is, without Content-Encoding.")
	}
	return nil
}

// sameType compares media types regardless of case and spaces.
func sameType(a, b string) bool {
	aType, aParams, aErr := mime.ParseMediaType(a)
	bType, bParams, bErr := mime.ParseMediaType(b)
	if err := errors.Join(aErr, bErr); err != nil {
		return a == b
	}
	return mime.FormatMediaType(aType, aParams) == mime.FormatMediaType(bType, bParams)
}

// store receives a request's body, publishes it as a new generation of an
// upload and has it recorded.
func (h *handler) store(s *sender, r *http.Request, id app.UploadID, a *access) (f app.StoredFile, err error) {
	generation, err := h.svc.BeginUpload(r.Context(), id)
	if err != nil {
		return f, err
	}
	quota, err := h.svc.ReserveUpload(r.Context(), id, r.ContentLength)
	if err != nil {
		return f, err
	}
	defer quota.Release()
	in, err := h.dir.receive(r.ContentLength)
	if err != nil {
		return f, err
	}
	defer func() {
		a.received = in.size
		if err := in.discard(); err != nil {
			h.dir.options.Log.Error().Err(err).Msg("remove temporary file")
		}
	}()
	if err := h.copyBody(s, r, in, quota); err != nil {
		return f, err
	}
	generation, err = in.publish(id, generation)
	if err != nil {
		return f, err
	}
	f = app.StoredFile{Generation: generation, Size: in.size, SHA256: in.sum()}
	return f, h.finish(r.Context(), id, f)
}

// copyBody copies the request's body within the quota and checks its length.
func (h *handler) copyBody(s *sender, r *http.Request, in *incoming, quota *app.Reservation) error {
	buffer := h.buffers.Get().(*[]byte)
	defer h.buffers.Put(buffer)
	var readErr error
	for readErr == nil {
		var n int
		n, readErr = fill(s, r.Body, *buffer)
		if err := quota.Grow(r.Context(), in.size+int64(n)); err != nil {
			return err
		}
		if _, err := in.Write((*buffer)[:n]); err != nil {
			return err
		}
	}
	if readErr != io.EOF {
		return abortError{fmt.Errorf("receive body: %w", readErr)}
	}
	s.endReading()
	if r.ContentLength >= 0 && in.size != r.ContentLength {
		return abortError{fmt.Errorf("received %d bytes of %d", in.size, r.ContentLength)}
	}
	return nil
}

// fill reads until the buffer is full or the body ends. Each read may take as
// long as a transfer may stall.
func fill(s *sender, body io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		s.extendReadDeadline()
		var more int
		more, err = body.Read(buffer[n:])
		n += more
	}
	return n, err
}

// finish has the stored file recorded, even if the client has gone: all bytes
// are here. It removes the generation that no record names any more: the one
// replaced, or the new one if the service refuses it. After any other error
// the new one stays for the sweep, because a record may name it.
func (h *handler) finish(ctx context.Context, id app.UploadID, f app.StoredFile) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	unnamed, err := h.svc.FinishUpload(ctx, id, f)
	if err != nil {
		unnamed = 0
		if fault.CodeOf(err) != fault.Internal {
			unnamed = f.Generation
		}
	}
	if unnamed > 0 {
		if err := h.dir.RemoveUpload(id, unnamed); err != nil {
			h.dir.options.Log.Error().Err(err).Str("id", string(id)).Msg("remove upload")
		}
	}
	return err
}
