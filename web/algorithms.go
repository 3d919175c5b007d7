package web

import "github.com/gin-gonic/gin"

// bareRequest is one without parameters and body.
type bareRequest struct{}

func (*bareRequest) read(*input) {}

// algorithms handles GET /algorithms.
func (a *API) algorithms(c *gin.Context) {
	if _, err := decode[bareRequest](c); err != nil {
		fail(c, err)
		return
	}
	reply(c, map[string]any{"algorithms": a.svc.Algorithms.List(caller(c))})
}

type algorithmRequest struct{ typ, version string }

func (r *algorithmRequest) read(in *input) {
	r.typ = in.path("type")
	r.version = in.text("version")
}

// algorithm handles GET /algorithms/{type}.
func (a *API) algorithm(c *gin.Context) {
	req, err := decode[algorithmRequest](c)
	if err != nil {
		fail(c, err)
		return
	}
	view, err := a.svc.Algorithms.Get(caller(c), req.typ, req.version)
	if err != nil {
		fail(c, err)
		return
	}
	reply(c, view)
}
