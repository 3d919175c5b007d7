package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	figures "molrun/app/algorithm/results"
	"molrun/app/base/unit"
	"molrun/app/job/output"
	"molrun/web/decode"
	"molrun/web/respond"
)

// Linked responds to a GET or HEAD with the target of a link. If it returns an error, it
// has written nothing.
type Linked interface {
	Serve(w http.ResponseWriter, r *http.Request, l app.Link) error
}

// shares creates links for people without an API key, and serves their targets.
type shares struct {
	svc        *output.Shares
	algorithms *app.Algorithms
	linked     Linked
	base       publicURL
}

type shareView struct {
	ID         app.ShareID   `json:"id"`
	URL        string        `json:"url,omitempty"` // shown once
	JobName    string        `json:"jobName"`
	Files      app.Selection `json:"files,omitempty"`
	Email      string        `json:"email"`
	CreatedAt  unit.Time     `json:"createdAt"`
	ExpiresAt  unit.Time     `json:"expiresAt"`
	LastUsedAt unit.Time     `json:"lastUsedAt,omitzero"`
}

func viewShare(s *app.Share, url string) shareView {
	return shareView{s.ID, url, s.JobName, s.Files, s.Email, s.CreatedAt, s.ExpiresAt, s.LastUsedAt}
}

// maxShared is the maximum length in bytes of a path in a share.
const maxShared = 1000

// create handles POST /jobs/{jobName}/share.
func (h shares) create(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) output.ShareRequest {
		b := r.Object(decode.Optional)
		req := output.ShareRequest{
			Name:  r.Path("jobName"),
			TTL:   time.Duration(decode.OrZero(b.Integer("ttlSeconds", 1, int64(output.MaxShareTTL/time.Second)))) * time.Second,
			Files: b.Texts("files"),
		}
		if b.Has("files") && len(req.Files) == 0 {
			b.Fault("value", "files", "list at least one file, or omit this to share all files")
		}
		if len(req.Files) > output.MaxSharedFiles {
			b.Fault("value", "files", "list at most %d files or folders", output.MaxSharedFiles)
		}
		for _, f := range req.Files {
			if len(f) > maxShared {
				b.Fault("value", "files", "use paths of at most %d bytes", maxShared)
				break
			}
		}
		return req
	})
	if err != nil {
		return err
	}
	if req.Base, err = h.base.of(c.Request); err != nil {
		return err
	}
	made, url, err := h.svc.Create(c.Request.Context(), by, req)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, viewShare(made, url))
}

// list handles GET /shares.
func (h shares) list(c *gin.Context, by app.Caller) error {
	all, err := decode.Request(c, func(r *decode.Reader) bool { return r.Flag("organization") })
	if err != nil {
		return err
	}
	found, err := h.svc.ListShares(c.Request.Context(), by, all)
	if err != nil {
		return err
	}
	views := make([]shareView, len(found))
	for i, s := range found {
		views[i] = viewShare(s, "")
	}
	return respond.JSON(c.Writer, http.StatusOK, map[string]any{"shares": views})
}

// revoke handles DELETE /shares/{id}.
func (h shares) revoke(c *gin.Context, by app.Caller) error {
	id, err := decode.Request(c, func(r *decode.Reader) string {
		r.NoBody()
		return r.Path("id")
	})
	if err != nil {
		return err
	}
	if err := h.svc.Revoke(c.Request.Context(), by, id); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// sharedView is the part of a job that a share shows. A share of selected files shows
// only that there is a job: settings and metrics depend on all files.
type sharedView struct {
	JobName     string          `json:"jobName"`
	Type        string          `json:"type"`
	Version     string          `json:"version"`
	Status      app.Status      `json:"status"`
	Settings    json.RawMessage `json:"settings,omitempty"`
	Inputs      []sharedInput   `json:"inputs,omitempty"`
	CreatedAt   unit.Time       `json:"createdAt"`
	StartedAt   unit.Time       `json:"startedAt,omitzero"`
	CompletedAt unit.Time       `json:"completedAt"`
	Metrics     *app.Metrics    `json:"metrics,omitempty"`
	Algorithm   *sharedTool     `json:"algorithm,omitempty"`
	Warnings    []string        `json:"warnings,omitempty"`
	Counts      *app.Counts     `json:"subjobCounts,omitempty"`
	Partial     bool            `json:"partial"`
	ExpiresAt   unit.Time       `json:"expiresAt"`
}

// sharedTool is the algorithm that ran, and how its metrics are shown.
type sharedTool struct {
	Title   string          `json:"title"`
	Cite    []string        `json:"cite"`
	Metrics figures.Metrics `json:"metrics"`
}

type sharedInput struct {
	Setting  string `json:"setting"`
	Filename string `json:"filename"`
	SHA256   string `json:"sha256"`
}

// get handles GET /shared/{token}.
func (h shares) get(c *gin.Context, _ app.Caller) error {
	token, err := decode.Request(c, tokenOf)
	if err != nil {
		return err
	}
	shown, err := h.svc.OpenShare(c.Request.Context(), token)
	if err != nil {
		return err
	}
	j := shown.Result
	view := sharedView{
		JobName: j.Name, Type: j.Type, Version: j.Version, Status: j.Status,
		CreatedAt: j.CreatedAt, StartedAt: j.StartedAt, CompletedAt: j.CompletedAt,
		Partial: len(shown.Files) > 0, ExpiresAt: shown.ExpiresAt,
	}
	if !view.Partial {
		view.Settings, view.Metrics, view.Warnings, view.Counts = j.Settings, j.Metrics, j.Warnings, j.Counts
		for _, in := range j.Inputs {
			view.Inputs = append(view.Inputs, sharedInput{in.Setting, in.Filename, in.SHA256})
		}
	}
	if !view.Partial && j.Type != "" {
		a, err := h.algorithms.Current(c.Request.Context(), j)
		if err != nil {
			return err
		}
		view.Algorithm = &sharedTool{a.Title, a.Cite, a.Metrics}
	}
	return respond.JSON(c.Writer, http.StatusOK, view)
}

// files handles GET /shared/{token}/files.
func (h shares) files(c *gin.Context, _ app.Caller) error {
	token, err := decode.Request(c, tokenOf)
	if err != nil {
		return err
	}
	files, err := h.svc.Files(c.Request.Context(), token)
	if err != nil {
		return err
	}
	view := resultFilesView{Files: make([]resultFileView, len(files))}
	for i, f := range files {
		view.Files[i] = resultFileView{f.Name, f.Size, f.SHA256}
	}
	return respond.JSON(c.Writer, http.StatusOK, view)
}

// file handles GET /shared/{token}/files/{path}.
func (h shares) file(c *gin.Context, _ app.Caller) error {
	type request struct{ token, path string }
	req, err := decode.Request(c, func(r *decode.Reader) request {
		req := request{tokenOf(r), strings.TrimPrefix(r.Path("path"), "/")}
		if req.path == "" {
			r.Fault("missing", []any{"path", "path"}, "name a file; GET /shared/{token}/files lists them")
		}
		return req
	})
	if err != nil {
		return err
	}
	return h.serve(c, req.token, req.path)
}

// archive handles GET /shared/{token}/archive.
func (h shares) archive(c *gin.Context, _ app.Caller) error {
	token, err := decode.Request(c, tokenOf)
	if err != nil {
		return err
	}
	return h.serve(c, token, "")
}

func (h shares) serve(c *gin.Context, token, path string) error {
	link, err := h.svc.Link(c.Request.Context(), token, path)
	if err != nil {
		return err
	}
	return h.linked.Serve(c.Writer, c.Request, link)
}

func tokenOf(r *decode.Reader) string { return r.UncheckedPath("token") }
