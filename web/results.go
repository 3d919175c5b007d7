package web

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/unit"
)

type resultRequest struct{ app.ResultRequest }

func (r *resultRequest) read(in *input) {
	b := in.object(required)
	r.Name = b.text("jobName", required)
	r.File = b.text("fileName", optional)
	r.Partial = b.flag("partial")
}

type resultView struct {
	DownloadURL string    `json:"downloadUrl"`
	FileName    string    `json:"fileName"`
	Size        int64     `json:"size"`
	ExpiresAt   unit.Time `json:"expiresAt"`
}

// result handles POST /result.
func (a *API) result(c *gin.Context) {
	req, err := decode[resultRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	if req.Base, err = a.base(c.Request); err != nil {
		fail(c, err)
		return
	}
	about(c, req.Name)
	link, err := a.svc.Jobs.Result(ctx(c), caller(c), req.ResultRequest)
	if err != nil {
		fail(c, err)
		return
	}
	reply(c, resultView{link.URL, link.FileName, link.Size, link.ExpiresAt})
}

type resultFileView struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// resultFiles handles GET /jobs/{jobName}/files.
func (a *API) resultFiles(c *gin.Context) {
	req, err := decode[namedRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	files, err := a.svc.Jobs.ResultFiles(ctx(c), caller(c), req.name)
	if err != nil {
		fail(c, err)
		return
	}
	views := make([]resultFileView, len(files))
	for i, f := range files {
		views[i] = resultFileView{f.Name, f.Size, f.SHA256}
	}
	reply(c, map[string]any{"files": views})
}

type logRequest struct{ app.LogRequest }

func (r *logRequest) read(in *input) {
	r.Name = in.path("jobName")
	r.Attempt = int(in.integer("attempt", 1, 1<<31-1, 0))
	r.Offset = in.integer("offset", 0, maxExact, 0)
	r.Limit = in.integer("limit", 0, maxExact, -1)
}

// log handles GET /jobs/{jobName}/logs.
func (a *API) log(c *gin.Context) {
	req, err := decode[logRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	part, err := a.svc.Jobs.Log(ctx(c), caller(c), req.LogRequest)
	if err != nil {
		fail(c, err)
		return
	}
	defer part.Close() // only read from
	h := c.Writer.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.FormatInt(part.Length, 10))
	h.Set("X-Log-Size", strconv.FormatInt(part.Size, 10))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	c.Status(http.StatusOK)
	c.Writer.WriteHeaderNow()
	if c.Request.Method == http.MethodHead {
		return
	}
	if err := copyPaced(c.Writer, part, part.Length, a.options.AnswerTime); err != nil {
		logger(c).Info().Err(err).Msg("log not sent to its end")
		panic(http.ErrAbortHandler) // so that a part is not taken for the whole
	}
}

// pace is how much has to leave within the time of an answer.
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
