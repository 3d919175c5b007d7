package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"

	"molrun/app"
)

// statuses is the only place where codes become statuses.
var statuses = map[app.Code]int{
	app.BadRequest:           http.StatusBadRequest,
	app.Unauthorized:         http.StatusUnauthorized,
	app.Forbidden:            http.StatusForbidden,
	app.LinkInvalid:          http.StatusForbidden,
	app.LinkExpired:          http.StatusForbidden,
	app.QuotaExceeded:        http.StatusForbidden,
	app.NotFound:             http.StatusNotFound,
	app.MethodNotAllowed:     http.StatusMethodNotAllowed,
	app.JobAlreadyExists:     http.StatusConflict,
	app.JobNotCompleted:      http.StatusConflict,
	app.JobNotFinished:       http.StatusConflict,
	app.JobNotFailed:         http.StatusConflict,
	app.UploadNotReceived:    http.StatusConflict,
	app.UploadCompleted:      http.StatusConflict,
	app.FileInUse:            http.StatusConflict,
	app.BodyTooLarge:         http.StatusRequestEntityTooLarge,
	app.FileTooLarge:         http.StatusRequestEntityTooLarge,
	app.UnsupportedMediaType: http.StatusUnsupportedMediaType,
	app.RangeInvalid:         http.StatusRequestedRangeNotSatisfiable,
	app.Invalid:              http.StatusUnprocessableEntity,
	app.RateLimited:          http.StatusTooManyRequests,
	app.Internal:             http.StatusInternalServerError,
	app.Unavailable:          http.StatusServiceUnavailable,
	app.StorageFull:          http.StatusInsufficientStorage,
}

// retryAfter is after how many seconds it is worth to try again.
var retryAfter = map[app.Code]string{
	app.RateLimited: "1",
	app.Unavailable: "5",
}

type errorBody struct {
	Error errorObject `json:"error"`
}

type errorObject struct {
	Code    app.Code `json:"code"`
	Message string   `json:"message"`
}

type detailBody struct {
	Detail []app.FieldError `json:"detail"`
}

// WriteError answers the request with what went wrong. What is ours to fix is
// logged with its cause and shown without it.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	shown := explain(r, err)
	status, known := statuses[shown.Code]
	if !known {
		shown.Code, status = app.Internal, http.StatusInternalServerError
	}
	logCause(r, shown.Code, err)
	if shown.Code == app.Internal {
		shown.Message = fmt.Sprintf("Something went wrong in the service; tell its administrator the request id %s.",
			w.Header().Get(requestIDHeader))
	}
	forgetBody(w.Header())
	if seconds := retryAfter[shown.Code]; seconds != "" {
		w.Header().Set("Retry-After", seconds)
	}
	if shown.Code == app.Unauthorized {
		w.Header().Set("WWW-Authenticate", `ApiKey header="x-api-key"`)
	}
	if shown.Code == app.Invalid {
		writeJSON(w, status, detailBody{detail(shown)})
		return
	}
	writeJSON(w, status, errorBody{errorObject{shown.Code, sentence(shown.Message)}})
}

// sentence gives a message, which the rules write as part of one, a capital
// and a full stop.
func sentence(message string) string {
	first, size := utf8.DecodeRuneInString(message)
	message = string(unicode.ToUpper(first)) + message[size:]
	if strings.HasSuffix(message, ".") {
		return message
	}
	return message + "."
}

// explain gives the error as the caller may see it.
func explain(r *http.Request, err error) app.Error {
	var known *app.Error
	switch {
	case errors.As(err, &known):
		return *known
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return app.Error{Code: app.Unavailable, Message: "The request was given up before it was done; send it again."}
	case errors.Is(err, context.DeadlineExceeded):
		return app.Error{Code: app.Unavailable, Message: "The service did not answer in time; send the request again."}
	}
	code := app.CodeOf(err) // without a message, from below the rules
	if code == app.NotFound {
		return app.Error{Code: code, Message: "There is nothing of that name here any more; list what there is and try again."}
	}
	return app.Error{Code: code, Message: "The request was refused; tell the administrator the request id in X-Request-Id."}
}

// detail gives the faults of an Invalid; one without any is about the body.
func detail(e app.Error) []app.FieldError {
	if len(e.Fields) > 0 {
		return e.Fields
	}
	return []app.FieldError{{Loc: []any{"body"}, Msg: e.Message, Type: "value"}}
}

// logCause logs what an operator has to know: our own failures, and what lies
// behind a refusal that names no cause.
func logCause(r *http.Request, code app.Code, err error) {
	log := zerolog.Ctx(r.Context())
	switch {
	case r.Context().Err() != nil && errors.Is(err, context.Canceled):
		log.Debug().Err(err).Msg("request given up")
	case code == app.Internal:
		log.Error().Err(err).Msg("request failed")
	case code == app.StorageFull || code == app.Unavailable:
		log.Warn().Err(err).Msg("request refused")
	}
}

// forgetBody removes the headers of a body that will not be sent.
func forgetBody(h http.Header) {
	for _, name := range []string{"Content-Disposition", "Content-Encoding", "Content-Length", "Etag", "Last-Modified", "X-Log-Size"} {
		h.Del(name)
	}
}

// fail answers with err and keeps later handlers from running.
func fail(c *gin.Context, err error) {
	c.Abort()
	c.Set(codeKey, string(app.CodeOf(err)))
	WriteError(c.Writer, c.Request, err)
}
