package web

import (
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/unit"
	"molrun/app/job/output"
	"molrun/web/decode"
	"molrun/web/respond"
)

// Sender responds to a GET or HEAD with an open file. If it returns an error, it has
// written nothing.
type Sender interface {
	SendDownload(w http.ResponseWriter, r *http.Request, f app.Download) error
}

// results serves the results and logs of jobs.
type results struct {
	svc        *app.Jobs
	links      *output.Results
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

	Missing *missingView `json:"missing,omitempty"`
}

// missingView lists the jobs that are missing from the archive of a batch.
type missingView struct {
	Count   int      `json:"count"`
	Rows    []string `json:"rows"` // only the first few
	Message string   `json:"message"`
}

// link handles POST /result.
func (h results) link(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) output.LinkRequest {
		b := r.Object(decode.Required)
		return output.LinkRequest{
			Name: b.Text("jobName", decode.Required),
			File: b.Text("fileName", decode.Optional),
			Form: app.ArchiveForm{Partial: b.Flag("partial"), Inputs: b.Flag("inputs")},
		}
	})
	if err != nil {
		return err
	}
	if req.Base, err = h.base.of(c.Request); err != nil {
		return err
	}
	auditObject(c, req.Name)
	link, err := h.links.Link(c.Request.Context(), by, req)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, resultView{link.URL, link.FileName, link.Size, link.ExpiresAt, (*missingView)(link.Missing)})
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
	f, err := h.outputs.OpenFile(c.Request.Context(), by, req.name, req.path)
	if err != nil {
		return err
	}
	defer f.Close() // read-only
	if f.Incomplete {
		c.Header("X-Incomplete", "1")
	}
	return h.sender.SendDownload(c.Writer, c.Request, app.Download{Content: f.File, Filename: path.Base(f.Path), ETag: f.ETag, Holder: by.KeyID})
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
	defer part.Close() // read-only
	header := c.Writer.Header()
	header.Set("Content-Length", strconv.FormatInt(part.Length, 10))
	header.Set("X-Log-Size", strconv.FormatInt(part.Size, 10))
	return stream(c, "text/plain; charset=utf-8", func(w http.ResponseWriter) error {
		return copyPaced(w, part, part.Length, h.answerTime)
	})
}
