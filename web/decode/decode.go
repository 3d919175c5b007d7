// Package decode reads requests: path and query parameters and members of a JSON body,
// each by name. It collects all errors in a request, so that a client can fix them
// together.
package decode

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
	"molrun/web/respond"
)

// Request decodes a request with read, which reads every part that the route supports.
// Any other part is an error. Request returns an Invalid error with all field errors, or
// an error that says why the body could not be read. It returns the decoded request even
// with an error.
func Request[T any](c *gin.Context, read func(*Reader) T) (T, error) {
	r, decoded := readAll(c, read)
	return decoded, r.firstError()
}

// Lenient is Request for a service that reports the errors in a body together with its
// own. If the body is a JSON object and nothing else is wrong, Lenient returns the body's
// errors as faults and a nil err.
func Lenient[T any](c *gin.Context, read func(*Reader) T) (_ T, faults []fault.Field, err error) {
	r, decoded := readAll(c, read)
	elsewhere := func(f fault.Field) bool { return f.Loc[0] != "body" }
	if r.err != nil || r.body == nil || r.body.value == nil || slices.ContainsFunc(r.faults, elsewhere) {
		return decoded, nil, r.firstError()
	}
	return decoded, r.faults, nil
}

// Query is Request for a service that reports the errors in a query, without a body,
// together with its own.
func Query[T any](c *gin.Context, read func(*Reader) T) (_ T, faults []fault.Field) {
	r, decoded := readAll(c, read)
	return decoded, r.faults
}

// readAll decodes a request and adds errors for the parts that read does not use.
func readAll[T any](c *gin.Context, read func(*Reader) T) (*Reader, T) {
	r := &Reader{Request: c.Request, c: c}
	r.parseQuery()
	decoded := read(r)
	r.checkUnknown()
	return r, decoded
}

// Empty checks a request without parameters. It does not read the body, if there is one.
func Empty(c *gin.Context) error {
	_, err := Request(c, func(*Reader) struct{} { return struct{}{} })
	return err
}

// NoBody checks a request with neither parameters nor a body.
func NoBody(c *gin.Context) error {
	_, err := Request(c, func(r *Reader) struct{} {
		r.NoBody()
		return struct{}{}
	})
	return err
}

// Reader reads the parts of a request by name and collects their errors.
type Reader struct {
	Request *http.Request

	c        *gin.Context
	query    url.Values
	known    []string  // query parameters that the handler supports
	repeated []string  // the subset of known that can be repeated
	body     *Object   // nil until requested
	objects  []*Object // all objects in the body, including the body itself
	faults   []fault.Field
	err      error // why the body could not be read; overrides the faults
}

// Fault adds an error about a part of the request.
func (r *Reader) Fault(kind string, loc []any, format string, args ...any) {
	r.faults = append(r.faults, fault.Field{Loc: loc, Msg: fmt.Sprintf(format, args...), Type: kind})
}

// fail adds the field errors of an Invalid error. Any other error replaces them all.
func (r *Reader) fail(err error) {
	faults := Faults(err)
	if faults == nil {
		r.err = err
	}
	r.faults = append(r.faults, faults...)
}

// Faults returns the field errors of an Invalid error, or nil for any other error.
func Faults(err error) []fault.Field {
	var invalid *fault.Error
	if !errors.As(err, &invalid) || invalid.Code != fault.Invalid {
		return nil
	}
	return invalid.Fields
}

func (r *Reader) parseQuery() {
	if most := r.limits().URL; len(r.Request.RequestURI) > most {
		r.Fault("value", []any{"query"}, "shorten the URL to at most %d bytes", most)
		return
	}
	values, err := url.ParseQuery(r.Request.URL.RawQuery)
	if err != nil {
		r.Fault("value", []any{"query"}, "percent-encode the query string: %v", err)
	}
	r.query = values
}

// checkUnknown adds an error for each part of the request that the handler did not read.
func (r *Reader) checkUnknown() {
	for _, name := range slices.Sorted(maps.Keys(r.query)) {
		loc := []any{"query", strings.ToValidUTF8(name, "�")}
		if !slices.Contains(r.known, name) {
			r.Fault("unknown", loc, "unknown query parameter %q; %s", respond.Clip(name), suggest(name, r.known))
		} else if len(r.query[name]) > 1 && !slices.Contains(r.repeated, name) {
			r.Fault("value", loc, "send this parameter once")
		}
	}
	for _, o := range r.objects {
		if o.value == nil {
			continue
		}
		for _, m := range o.value.Members {
			if !slices.Contains(o.known, m.Name) {
				o.Fault("unknown", m.Name, "unknown member %q; %s", respond.Clip(m.Name), suggest(m.Name, o.known))
			}
		}
	}
}

// firstError returns the error of the whole request, or nil.
func (r *Reader) firstError() error {
	if r.err != nil {
		return r.err
	}
	return fault.List(r.faults...)
}

// suggest ends an error message about an unknown name with the nearest known name, or
// with all known names.
func suggest(name string, known []string) string {
	if nearest := plaintext.Nearest(name, known); nearest != "" {
		return fmt.Sprintf("did you mean %q?", nearest)
	}
	if len(known) == 0 {
		return "remove it: none are allowed here"
	}
	return "known are " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// Path returns a path parameter.
func (r *Reader) Path(name string) string {
	value := r.UncheckedPath(name)
	if !utf8.ValidString(value) {
		r.Fault("value", []any{"path", name}, "percent-encode this as valid UTF-8")
		return ""
	}
	return value
}

// UncheckedPath returns a path parameter, percent-decoded once. It can be invalid UTF-8,
// for callers that check the whole value.
func (r *Reader) UncheckedPath(name string) string {
	value, err := url.PathUnescape(r.c.Param(name))
	if err != nil { // can't happen: net/http has parsed the URL
		return r.c.Param(name)
	}
	return value
}
