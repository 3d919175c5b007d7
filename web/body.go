package web

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app/fault"
	"molrun/app/strictjson"
)

// limits bounds one request.
type limits struct {
	url    int   // bytes of path and query
	max    int64 // bytes of the body
	json   strictjson.Limits
	budget *budget
	held   int64 // taken from the budget
}

func (l *limits) release() { l.budget.give(l.held) }

// budget bounds the memory of all bodies together: it counts the bytes that
// were read for requests that are not answered yet.
type budget struct {
	size   int64
	taken  atomic.Int64
	chunks sync.Pool // *[]byte of largestChunk, for all bodies
}

func (b *budget) take(n int64) bool { return b.taken.Add(n) <= b.size }
func (b *budget) give(n int64)      { b.taken.Add(-n) }

var errNoBudget = fault.Errorf(fault.Unavailable, "The service is reading too many large requests; send this one again in a few seconds.")

// metered reads a body on the budget of all.
type metered struct {
	io.Reader
	limits *limits
}

func (m metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.limits.held += int64(n)
	if !m.limits.budget.take(int64(n)) {
		return n, errNoBudget
	}
	return n, err
}

// readBody gives the whole JSON text of the body, nothing where there is none.
func readBody(c *gin.Context) ([]byte, error) {
	r := c.Request
	if r.ContentLength == 0 {
		return nil, nil
	}
	l := c.MustGet(limitsKey).(*limits)
	switch {
	case r.ContentLength > 0 && !isJSON(r):
		return nil, notJSON()
	case r.ContentLength > l.max:
		return nil, tooLarge(l.max)
	}
	data, err := readAll(c, l)
	if err != nil {
		return nil, err
	}
	if len(data) > 0 && !isJSON(r) {
		return nil, notJSON()
	}
	return data, nil
}

func readAll(c *gin.Context, l *limits) ([]byte, error) {
	w := below(c)
	from := metered{http.MaxBytesReader(w, c.Request.Body, l.max), l}
	read := pile{pool: &l.budget.chunks}
	defer read.free()
	if err := read.from(from); err != nil {
		return nil, unread(err)
	}
	// The deadline has done its work; left standing, it would end the
	// request's context while the answer is made.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return read.joined(), nil
}

// below gives the server's own writer, which MaxBytesReader tells to close
// the connection. gin's writer hides that ability.
func below(c *gin.Context) http.ResponseWriter {
	if w, ok := c.Writer.(interface{ Unwrap() http.ResponseWriter }); ok {
		return w.Unwrap()
	}
	return c.Writer
}

// unread says why a body could not be read to its end.
func unread(err error) error {
	var large *http.MaxBytesError
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return bodyFault("incomplete", "the body did not arrive in time; send the request again")
	}
	return bodyFault("incomplete", "the body ended early; send the request again")
}

func bodyFault(kind, msg string) error {
	return fault.List(fault.Field{Loc: []any{"body"}, Msg: msg, Type: kind})
}

func tooLarge(limit int64) error {
	return fault.Errorf(fault.BodyTooLarge, "Send at most %d bytes of JSON; files go to an uploadUrl, many jobs into several batches.", limit)
}

func notJSON() error {
	return fault.Errorf(fault.UnsupportedMediaType, "Send the body as JSON in UTF-8, with the header Content-Type: application/json and no Content-Encoding.")
}

// isJSON reports whether the body is declared as plain JSON.
func isJSON(r *http.Request) bool {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return false
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	return err == nil && kind == jsonType && (charset == "" || strings.EqualFold(charset, "utf-8"))
}
