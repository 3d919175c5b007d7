package web

import (
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/output"
	"molrun/web/decode"
	"molrun/web/respond"
)

// views shows the views of the jobs of the caller's organization or, if shared is set, of
// shared jobs.
type views struct {
	outputs *output.Outputs
	shared  *output.Shares
}

// subject is a job whose views are shown, with the files that can be shown.
type subject struct {
	by    app.Caller
	job   string
	shown app.Selection
}

// name reads the job's name, or the token of a share, from the path.
func (h views) name(r *decode.Reader) string {
	if h.shared != nil {
		return tokenOf(r)
	}
	return r.Path("jobName")
}

// withSubject calls show with the subject of a request.
func (h views) withSubject(c *gin.Context, by app.Caller, name string, show func(subject) error) error {
	if h.shared == nil {
		return show(subject{by: by, job: name})
	}
	ctx := c.Request.Context()
	s, err := h.shared.OpenShare(ctx, name)
	if err != nil {
		return err
	}
	reader := app.Caller{Organization: s.Organization, KeyID: "share " + string(s.ID)}
	if err := show(subject{reader, s.JobName, s.Files}); err != nil {
		return err
	}
	// If the share is still valid, its job has had this name throughout.
	_, err = h.shared.OpenShare(ctx, name)
	return err
}

// within resolves the job and the file of r and calls read with the caller to use.
func (h views) within(c *gin.Context, by app.Caller, r *output.ViewRequest, read func(app.Caller) error) error {
	return h.withSubject(c, by, r.Job, func(s subject) (err error) {
		r.Job = s.job
		if r.File, err = h.file(c, s, *r); err != nil {
			return err
		}
		return read(s.by)
	})
}

// file returns the file of a view to read: the requested one, or the first that can be
// shown.
func (h views) file(c *gin.Context, s subject, r output.ViewRequest) (string, error) {
	if len(s.shown) == 0 || s.shown.Has(r.File) {
		return r.File, nil
	}
	all, err := h.visible(c, s)
	if err != nil {
		return "", err
	}
	for _, v := range all.Views {
		if v.Name == r.View && r.File == "" && len(v.Files) > 0 {
			return v.Files[0].Path, nil
		}
	}
	return "", fault.Errorf(fault.NotFound, "The view %q of this link has no such file; GET /shared/{token}/views lists the files.", r.View)
}

// visible returns the views of a job with the files that can be shown. A share of
// selected files shows no other views.
func (h views) visible(c *gin.Context, s subject) (*output.Views, error) {
	all, err := h.outputs.Views(c.Request.Context(), s.by, s.job)
	if err != nil || len(s.shown) == 0 {
		return all, err
	}
	for i := range all.Views {
		v := &all.Views[i]
		v.Files = slices.DeleteFunc(v.Files, func(f output.ViewFile) bool { return !s.shown.Has(f.Path) })
		for k := range v.Files {
			if !s.shown.Has(v.Files[k].Topology) {
				v.Files[k].Topology = ""
			}
		}
	}
	all.Views = slices.DeleteFunc(all.Views, func(v output.View) bool { return len(v.Files) == 0 })
	return all, nil
}

type viewFileView struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Topology string `json:"topology,omitempty"`
}

type plddtView struct {
	Scale int       `json:"scale,omitempty"`
	Bands []float64 `json:"bands"`
}

type viewView struct {
	Name      string            `json:"name"`
	Kind      string            `json:"kind"`
	Title     string            `json:"title"`
	X         string            `json:"x,omitempty"`
	Y         []string          `json:"y,omitempty"`
	Titles    map[string]string `json:"titles,omitempty"`
	Units     map[string]string `json:"units,omitempty"`
	Errors    map[string]string `json:"errors,omitempty"`
	Fits      []string          `json:"fits,omitempty"`
	Ticks     string            `json:"ticks,omitempty"`
	Log       []string          `json:"log,omitempty"`
	Unit      string            `json:"unit,omitempty"`
	Quantity  string            `json:"quantity,omitempty"`
	Rows      string            `json:"rows,omitempty"`
	Columns   string            `json:"columns,omitempty"`
	PLDDT     *plddtView        `json:"plddt,omitempty"`
	Files     []viewFileView    `json:"files"`
	Truncated bool              `json:"truncated,omitempty"`

	MinSeparation int64 `json:"minSeparation,omitempty"`
}

type viewsView struct {
	Views      []viewView `json:"views"`
	Incomplete bool       `json:"incomplete,omitempty"`
}

// list handles GET /jobs/{jobName}/views and GET /shared/{token}/views.
func (h views) list(c *gin.Context, by app.Caller) error {
	name, err := decode.Request(c, h.name)
	if err != nil {
		return err
	}
	var all *output.Views
	err = h.withSubject(c, by, name, func(s subject) (err error) {
		all, err = h.visible(c, s)
		return err
	})
	if err != nil {
		return err
	}
	answer := viewsView{make([]viewView, len(all.Views)), all.Incomplete}
	for i, v := range all.Views {
		answer.Views[i] = viewView{
			v.Name, v.Kind, v.Title, v.X, v.Y, v.Titles, v.Units, v.Errors, v.Fits, v.Ticks, v.Log, v.Unit, v.Quantity, v.Rows, v.Columns,
			(*plddtView)(v.PLDDT), make([]viewFileView, len(v.Files)), v.Truncated, v.MinSeparation,
		}
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
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"`
	Title string `json:"title,omitempty"`
	Unit  string `json:"unit,omitempty"`
}

// numbers is a column of a series; missing values become null in JSON.
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

// series handles GET /jobs/{jobName}/series/{name} and GET /shared/{token}/series/{name}.
func (h views) series(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) output.SeriesRequest {
		return output.SeriesRequest{
			ViewRequest: h.request(r),
			Columns:     r.Texts("column"),
			Points:      int(r.Integer("points", 3, maxPoints, 2000)),
		}
	})
	if err != nil {
		return err
	}
	var s *output.Series
	err = h.within(c, by, &req.ViewRequest, func(by app.Caller) (err error) {
		s, err = h.outputs.Series(c.Request.Context(), by, req)
		return err
	})
	if err != nil {
		return err
	}
	answer := seriesView{req.View, s.File, s.Rows, make([]columnView, len(s.Columns)), make([]numbers, len(s.Values)), s.Incomplete}
	for i, column := range s.Columns {
		answer.Columns[i] = columnView{Name: column.Name, Title: column.Title, Unit: column.Unit}
		answer.Values[i] = s.Values[i]
	}
	return respond.JSON(c.Writer, http.StatusOK, answer)
}

func (h views) request(r *decode.Reader) output.ViewRequest {
	return output.ViewRequest{Job: h.name(r), View: r.Path("name"), File: r.Text("file")}
}

type rowsView struct {
	Name       string       `json:"name"`
	File       string       `json:"file"`
	Columns    []columnView `json:"columns"`
	Rows       [][]any      `json:"rows"`
	StartKey   string       `json:"startKey,omitempty"`
	Incomplete bool         `json:"incomplete,omitempty"`
}

// table handles GET /jobs/{jobName}/tables/{name} and GET /shared/{token}/tables/{name}.
func (h views) table(c *gin.Context, by app.Caller) error {
	req, err := decode.Request(c, func(r *decode.Reader) output.TableRequest {
		return output.TableRequest{
			ViewRequest: h.request(r),
			Sort:        r.Text("sort"),
			Limit:       int(r.Integer("limit", 1, maxRows, 100)),
			StartKey:    r.StartKey(),
		}
	})
	if err != nil {
		return err
	}
	var page *output.TablePage
	err = h.within(c, by, &req.ViewRequest, func(by app.Caller) (err error) {
		page, err = h.outputs.Table(c.Request.Context(), by, req)
		return err
	})
	if err != nil {
		return err
	}
	answer := rowsView{req.View, page.File, make([]columnView, len(page.Columns)), page.Rows, page.StartKey, page.Incomplete}
	for i, column := range page.Columns {
		kind := "text"
		if column.Numeric {
			kind = "number"
		}
		answer.Columns[i] = columnView{column.Name, kind, column.Title, column.Unit}
	}
	return respond.JSON(c.Writer, http.StatusOK, answer)
}
