package web

import (
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"
)

// stream answers 200 with a body that is sent in parts. If it can't be sent to its
// end, the connection is cut: the client must not take a part for the whole.
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

// beginBody sends the head of a body that is sent in parts.
func beginBody(c *gin.Context, contentType string) {
	header := c.Writer.Header()
	header.Set("Content-Type", contentType)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	c.Status(http.StatusOK)
	c.Writer.WriteHeaderNow()
}

// pace is how many bytes have to leave within the time of an answer.
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
