package decode

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
)

// Limits are the limits on reading requests.
type Limits struct {
	URL    int           // maximum bytes of path and query
	Body   int64         // maximum bytes of the body
	Arrive time.Duration // time limit for receiving the body
	JSON   strictjson.Limits
	Tables bool // accept CSV and TSV too
	Budget *Budget
}

// bounded tracks a request's use of its limits.
type bounded struct {
	*Limits
	holder string // charged for the bytes in taken
	taken  int64  // bytes taken from the budget

	received bool // body and err are set
	body     []byte
	err      error
}

const limitsKey = "limits" // key in gin's context

func limitsOf(c *gin.Context) *bounded { return c.MustGet(limitsKey).(*bounded) }

func (r *Reader) limits() *bounded { return limitsOf(r.c) }

// Apply sets the limits of a request before any of its body is read. The caller must
// defer release, which checks the request's final error.
func (l *Limits) Apply(c *gin.Context) (release func(*error)) {
	if c.Request.ContentLength != 0 {
		// The deadline applies only until the body is read, because it would cancel the
		// request's context if it expired later.
		setReadDeadline(c.Writer, time.Now().Add(l.Arrive))
	}
	b := &bounded{Limits: l}
	c.Set(limitsKey, b)
	return func(err *error) {
		l.Budget.Give(b.holder, b.taken)
		if whole := b.received && b.err == nil; *err != nil && !whole && c.Request.ContentLength != 0 {
			setReadDeadline(c.Writer, time.Now().Add(drainTime))
		}
	}
}

// drainTime is how long to wait for the rest of the body of a request that is known
// to fail. net/http reads the rest before it sends the response, and the client may wait
// for the response.
const drainTime = 2 * time.Second

// Receive reads the body of a request, charged to the budget of holder, so that the rest
// of the handling does not wait for the client. Request and Lenient report errors in the
// body. Without Receive, they read the body themselves.
func Receive(c *gin.Context, holder string) {
	b := limitsOf(c)
	b.holder, b.received = holder, true
	b.body, b.err = b.receive(c)
}

// setReadDeadline ignores errors, because only the writers in tests lack deadlines.
func setReadDeadline(w http.ResponseWriter, at time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(at)
}

// ReceiveStart waits for the first bytes of a body, for a handler that reads only these.
// It reads nothing if the declared length is greater.
func ReceiveStart(c *gin.Context, bytesOfStart int64) {
	body := c.Request.Body
	if c.Request.ContentLength > bytesOfStart {
		return
	}
	var start bytes.Buffer
	_, err := io.CopyN(&start, body, bytesOfStart)
	rest := io.Reader(body)
	if err != nil {
		rest = failed{err}
	}
	c.Request.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&start, rest), body}
}

// failed is a reader that always returns an error.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// readBody returns the JSON text of the body, or nothing if there is none.
func (r *Reader) readBody() ([]byte, error) {
	b := r.limits()
	if !b.received {
		Receive(r.c, b.holder)
	}
	return b.body, b.err
}

func (b *bounded) receive(c *gin.Context) ([]byte, error) {
	switch length := c.Request.ContentLength; {
	case length == 0:
		return nil, nil
	case length > 0 && !b.takes(c.Request):
		return nil, b.refusedType()
	case length > b.Body:
		return nil, tooLarge(b.Body)
	}
	w := serverWriter(c)
	body := spool{pool: &b.Budget.chunks, length: c.Request.ContentLength}
	defer body.release()
	if err := body.readFrom(metered{http.MaxBytesReader(w, c.Request.Body, b.Body), b}); err != nil {
		return nil, incomplete(err)
	}
	setReadDeadline(w, time.Time{})
	if body.size > 0 && !b.takes(c.Request) {
		return nil, b.refusedType()
	}
	return body.bytes(), nil
}

// serverWriter returns the server's own writer, because MaxBytesReader can't close the
// connection through gin's.
func serverWriter(c *gin.Context) http.ResponseWriter {
	if w, ok := c.Writer.(interface{ Unwrap() http.ResponseWriter }); ok {
		return w.Unwrap()
	}
	return c.Writer
}

// metered is a body that charges what it reads to the budget.
type metered struct {
	io.Reader
	limits *bounded
}

func (m metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if spent := m.limits.Budget.Take(m.limits.holder, int64(n)); spent != nil {
		return n, spent
	}
	m.limits.taken += int64(n)
	return n, err
}

// incomplete returns the error for a body that could not be read completely.
func incomplete(err error) error {
	var large *http.MaxBytesError
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &large):
		return tooLarge(large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault.List(fault.Field{Loc: []any{"body"}, Type: "incomplete", Msg: "the body did not arrive in time; send the request again"})
	}
	return fault.List(fault.Field{Loc: []any{"body"}, Type: "incomplete", Msg: "the body ended early; send the request again"})
}

func tooLarge(limit int64) error {
	return fault.Errorf(fault.BodyTooLarge, "Send at most %d bytes of JSON; upload files to an uploadUrl, and split large batches.", limit)
}

// takes reports whether the declared type of the body is accepted.
func (b *bounded) takes(r *http.Request) bool {
	kind := mediaType(r)
	return kind == jsonType || b.Tables && slices.Contains(tableTypes, kind)
}

func (b *bounded) refusedType() error {
	also := ""
	if b.Tables {
		also = ", text/csv or text/tab-separated-values"
	}
	return fault.Errorf(fault.UnsupportedMediaType, "Send the body as JSON in UTF-8, with the header Content-Type: application/json%s and no Content-Encoding.", also)
}

const jsonType = "application/json"

var tableTypes = []string{"text/csv", "text/tab-separated-values"}

// charsets lists the encodings that a table can declare. The actual encoding is detected.
var charsets = []string{"us-ascii", "utf-16", "utf-16le", "utf-16be", "windows-1252", "cp1252", "iso-8859-1", "latin1"}

// mediaType returns the declared type of a body, or "" if its encoding is not supported.
func mediaType(r *http.Request) string {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return ""
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	isUTF8 := charset == "" || charset == "utf-8" || charset == "utf8"
	if err != nil || !isUTF8 && !(slices.Contains(tableTypes, kind) && slices.Contains(charsets, charset)) {
		return ""
	}
	if kind == "text/json" {
		return jsonType
	}
	return kind
}
