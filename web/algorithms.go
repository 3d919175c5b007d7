package web

import (
	"mime"
	"net/http"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/web/decode"
	"molrun/web/respond"
)

// algorithms handles requests for the algorithms on offer.
type algorithms struct {
	svc *app.Algorithms
	// example returns a file of an algorithm's example.
	example func(typ, version, name string) ([]byte, error)
}

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

// exampleFile handles GET /algorithms/{type}/example/{filename}.
func (h algorithms) exampleFile(c *gin.Context, by app.Caller) error {
	name := ""
	req, err := decode.Request(c, func(r *decode.Reader) algorithmRequest {
		name = r.Path("filename")
		return algorithmRequest{r.Path("type"), r.Text("version")}
	})
	if err != nil {
		return err
	}
	if _, err := h.svc.Get(by, req.typ, req.version); err != nil {
		return err
	}
	text, err := h.example(req.typ, req.version, name)
	if err != nil {
		return err
	}
	c.Header("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	respond.Body(c.Writer, http.StatusOK, "application/octet-stream", text)
	return nil
}
