package respond

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"molrun/app/base/fault"
)

// statuses maps every error code to its HTTP status.
var statuses = map[fault.Code]int{
	fault.BadRequest:           http.StatusBadRequest,
	fault.Unauthorized:         http.StatusUnauthorized,
	fault.Forbidden:            http.StatusForbidden,
	fault.LinkInvalid:          http.StatusForbidden,
	fault.LinkExpired:          http.StatusForbidden,
	fault.QuotaExceeded:        http.StatusForbidden,
	fault.NotFound:             http.StatusNotFound,
	fault.OutputRemoved:        http.StatusNotFound,
	fault.InputRemoved:         http.StatusNotFound,
	fault.MethodNotAllowed:     http.StatusMethodNotAllowed,
	fault.JobAlreadyExists:     http.StatusConflict,
	fault.JobNotCompleted:      http.StatusConflict,
	fault.JobNotFinished:       http.StatusConflict,
	fault.JobNotFailed:         http.StatusConflict,
	fault.DependencyFailed:     http.StatusConflict,
	fault.UploadNotReceived:    http.StatusConflict,
	fault.UploadCompleted:      http.StatusConflict,
	fault.UploadOffset:         http.StatusConflict,
	fault.UploadLength:         http.StatusBadRequest,
	fault.DigestMismatch:       http.StatusBadRequest,
	fault.FileInUse:            http.StatusConflict,
	fault.BodyTooLarge:         http.StatusRequestEntityTooLarge,
	fault.FileTooLarge:         http.StatusRequestEntityTooLarge,
	fault.UnsupportedMediaType: http.StatusUnsupportedMediaType,
	fault.RangeInvalid:         http.StatusRequestedRangeNotSatisfiable,
	fault.Invalid:              http.StatusUnprocessableEntity,
	fault.RateLimited:          http.StatusTooManyRequests,
	fault.Internal:             http.StatusInternalServerError,
	fault.Unavailable:          http.StatusServiceUnavailable,
	fault.StorageFull:          http.StatusInsufficientStorage,
}

// retryAfter maps error codes to the number of seconds after which a retry makes sense.
var retryAfter = map[fault.Code]string{
	fault.RateLimited: "1",
	fault.Unavailable: "5",
}

// RetryAfter sets the Retry-After header if requests rejected with code should be
// retried.
func RetryAfter(h http.Header, code fault.Code) {
	if seconds := retryAfter[code]; seconds != "" {
		h.Set("Retry-After", seconds)
	}
}

type errorBody struct {
	Error ErrorObject `json:"error"`
}

// ErrorObject is the "error" member of a response.
type ErrorObject struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

type detailBody struct {
	Detail []fault.Field `json:"detail"`
}

// Error responds with err. Internal errors are logged with their cause and shown without
// it.
func Error(w http.ResponseWriter, r *http.Request, err error) {
	shown := explain(r, err)
	status, known := statuses[shown.Code]
	if !known {
		shown.Code, status = fault.Internal, http.StatusInternalServerError
	}
	logCause(r, shown.Code, err)
	if shown.Code == fault.Internal {
		shown.Message = fmt.Sprintf("Something went wrong in the service; give its administrator the request ID %s.",
			w.Header().Get(RequestID))
	}
	dropBodyHeaders(w.Header())
	RetryAfter(w.Header(), shown.Code)
	if shown.Code == fault.Unauthorized {
		w.Header().Set("WWW-Authenticate", `ApiKey header="x-api-key"`)
	}
	if shown.Code == fault.Invalid {
		_ = JSON(w, status, detailBody{detail(shown)}) // can't fail: fields contain only strings and numbers
		return
	}
	body := errorBody{ErrorObject{shown.Code, sentence(shown.Message)}}
	if shown.Problem != nil {
		problem(w, status, body, shown.Problem)
		return
	}
	_ = JSON(w, status, body)
}

// problem responds with a problem document that also contains the error object of other
// responses.
func problem(w http.ResponseWriter, status int, body errorBody, members map[string]any) {
	all := maps.Clone(members)
	all["error"], all["status"] = body.Error, status
	text, err := json.Marshal(all)
	if err != nil {
		_ = JSON(w, status, body)
		return
	}
	Body(w, status, ProblemType, append(text, '\n'))
}

// sentence capitalizes a message and ends it with a period. Messages are written without
// them.
func sentence(message string) string {
	first, size := utf8.DecodeRuneInString(message)
	message = string(unicode.ToUpper(first)) + message[size:]
	if strings.HasSuffix(message, ".") {
		return message
	}
	return message + "."
}

// explain returns the part of err that the caller is allowed to see.
func explain(r *http.Request, err error) fault.Error {
	var known *fault.Error
	switch {
	case errors.As(err, &known) && known.Code != fault.Internal:
		return *known
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fault.Error{Code: fault.Unavailable, Message: "The server has too many open files; send the request again in a moment."}
	case known != nil:
		return *known
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return fault.Error{Code: fault.Unavailable, Message: "The request was cancelled before it finished; send it again."}
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Error{Code: fault.Unavailable, Message: "The service did not answer in time; send the request again."}
	}
	code := fault.CodeOf(err) // an error code from storage or blobs alone has no message
	if code == fault.NotFound {
		return fault.Error{Code: code, Message: "No object with that name exists (it may have been deleted); list the existing ones and try again."}
	}
	return fault.Error{Code: code, Message: "The request was rejected; give the administrator the request ID in X-Request-Id."}
}

// detail returns the field errors of an Invalid error. Without fields, the error is about
// the body.
func detail(e fault.Error) []fault.Field {
	if len(e.Fields) > 0 {
		return e.Fields
	}
	return []fault.Field{{Loc: []any{"body"}, Msg: e.Message, Type: "value"}}
}

// logCause logs errors that the operator should know about: internal errors, and the
// causes of rejections whose message does not name one.
func logCause(r *http.Request, code fault.Code, err error) {
	log := zerolog.Ctx(r.Context())
	switch {
	case r.Context().Err() != nil && errors.Is(err, context.Canceled):
		log.Debug().Err(err).Msg("request cancelled")
	case code == fault.Internal:
		log.Error().Err(err).Msg("request failed")
	case code == fault.StorageFull || code == fault.Unavailable:
		log.Warn().Err(err).Msg("request rejected")
	}
}

// dropBodyHeaders removes the headers of a body that will not be sent.
func dropBodyHeaders(h http.Header) {
	for _, name := range []string{"Content-Disposition", "Content-Encoding", "Content-Length", "Etag", "Last-Modified", "X-Incomplete", "X-Log-Size"} {
		h.Del(name)
	}
}
