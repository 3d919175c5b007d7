package web

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/unit"
	"molrun/web/decode"
	"molrun/web/respond"
)

// results gives what jobs produced and printed.
type results struct {
	svc        *app.Jobs
	base       publicURL
	answerTime time.Duration
}

type resultView struct {
	DownloadURL string    `json:"downloadUrl"`
	FileName    string    `json:"fileName"`
	Size        int64     `json:"size"`
	ExpiresAt   unit.Time `json:"expiresAt"`
}

// link handles POST /result.
func (h results) link(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) app.ResultRequest {
		b := r.Object(decode.Required)
		return app.ResultRequest{
			Name:    b.Text("jobName", decode.Required),
			File:    b.Text("fileName", decode.Optional),
			Partial: b.Flag("partial"),
		}
	})
	if err != nil {
		return err
	}
	if req.Base, err = h.base.of(c.Request); err != nil {
		return err
	}
	auditObject(c, req.Name)
	link, err := h.svc.Result(c.Request.Context(), by, req)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, resultView{link.URL, link.FileName, link.Size, link.ExpiresAt})
}

type resultFileView struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// files handles GET /jobs/{jobName}/files.
func (h results) files(c *gin.Context, by app.Caller) error {
	name, err := decode.Request(c, func(r *decode.Reader) string { return r.Path("jobName") })
	if err != nil {
		return err
	}
	files, err := h.svc.ResultFiles(c.Request.Context(), by, name)
	if err != nil {
		return err
	}
	views := make([]resultFileView, len(files))
	for i, f := range files {
		views[i] = resultFileView{f.Name, f.Size, f.SHA256}
	}
	return respond.JSON(c.Writer, http.StatusOK, map[string]any{"files": views})
}

// log handles GET /jobs/{jobName}/logs.
func (h results) log(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) app.LogRequest {
		return app.LogRequest{
			Name:    r.Path("jobName"),
			Attempt: int(r.Integer("attempt", 1, 1<<31-1, 0)),
			Offset:  r.Integer("offset", 0, decode.MaxExact, 0),
			Limit:   r.Integer("limit", 0, decode.MaxExact, -1),
		}
	})
	if err != nil {
		return err
	}
	part, err := h.svc.Log(c.Request.Context(), by, req)
	if err != nil {
		return err
	}
	defer part.Close() // only read from
	header := c.Writer.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Content-Length", strconv.FormatInt(part.Length, 10))
	header.Set("X-Log-Size", strconv.FormatInt(part.Size, 10))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	c.Status(http.StatusOK)
	c.Writer.WriteHeaderNow()
	if c.Request.Method == http.MethodHead {
		return nil
	}
	if err := copyPaced(c.Writer, part, part.Length, h.answerTime); err != nil {
		zerolog.Ctx(c.Request.Context()).Info().Err(err).Msg("log not sent completely")
		panic(http.ErrAbortHandler) // cut the connection: the client must not take a part for the whole
	}
	return nil
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
