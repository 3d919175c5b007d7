package web

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/web/decode"
	"molrun/web/respond"
)

// algorithms shows what can be run.
type algorithms struct{ svc *app.Algorithms }

// list handles GET /algorithms.
func (h algorithms) list(c *gin.Context, by app.Caller) error {
	if err := decode.Empty(c); err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, map[string]any{"algorithms": h.svc.List(by)})
}

type algorithmRequest struct{ typ, version string }

// get handles GET /algorithms/{type}.
func (h algorithms) get(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) algorithmRequest {
		return algorithmRequest{r.Path("type"), r.Text("version")}
	})
	if err != nil {
		return err
	}
	view, err := h.svc.Get(by, req.typ, req.version)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, view)
}
