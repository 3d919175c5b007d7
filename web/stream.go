package web

import (
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"
)

// stream responds with 200 and a body that is sent in parts. If sending fails, it closes
// the connection, so that the client can tell that the body is incomplete.
func stream(c *gin.Context, contentType string, send func(http.ResponseWriter) error) error {
	beginBody(c, contentType)
	if c.Request.Method == http.MethodHead {
		return nil
	}
	if err := send(c.Writer); err != nil {
		zerolog.Ctx(c.Request.Context()).Info().Err(err).Msg("response not sent completely")
		panic(http.ErrAbortHandler)
	}
	return nil
}

// beginBody sends the headers of a body that is sent in parts.
func beginBody(c *gin.Context, contentType string) {
	header := c.Writer.Header()
	header.Set("Content-Type", contentType)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	c.Status(http.StatusOK)
	c.Writer.WriteHeaderNow()
}

// pace is how many bytes must be sent within the response time.
const pace = 1 << 20

// copyPaced copies n bytes to a client that may be slow but must not stall.
func copyPaced(w http.ResponseWriter, from io.Reader, n int64, within time.Duration) error {
	conn := http.NewResponseController(w)
	for n > 0 {
		_ = conn.SetWriteDeadline(time.Now().Add(within))
		copied, err := io.CopyN(w, from, min(n, pace))
		if err != nil {
			return err
		}
		n -= copied
	}
	return nil
}
