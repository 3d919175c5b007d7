package decode

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

// Limits bound what is read of a request.
type Limits struct {
	URL    int           // bytes of path and query
	Body   int64         // bytes of the body
	Arrive time.Duration // time for the body to arrive
	JSON   strictjson.Limits
	Budget *Budget
}

// Budget bounds the memory of all bodies together: it counts the bytes of
// requests that are being handled.
type Budget struct {
	size   int64
	taken  atomic.Int64
	chunks sync.Pool // *[]byte of largestChunk, reused by all bodies
}

// NewBudget returns a budget of size bytes.
func NewBudget(size int64) *Budget { return &Budget{size: size} }

// bounded is a request's use of its limits.
type bounded struct {
	*Limits
	taken int64 // from the budget
}

const limitsKey = "limits" // of gin's context

func (r *Reader) limits() *bounded { return r.c.MustGet(limitsKey).(*bounded) }

// Apply sets the limits of a request before anything of its body is read. The
// caller calls release when the request has been handled.
func (l *Limits) Apply(c *gin.Context) (release func()) {
	if c.Request.ContentLength != 0 {
		// The deadline stands only until the body is read: one that passes
		// later would cancel the request's context.
		setReadDeadline(c.Writer, time.Now().Add(l.Arrive))
	}
	b := &bounded{Limits: l}
	c.Set(limitsKey, b)
	return func() { l.Budget.taken.Add(-b.taken) }
}

// setReadDeadline ignores writers without deadlines, which only tests have.
func setReadDeadline(w http.ResponseWriter, at time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(at)
}

// readBody returns the JSON text of the body, nothing if there is none.
func (r *Reader) readBody() ([]byte, error) {
	length, limits := r.Request.ContentLength, r.limits()
	switch {
	case length == 0:
		return nil, nil
	case length > 0 && !isJSON(r.Request):
		return nil, notJSON()
	case length > limits.Body:
		return nil, tooLarge(limits.Body)
	}
	w := serverWriter(r.c)
	body := spool{pool: &limits.Budget.chunks}
	defer body.release()
	if err := body.readFrom(metered{http.MaxBytesReader(w, r.Request.Body, limits.Body), limits}); err != nil {
		return nil, incomplete(err)
	}
	setReadDeadline(w, time.Time{})
	if body.size > 0 && !isJSON(r.Request) {
		return nil, notJSON()
	}
	return body.bytes(), nil
}

// serverWriter returns the server's own writer. MaxBytesReader makes it close
// the connection, which it cannot do through gin's.
func serverWriter(c *gin.Context) http.ResponseWriter {
	if w, ok := c.Writer.(interface{ Unwrap() http.ResponseWriter }); ok {
		return w.Unwrap()
	}
	return c.Writer
}

// metered is a body that takes what it reads from the budget.
type metered struct {
	io.Reader
	limits *bounded
}

func (m metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.limits.taken += int64(n)
	if budget := m.limits.Budget; budget.taken.Add(int64(n)) > budget.size {
		return n, errNoBudget
	}
	return n, err
}

var errNoBudget = fault.Errorf(fault.Unavailable, "The service is reading too many large requests; send this one again in a few seconds.")

// The first chunks of a body are small: most bodies are, and many clients may
// send very little at the same time.
const (
	smallestChunk = 4 << 10
	largestChunk  = 256 << 10
)

// spool collects a body in chunks and reuses the large ones for later bodies.
// A buffer that doubles would leave as much garbage as the body is long, even
// for bodies that turn out to be too long.
type spool struct {
	pool   *sync.Pool
	chunks [][]byte // filled to their length
	size   int
}

// readFrom reads r to its end.
func (s *spool) readFrom(r io.Reader) error {
	for {
		n, err := io.ReadFull(r, s.next())
		last := &s.chunks[len(s.chunks)-1]
		*last = (*last)[:n]
		s.size += n
		if err == io.EOF || err == io.ErrUnexpectedEOF { // the end; a body cut short does not parse
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// next adds a chunk.
func (s *spool) next() []byte {
	chunk := s.chunk(len(s.chunks))
	s.chunks = append(s.chunks, chunk)
	return chunk
}

// chunk returns space for the i-th part of a body.
func (s *spool) chunk(i int) []byte {
	if length := smallestChunk << (2 * min(i, 8)); length < largestChunk {
		return make([]byte, length)
	}
	if pooled, ok := s.pool.Get().(*[]byte); ok {
		return *pooled
	}
	return make([]byte, largestChunk)
}

// bytes returns the body in one piece.
func (s *spool) bytes() []byte {
	body := make([]byte, 0, s.size)
	for _, chunk := range s.chunks {
		body = append(body, chunk...)
	}
	return body
}

// release hands the large chunks on to other bodies.
func (s *spool) release() {
	for _, chunk := range s.chunks {
		if cap(chunk) == largestChunk {
			chunk = chunk[:largestChunk]
			s.pool.Put(&chunk)
		}
	}
	s.chunks = nil
}

// incomplete says why a body could not be read to its end.
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
	return err == nil && kind == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
}
