package web

import (
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/output"
	"molrun/app/unit"
	"molrun/web/decode"
	"molrun/web/respond"
)

// Sender answers a GET or HEAD with an open file. If it returns an error, it has
// written nothing.
type Sender interface {
	Send(w http.ResponseWriter, r *http.Request, f app.Download) error
}

// results gives what jobs produced and printed.
type results struct {
	svc        *app.Jobs
	outputs    *output.Outputs
	sender     Sender
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
	SHA256 string `json:"sha256,omitempty"`
}

type resultFilesView struct {
	Files      []resultFileView `json:"files"`
	Incomplete bool             `json:"incomplete,omitempty"`
	Truncated  bool             `json:"truncated,omitempty"`
}

// files handles GET /jobs/{jobName}/files.
func (h results) files(c *gin.Context, by app.Caller) error {
	name, err := decode.Request(c, func(r *decode.Reader) string { return r.Path("jobName") })
	if err != nil {
		return err
	}
	listing, err := h.outputs.Files(c.Request.Context(), by, name)
	if err != nil {
		return err
	}
	view := resultFilesView{make([]resultFileView, len(listing.Files)), listing.Incomplete, listing.Truncated}
	for i, f := range listing.Files {
		view.Files[i] = resultFileView(f)
	}
	return respond.JSON(c.Writer, http.StatusOK, view)
}

// file handles GET /jobs/{jobName}/files/{path}.
func (h results) file(c *gin.Context, by app.Caller) error {
	type request struct{ name, path string }
	req, err := decode.Request(c, func(r *decode.Reader) request {
		return request{r.Path("jobName"), strings.TrimPrefix(r.Path("path"), "/")}
	})
	if err != nil {
		return err
	}
	f, err := h.outputs.Open(c.Request.Context(), by, req.name, req.path)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	if f.Incomplete {
		c.Header("X-Incomplete", "1")
	}
	return h.sender.Send(c.Writer, c.Request, app.Download{Content: f.File, Filename: path.Base(f.Path), ETag: f.ETag, Holder: by.KeyID})
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
