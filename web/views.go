package web

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/output"
	"molrun/web/decode"
	"molrun/web/respond"
)

// views shows what can be looked at of a job.
type views struct{ outputs *output.Outputs }

type viewFileView struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Topology string `json:"topology,omitempty"`
}

type viewView struct {
	Name      string            `json:"name"`
	Kind      string            `json:"kind"`
	Title     string            `json:"title"`
	X         string            `json:"x,omitempty"`
	Y         []string          `json:"y,omitempty"`
	Units     map[string]string `json:"units,omitempty"`
	Unit      string            `json:"unit,omitempty"`
	Files     []viewFileView    `json:"files"`
	Truncated bool              `json:"truncated,omitempty"`
}

type viewsView struct {
	Views      []viewView `json:"views"`
	Incomplete bool       `json:"incomplete,omitempty"`
}

// list handles GET /jobs/{jobName}/views.
func (h views) list(c *gin.Context, by app.Caller) error {
	name, err := decode.Request(c, func(r *decode.Reader) string { return r.Path("jobName") })
	if err != nil {
		return err
	}
	all, err := h.outputs.Views(c.Request.Context(), by, name)
	if err != nil {
		return err
	}
	answer := viewsView{make([]viewView, len(all.Views)), all.Incomplete}
	for i, v := range all.Views {
		answer.Views[i] = viewView{v.Name, v.Kind, v.Title, v.X, v.Y, v.Units, v.Unit, make([]viewFileView, len(v.Files)), v.Truncated}
		for k, f := range v.Files {
			answer.Views[i].Files[k] = viewFileView(f)
		}
	}
	return respond.JSON(c.Writer, http.StatusOK, answer)
}
