package web

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/web/decode"
	"molrun/web/respond"
)

// drain stops and resumes the start of jobs.
type drain struct {
	svc *app.Runs
	as  func(app.Caller) app.Caller // who asks: the caller, or always the operator
}

type drainView struct {
	Drained    bool `json:"drained"`
	*app.Drain      // nil: jobs start
}

// show handles GET /admin/drain.
func (h drain) show(c *gin.Context, _ app.Caller) error {
	if err := decode.Empty(c); err != nil {
		return err
	}
	d := h.svc.Drained()
	return respond.JSON(c.Writer, http.StatusOK, drainView{d != nil, d})
}

// begin handles POST /admin/drain.
func (h drain) begin(c *gin.Context, by app.Caller) error {
	reason, err := decode.Request(c, func(r *decode.Reader) string {
		return r.Object(decode.Optional).Text("reason", decode.Optional)
	})
	if err != nil {
		return err
	}
	d, err := h.svc.Drain(c.Request.Context(), h.as(by), reason)
	if err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, drainView{true, d})
}

// end handles DELETE /admin/drain.
func (h drain) end(c *gin.Context, by app.Caller) error {
	if err := decode.NoBody(c); err != nil {
		return err
	}
	if err := h.svc.Resume(c.Request.Context(), h.as(by)); err != nil {
		return err
	}
	return respond.JSON(c.Writer, http.StatusOK, drainView{})
}
