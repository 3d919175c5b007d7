// Package fault defines the errors that callers can act on: a code, a sentence that says
// what to do next, and every invalid field of a request.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Code names a kind of failure that callers can act on. Its values are those of the API;
// package web maps each to an HTTP status.
type Code string

// The codes. Invalid is the only one that does not appear in the API: it becomes the list
// of field errors of status 422.
const (
	NotFound             Code = "NOT_FOUND"   // absent, or not visible to the caller
	BadRequest           Code = "BAD_REQUEST" // not valid HTTP
	Unauthorized         Code = "UNAUTHORIZED"
	Forbidden            Code = "FORBIDDEN"
	LinkInvalid          Code = "LINK_INVALID"
	LinkExpired          Code = "LINK_EXPIRED"
	QuotaExceeded        Code = "QUOTA_EXCEEDED"
	OutputRemoved        Code = "OUTPUT_REMOVED" // of a failed job, some time after the failure
	InputRemoved         Code = "INPUT_REMOVED"  // of a finished job
	MethodNotAllowed     Code = "METHOD_NOT_ALLOWED"
	JobAlreadyExists     Code = "JOB_ALREADY_EXISTS" // a different job has this name
	JobNotCompleted      Code = "JOB_NOT_COMPLETED"
	JobNotFinished       Code = "JOB_NOT_FINISHED"
	JobNotFailed         Code = "JOB_NOT_FAILED"
	DependencyFailed     Code = "DEPENDENCY_FAILED" // another job has to be retried first
	UploadNotReceived    Code = "UPLOAD_NOT_RECEIVED"
	UploadCompleted      Code = "UPLOAD_COMPLETED"
	UploadOffset         Code = "UPLOAD_OFFSET_MISMATCH" // a part does not start where the previous one ended
	UploadLength         Code = "UPLOAD_LENGTH_MISMATCH" // the client's statements about a file's length disagree
	DigestMismatch       Code = "DIGEST_MISMATCH"        // the received bytes differ from those sent
	FileInUse            Code = "FILE_IN_USE"
	BodyTooLarge         Code = "BODY_TOO_LARGE"
	FileTooLarge         Code = "FILE_TOO_LARGE"
	UnsupportedMediaType Code = "UNSUPPORTED_MEDIA_TYPE"
	RangeInvalid         Code = "RANGE_INVALID"
	RateLimited          Code = "RATE_LIMITED"
	Unavailable          Code = "UNAVAILABLE"
	StorageFull          Code = "STORAGE_FULL"
	Internal             Code = "INTERNAL" // ours to fix; the cause is logged
	Invalid              Code = "INVALID"  // Fields says what to fix
)

func (c Code) Error() string { return string(c) }

// Error is a failure with a code and a sentence for the caller.
type Error struct {
	Code    Code
	Message string  // says what to do next
	Fields  []Field // for Invalid: every error in the request
	Err     error   // cause, only for the log

	// Problem holds the additional response members of a problem document (RFC 9457),
	// where a standard requires one.
	Problem map[string]any
}

// Field is one error in a request: its location, what to do, and its kind.
type Field struct {
	Loc  []any  `json:"loc"` // strings and ints; starts with body, query, path or header
	Msg  string `json:"msg"`
	Type string `json:"type"` // missing, unknown, type, value, taken …
}

// String returns the location, such as settings[2].steps, and what to do. Indexes decoded
// from JSON are floats. If the message names the line and column of a table, the location
// omits them.
func (f Field) String() string {
	place := ""
	for _, part := range f.Loc {
		if said, _, _ := strings.Cut(f.Msg, ":"); said == fmt.Sprintf("line %v", part) || strings.HasPrefix(said, fmt.Sprintf("line %v, column ", part)) {
			break
		}
		switch p := part.(type) {
		case int:
			place += fmt.Sprintf("[%d]", p)
		case float64:
			place += fmt.Sprintf("[%d]", int(p))
		default:
			place += fmt.Sprintf(".%v", p)
		}
	}
	return strings.TrimPrefix(place, ".") + ": " + f.Msg
}

func (e *Error) Error() string {
	switch {
	case len(e.Fields) > 0:
		return fmt.Sprintf("%s: %v: %s", e.Code, e.Fields[0].Loc, e.Fields[0].Msg)
	case e.Err != nil:
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Is makes errors.Is(err, NotFound) match the code.
func (e *Error) Is(target error) bool { return target == e.Code }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error with a message for the caller.
func Errorf(code Code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// List returns the Invalid error with these field errors, or nil if there are none.
func List(faults ...Field) error {
	if len(faults) == 0 {
		return nil
	}
	return &Error{Code: Invalid, Message: faults[0].Msg, Fields: faults}
}

// CodeOf returns the code of err, or Internal if it has none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	var c Code
	if errors.As(err, &c) {
		return c
	}
	return Internal
}
