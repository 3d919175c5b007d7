package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/limit"
	"molrun/app/job/follow"
	"molrun/web/decode"
	"molrun/web/edge"
)

// streams sends events to clients as Server-Sent Events.
type streams struct {
	follower   *follow.Follower
	listeners  *limit.Budget
	answerTime time.Duration
	stopping   context.Context // canceled to end all streams
}

// all handles GET /events.
func (h streams) all(c *gin.Context, by app.Caller) error { return h.serve(c, by, h.openAll) }

func (h streams) openAll(c *gin.Context, by app.Caller) (*follow.Stream, error) {
	query, faults := decode.Query(c, func(r *decode.Reader) follow.Query {
		return follow.Query{Selection: readFilters(r), After: readPosition(r)}
	})
	query.Faults = faults
	return h.follower.Jobs(c.Request.Context(), by, query)
}

// one handles GET /jobs/{jobName}/events.
func (h streams) one(c *gin.Context, by app.Caller) error { return h.serve(c, by, h.openOne) }

func (h streams) openOne(c *gin.Context, by app.Caller) (*follow.Stream, error) {
	query, err := decode.Request(c, func(r *decode.Reader) follow.JobQuery {
		return follow.JobQuery{Name: r.Path("jobName"), Logs: r.Flag("logs"), After: readPosition(r)}
	})
	if err != nil {
		return nil, err
	}
	return h.follower.Job(c.Request.Context(), by, query)
}

// readPosition returns the position after which to resume a stream, or nil for a new
// client. A browser that reconnects sends the original URL and, in the header, the newer
// position.
func readPosition(r *decode.Reader) *follow.Position {
	loc, text := []any{"query", "lastEventId"}, r.Text("lastEventId")
	if sent := r.Request.Header.Values("Last-Event-ID"); len(sent) > 0 && sent[0] != "" {
		loc, text = []any{"header", "Last-Event-ID"}, sent[0]
	}
	if text == "" {
		return nil
	}
	place, err := follow.ParsePlace(text)
	if err != nil {
		r.Fault("value", loc, "send the id of the last event unchanged, or the X-Event-ID of a listing; omit it to get new events only")
		return nil
	}
	return &place
}

// serve opens a stream and sends it until it ends, the client disconnects or the server
// stops.
func (h streams) serve(c *gin.Context, by app.Caller, open func(*gin.Context, app.Caller) (*follow.Stream, error)) error {
	leave, err := h.listeners.One(by.KeyID)
	if err != nil {
		return err
	}
	defer leave()
	var stream *follow.Stream
	onOtherStack(func() { stream, err = open(c, by) })
	if err != nil {
		return err
	}
	defer stream.Close()
	c.Header("X-Accel-Buffering", "no") // for nginx
	takeOver := edge.CanTakeOver(c.Request)
	if takeOver {
		c.Header("Connection", "close")
	}
	beginBody(c, "text/event-stream")
	if c.Request.Method == http.MethodHead {
		return nil
	}
	if takeOver {
		err = h.sendLine(c, stream)
	} else {
		err = h.serveStream(c.Request.Context(), responseLine{c.Writer, http.NewResponseController(c.Writer)}, stream)
	}
	if err != nil {
		zerolog.Ctx(c.Request.Context()).Info().Err(err).Msg("event stream interrupted")
		panic(http.ErrAbortHandler) // the client must not consider the stream complete
	}
	return nil
}

// sendLine sends a stream without the buffers of a response.
func (h streams) sendLine(c *gin.Context, stream *follow.Stream) error {
	var to *edge.Line
	var err error
	onOtherStack(func() { to, err = edge.TakeOver(h.stopping, c.Writer, c.Request) })
	if err != nil {
		return err
	}
	defer func() {
		_ = to.Close() // the client detects missing data itself
		countSent(c, to.Sent())
	}()
	if err := h.serveStream(to.Context(), to, stream); err != nil {
		return err
	}
	_ = to.End() // fails if the client has disconnected
	return nil
}

func (h streams) serveStream(ctx context.Context, to line, stream *follow.Stream) error {
	return sender{to, h.answerTime}.sendUntilEnd(ctx, h.stopping.Done(), stream)
}

// onOtherStack runs fn in another goroutine, on its own stack, and waits for it. A stream
// waits for hours deep in the call stack of the handlers, and a stack that has grown
// there stays large. Running stack-intensive work elsewhere saves 8 MiB per thousand idle
// streams.
func onOtherStack(fn func()) {
	var p any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { p = recover() }()
		fn()
	}()
	if <-done; p != nil {
		panic(p)
	}
}

// line is the output of a sender.
type line interface {
	io.Writer
	Flush() error
	SetWriteDeadline(time.Time) error
}

// responseLine writes to a net/http response.
type responseLine struct {
	io.Writer
	*http.ResponseController
}

// sender writes a stream. A client that does not keep up is disconnected. When it
// reconnects, it resumes at its last position or lists the jobs again.
type sender struct {
	to     line
	within time.Duration
}

// sendUntilEnd sends the stream until it ends, ctx does, or stop is closed.
func (s sender) sendUntilEnd(ctx context.Context, stop <-chan struct{}, stream *follow.Stream) error {
	// Random delays keep clients that were disconnected together from reconnecting
	// together.
	var err error
	onOtherStack(func() { err = s.sendText(fmt.Appendf(nil, "retry: %d\n\n", 1000+rand.IntN(3000))) })
	for err == nil && stream.Wait(ctx.Done(), stop) {
		onOtherStack(func() { err = s.sendNext(ctx, stream) })
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded): // this also cancels ctx
		return err
	case errors.Is(err, io.EOF), errors.Is(err, fault.Unauthorized), ctx.Err() != nil:
		return nil
	}
	return err
}

func (s sender) sendNext(ctx context.Context, stream *follow.Stream) error {
	messages, err := stream.Next(ctx)
	if err != nil || len(messages) == 0 {
		return err
	}
	return s.sendText(format(messages))
}

// format encodes messages as in the HTML standard: data is one line, and a keep-alive is
// a comment.
func format(messages []follow.Message) (text []byte) {
	for _, m := range messages {
		if m.ID != "" {
			text = fmt.Appendf(text, "id: %s\n", m.ID)
		}
		if m.Event != "" {
			text = fmt.Appendf(text, "event: %s\ndata: %s\n", m.Event, m.Data)
		}
		if m.Event == "" {
			text = append(text, ": listening\n"...)
		}
		text = append(text, '\n')
	}
	return text
}

func (s sender) sendText(text []byte) error {
	_ = s.to.SetWriteDeadline(time.Now().Add(s.within)) // only the writers in tests lack deadlines
	if _, err := s.to.Write(text); err != nil {
		return err
	}
	return s.to.Flush()
}

// newListeners limits the number of streams. Streams do not count as requests in flight,
// because they would use up that limit.
func newListeners(o Options) *limit.Budget {
	return &limit.Budget{
		All:        int64(o.MaxListeners),
		Share:      int64(o.MaxListenersPerKey),
		ShareSpent: fault.Errorf(fault.RateLimited, "This API key has too many event streams open; close some, or follow several jobs with one GET /events."),
		Spent:      fault.Errorf(fault.Unavailable, "Too many event streams are open; try again in a few seconds, or poll GET /jobs."),
	}
}
