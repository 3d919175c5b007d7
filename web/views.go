package web

import (
	"math"
	"net/http"
	"strconv"

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

const (
	maxPoints = 10_000 // of a series
	maxRows   = 1000   // of a page of a table
)

type columnView struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
	Unit string `json:"unit,omitempty"`
}

// numbers are a column of a series in JSON, null where there is none.
type numbers []float64

// MarshalJSON implements json.Marshaler.
func (n numbers) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 2+12*len(n)), '[')
	for i, v := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(v) {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendFloat(b, v, 'g', -1, 64)
		}
	}
	return append(b, ']'), nil
}

type seriesView struct {
	Name       string       `json:"name"`
	File       string       `json:"file"`
	Rows       int64        `json:"rows"`
	Columns    []columnView `json:"columns"`
	Values     []numbers    `json:"values"`
	Incomplete bool         `json:"incomplete,omitempty"`
}

// series handles GET /jobs/{jobName}/series/{name}.
func (h views) series(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) output.SeriesRequest {
		return output.SeriesRequest{
			ViewRequest: viewRequest(r),
			Columns:     r.Texts("column"),
			Points:      int(r.Integer("points", 3, maxPoints, 2000)),
		}
	})
	if err != nil {
		return err
	}
	s, err := h.outputs.Series(c.Request.Context(), by, req)
	if err != nil {
		return err
	}
	answer := seriesView{req.View, s.File, s.Rows, make([]columnView, len(s.Columns)), make([]numbers, len(s.Values)), s.Incomplete}
	for i, column := range s.Columns {
		answer.Columns[i] = columnView{Name: column.Name, Unit: column.Unit}
		answer.Values[i] = s.Values[i]
	}
	return respond.JSON(c.Writer, http.StatusOK, answer)
}

func viewRequest(r *decode.Reader) output.ViewRequest {
	return output.ViewRequest{Job: r.Path("jobName"), View: r.Path("name"), File: r.Text("file")}
}

type rowsView struct {
	Name       string       `json:"name"`
	File       string       `json:"file"`
	Columns    []columnView `json:"columns"`
	Rows       [][]any      `json:"rows"`
	StartKey   string       `json:"startKey,omitempty"`
	Incomplete bool         `json:"incomplete,omitempty"`
}

// table handles GET /jobs/{jobName}/tables/{name}.
func (h views) table(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) output.TableRequest {
		return output.TableRequest{
			ViewRequest: viewRequest(r),
			Sort:        r.Text("sort"),
			Limit:       int(r.Integer("limit", 1, maxRows, 100)),
			StartKey:    r.StartKey(),
		}
	})
	if err != nil {
		return err
	}
	page, err := h.outputs.Table(c.Request.Context(), by, req)
	if err != nil {
		return err
	}
	answer := rowsView{req.View, page.File, make([]columnView, len(page.Columns)), page.Rows, page.StartKey, page.Incomplete}
	for i, column := range page.Columns {
		kind := "text"
		if column.Numeric {
			kind = "number"
		}
		answer.Columns[i] = columnView{column.Name, kind, column.Unit}
	}
	return respond.JSON(c.Writer, http.StatusOK, answer)
}
