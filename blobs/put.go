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

// finishTime bounds how long a received file may wait to be recorded.
const finishTime = time.Minute

// put stores a request's body as a new generation of an upload.
func (h *handler) put(s *sender, r *http.Request, c *claims, a *access) error {
	if err := checkPut(r, c.ContentType); err != nil {
		return err
	}
	id := app.UploadID(c.Subject)
	generation, err := h.svc.BeginUpload(r.Context(), id)
	if err != nil {
		return err
	}
	f, err := h.take(s, r, a, id, generation)
	if err != nil {
		return err
	}
	return received(s, f)
}

// take receives the body within the quota and has it recorded.
func (h *handler) take(s *sender, r *http.Request, a *access, id app.UploadID, generation int) (f app.StoredFile, err error) {
	room, err := h.svc.UploadRoom(r.Context(), id, r.ContentLength)
	if err != nil {
		return f, err
	}
	defer room.Release()
	in, err := h.dir.receive(r.ContentLength)
	if err != nil {
		return f, err
	}
	in.room = room
	f, err = h.store(s, r, in, id, generation)
	a.taken = in.size
	return f, err
}

// store fills the file, publishes it and has it recorded. The temporary name
// goes in any case.
func (h *handler) store(
	s *sender, r *http.Request, in *incoming, id app.UploadID, generation int,
) (f app.StoredFile, err error) {
	defer func() {
		if err := in.discard(); err != nil {
			h.dir.options.Log.Error().Err(err).Msg("remove temporary file")
		}
	}()
	if err := h.copyBody(s, r, in); err != nil {
		return f, err
	}
	generation, err = in.publish(id, generation)
	if err != nil {
		return f, err
	}
	f = app.StoredFile{Generation: generation, Size: in.size, SHA256: in.sum()}
	return f, h.finish(r.Context(), id, f)
}

// finish has the stored file recorded, also where the client no longer waits:
// all its bytes are here.
func (h *handler) finish(ctx context.Context, id app.UploadID, f app.StoredFile) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	stale, err := h.svc.FinishUpload(ctx, id, f)
	if err != nil {
		return h.refused(id, f, err)
	}
	if stale > 0 {
		h.remove(id, stale)
	}
	return nil
}

// refused removes a file that the rules refuse. After any other fault it is
// unknown whether a record names the file, so that it stays for the sweep.
func (h *handler) refused(id app.UploadID, f app.StoredFile, err error) error {
	if fault.CodeOf(err) != fault.Internal {
		h.remove(id, f.Generation)
	}
	return err
}

// remove frees a generation that no record names. Where it fails, the sweep
// tries again.
func (h *handler) remove(id app.UploadID, generation int) {
	if err := h.dir.RemoveUpload(id, generation); err != nil {
		h.dir.options.Log.Error().Err(err).Str("id", string(id)).Msg("remove upload")
	}
}

// copyBody copies the request's body and checks its length.
func (h *handler) copyBody(s *sender, r *http.Request, in *incoming) error {
	buffer := h.dir.buffers.Get().(*[]byte)
	defer h.dir.buffers.Put(buffer)
	for {
		n, readErr := fill(s, r.Body, *buffer)
		if err := in.room.Grow(r.Context(), in.size+int64(n)); err != nil {
			return err
		}
		if _, err := in.Write((*buffer)[:n]); err != nil {
			return err
		}
		if readErr == io.EOF {
			break
		}
		if readErr != nil {
			return cutError{fmt.Errorf("receive body: %w", readErr)}
		}
	}
	s.endReading()
	if r.ContentLength >= 0 && in.size != r.ContentLength {
		return cutError{fmt.Errorf("received %d bytes of %d", in.size, r.ContentLength)}
	}
	return nil
}

// fill reads until the buffer is full or there is no more. Each read may take
// as long as a transfer may stand still.
func fill(s *sender, body io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		s.moveReadDeadline()
		var more int
		more, err = body.Read(buffer[n:])
		n += more
	}
	return n, err
}

// checkPut refuses bodies that are not the file itself.
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

// received answers a PUT that is stored for good.
func received(s *sender, f app.StoredFile) error {
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
	s.moveDeadline()
	_, _ = s.Write(append(body, '\n')) // the client's fault is in s.err
	return nil
}
