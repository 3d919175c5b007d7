package web

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"molrun/app/fault"
	"molrun/app/nearest"
)

// reader is what decode fills: a request type beside its handler, whose read
// takes each part of the request by name.
type reader[T any] interface {
	*T
	read(in *input)
}

// decode reads a request. Its error is an Invalid with every fault of path,
// query and body at once, or says why the body could not be read at all. What
// was read is there in either case.
func decode[T any, P reader[T]](c *gin.Context) (T, error) {
	var req T
	in := &input{c: c}
	in.parseQuery()
	P(&req).read(in)
	return req, in.end()
}

// input gives the parts of a request by name and gathers their faults.
type input struct {
	c      *gin.Context
	query  url.Values
	known  []string // query parameters that were asked for
	body   *object  // nil until asked for
	faults []fault.Field
	err    error // the body could not be read: no 422
}

// limits gives what bounds the request.
func (in *input) limits() *limits { return in.c.MustGet(limitsKey).(*limits) }

func (in *input) fault(kind string, loc []any, format string, args ...any) {
	in.faults = append(in.faults, fault.Field{Loc: loc, Msg: fmt.Sprintf(format, args...), Type: kind})
}

// refuse takes over the faults of an Invalid, and any other error as it is.
func (in *input) refuse(err error) {
	faults := faultsOf(err)
	if faults == nil {
		in.err = err
	}
	in.faults = append(in.faults, faults...)
}

// end gives the error of the whole request, nil where there is none.
func (in *input) end() error {
	for _, name := range slices.Sorted(maps.Keys(in.query)) {
		in.checkParameter(name)
	}
	in.body.end()
	if in.err != nil {
		return in.err
	}
	return fault.List(in.faults...)
}

// path gives a parameter of the path, decoded once.
func (in *input) path(name string) string {
	value := in.decoded(name)
	if !utf8.ValidString(value) {
		in.fault("value", []any{"path", name}, "percent-encode this as valid UTF-8")
		return ""
	}
	return value
}

// decoded gives a parameter of the path for a rule that checks all of it.
func (in *input) decoded(name string) string {
	value, err := url.PathUnescape(in.c.Param(name))
	if err != nil { // the escapes of a URL that was parsed are good
		return in.c.Param(name)
	}
	return value
}

// faultsOf gives the faults that an Invalid lists, none for another error.
func faultsOf(err error) []fault.Field {
	var invalid *fault.Error
	if !errors.As(err, &invalid) || invalid.Code != fault.Invalid {
		return nil
	}
	return invalid.Fields
}

// suggest ends a message about an unknown name: what may have been meant, or
// what there is.
func suggest(name string, known []string) string {
	if nearest := nearest.Of(name, known); nearest != "" {
		return fmt.Sprintf("did you mean %q?", nearest)
	}
	if len(known) == 0 {
		return "leave it out: there are none here"
	}
	return "known are " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}
