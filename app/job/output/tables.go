package output

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"molrun/app"
	"molrun/app/algorithm/results"
	"molrun/app/base/fault"
	"molrun/app/base/tables"
	"molrun/app/base/unit"
)

// maxColumns is the maximum number of columns of a series if none were chosen.
const maxColumns = 20

// Column is a column of a series or table.
type Column struct {
	Name, Title, Unit string
	Numeric           bool // contains numbers, as far as the first rows show
}

// ViewRequest is a request for a view of a table file. File "" means the first file of
// the view.
type ViewRequest struct{ Job, View, File string }

// SeriesRequest is a request for a series with a limited number of points.
type SeriesRequest struct {
	ViewRequest
	Columns []string // to draw; empty means those defined by the view
	Points  int
}

// Series holds columns of numbers. The first column is the axis.
type Series struct {
	File       string
	Rows       int64 // in the file
	Columns    []Column
	Values     [][]float64 // by column; NaN for a missing number
	Incomplete bool
}

// Series returns a downsampled series of a job.
func (o *Outputs) Series(ctx context.Context, by app.Caller, r SeriesRequest) (*Series, error) {
	t, end, err := o.table(ctx, by, r.ViewRequest, results.Series)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := t.tooLarge(); err != nil {
		return nil, err
	}
	columns, strict, err := t.seriesColumns(r.Columns)
	if err != nil {
		return nil, err
	}
	out := &Series{File: t.file.Path, Incomplete: t.file.Incomplete}
	if len(columns) == 0 {
		return out, nil
	}
	s, err := t.Thin(ctx, columns, strict, r.Points)
	if err != nil {
		return nil, t.fileError(err)
	}
	out.Rows, out.Values = s.Rows, s.Values
	for _, name := range s.Columns {
		out.Columns = append(out.Columns, Column{name, t.view.Titles[name], t.view.Units[name], true})
	}
	return out, nil
}

// TableRequest is a request for rows of a table.
type TableRequest struct {
	ViewRequest
	Sort     string // column name, preceded by "-" for descending; "" means file order
	Limit    int
	StartKey string
}

// TablePage is a page of rows of a table and the cursor of the next page, "" on the last
// page.
type TablePage struct {
	File       string
	Columns    []Column
	Rows       [][]tables.Cell
	StartKey   string
	Incomplete bool
}

// Table returns rows of a table of a job.
func (o *Outputs) Table(ctx context.Context, by app.Caller, r TableRequest) (*TablePage, error) {
	t, end, err := o.table(ctx, by, r.ViewRequest, results.Table, results.Series)
	if err != nil {
		return nil, err
	}
	defer end()
	scope := []string{"table", string(t.job.ID), strconv.Itoa(t.job.Attempts), r.View, t.file.Path, r.Sort}
	from, err := o.readMark(r.StartKey, scope)
	if err != nil {
		return nil, err
	}
	if r.Sort != "" { // sorting reads the whole file
		if err := t.tooLarge(); err != nil {
			return nil, err
		}
	}
	numeric, err := t.Numeric(ctx)
	if err != nil {
		return nil, t.fileError(err)
	}
	page, err := t.page(ctx, r, numeric, from)
	if err != nil {
		return nil, err
	}
	out := &TablePage{File: t.file.Path, Columns: make([]Column, len(t.Columns)), Rows: page.Rows, Incomplete: t.file.Incomplete}
	for i, name := range t.Columns {
		out.Columns[i] = Column{name, t.view.Titles[name], t.view.Units[name], numeric[i]}
	}
	if page.Next != nil {
		mark, _ := json.Marshal(page.Next) // can't fail: its numbers are finite and its text is valid
		out.StartKey = o.cursors.MakeCursor(string(mark), scope...)
	}
	return out, nil
}

func (o *Outputs) readMark(startKey string, scope []string) (*tables.Mark, error) {
	if startKey == "" {
		return nil, nil
	}
	var mark tables.Mark
	position, err := o.cursors.ReadCursor(startKey, scope...)
	if err == nil {
		err = json.Unmarshal([]byte(position), &mark)
	}
	if err != nil {
		return nil, invalidParameter("query", "startKey", "use the startKey of the previous page unchanged, with the same file and sort; after another attempt, start again with the first page")
	}
	return &mark, nil
}

func invalidParameter(in, name, format string, args ...any) error {
	return fault.List(fault.Field{Loc: []any{in, name}, Msg: fmt.Sprintf(format, args...), Type: "value"})
}

// viewTable is the open table of a view.
type viewTable struct {
	*tables.Table
	job  *app.Job
	view *results.View
	file *File
}

// table opens the table of a view whose kind is one of kinds. The caller must call end.
func (o *Outputs) table(ctx context.Context, by app.Caller, r ViewRequest, kinds ...string) (t *viewTable, end func(), err error) {
	j, views, err := o.viewsOf(ctx, by, r.Job)
	if err != nil {
		return nil, nil, err
	}
	v := views.Named(r.View)
	if v == nil || !slices.Contains(kinds, v.Kind) {
		return nil, nil, noView(j, views, r.View, kinds)
	}
	release, err := o.beginRead(ctx, by.KeyID)
	if err != nil {
		return nil, nil, err
	}
	err = o.visit(ctx, by, r.Job, func(s fileSource) (err error) {
		t, err = o.openTable(s, v, r.File)
		return err
	})
	if err != nil {
		release()
		return nil, nil, err
	}
	return t, func() { t.file.Close(); release() }, nil
}

func noView(j *app.Job, views results.Views, name string, kinds []string) error {
	known := []string{}
	for _, v := range views {
		if slices.Contains(kinds, v.Kind) {
			known = append(known, v.Name)
		}
	}
	if len(known) == 0 {
		return fault.Errorf(fault.NotFound, "%s %s has no views of this kind; GET /jobs/{jobName}/views lists its views", j.Type, j.Version)
	}
	return fault.Errorf(fault.NotFound, "%s %s has no view %q of this kind; it has %s", j.Type, j.Version, name, strings.Join(known, ", "))
}

func (o *Outputs) openTable(s fileSource, v *results.View, path string) (*viewTable, error) {
	if path == "" {
		files, err := s.files()
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(files.Files, func(f ListedFile) bool { _, ok := v.Match(f.Path); return ok })
		if i < 0 && s.job.Status == app.Running {
			return nil, fault.Errorf(fault.NotFound, "job %q is RUNNING and has written no file of the view %q yet; try again later", s.job.Name, v.Name)
		}
		if i < 0 {
			return nil, fault.Errorf(fault.NotFound, "job %q has no file of the view %q; GET /jobs/{jobName}/views shows when it has one", s.job.Name, v.Name)
		}
		path = files.Files[i].Path
	} else if _, ok := v.Match(path); !ok {
		return nil, fault.Errorf(fault.NotFound, "%q is not a file of the view %q; GET /jobs/{jobName}/views lists its files", path, v.Name)
	}
	f, err := o.openFrom(s, path)
	if err != nil {
		return nil, err
	}
	t := &viewTable{job: s.job, view: v, file: f}
	if t.Table, err = tables.Open(f, f.Size, path, s.job.Status == app.Completed); err != nil {
		return nil, errors.Join(t.fileError(err), f.Close())
	}
	return t, nil
}

// fileError converts an error about the content of the file to an API error.
func (t *viewTable) fileError(err error) error {
	var bad tables.Error
	if errors.As(err, &bad) {
		return invalidParameter("path", "name", "the file %q %s", t.file.Path, string(bad))
	}
	return err
}

func (t *viewTable) tooLarge() error {
	if t.file.Size <= maxRead {
		return nil
	}
	return fault.Errorf(fault.FileTooLarge, "the file %q has %s; series and sorted tables are limited to files of %s; download it with GET /jobs/{jobName}/files/{path}",
		t.file.Path, unit.Bytes(t.file.Size), unit.Bytes(maxRead))
}

// seriesColumns returns the columns of a series, the axis first, and how many of them
// must be numeric: those chosen by the view or the caller. It returns none while a
// running job has not written the columns of the view.
func (t *viewTable) seriesColumns(chosen []string) (columns []int, strict int, err error) {
	if len(t.Columns) == 0 {
		return nil, 0, nil
	}
	missing := func(name string) error { return t.noColumn("query", "column", name) }
	names, beside := chosen, []string(nil)
	if len(chosen) == 0 {
		missing, names, beside = t.noViewColumn, t.view.Y, t.view.ExtraColumns()
	}
	axis := cmp.Or(t.view.X, t.Columns[0])
	for _, name := range slices.Concat([]string{axis}, names, beside) {
		i := slices.Index(t.Columns, name)
		if i < 0 && name == axis {
			return nil, 0, t.noViewColumn(name)
		}
		if i < 0 {
			return nil, 0, missing(name)
		}
		columns = append(columns, i)
	}
	if len(names) > 0 {
		return columns, 1 + len(names), nil
	}
	for i := 0; i < len(t.Columns) && len(columns) <= maxColumns; i++ {
		if !slices.Contains(columns, i) {
			columns = append(columns, i)
		}
	}
	return columns, 1, nil
}

// noViewColumn returns the error for a missing column of the view, or nil if the file is
// still being written.
func (t *viewTable) noViewColumn(name string) error {
	if t.file.Incomplete {
		return nil
	}
	return t.noColumn("path", "name", name)
}

func (t *viewTable) noColumn(in, parameter, name string) error {
	known := t.Columns[:min(len(t.Columns), maxColumns)]
	return invalidParameter(in, parameter, "the file %q has no column %q; it has %s", t.file.Path, name, strings.Join(known, ", "))
}

func (t *viewTable) page(ctx context.Context, r TableRequest, numeric []bool, from *tables.Mark) (page *tables.Page, err error) {
	switch name, falling := strings.CutPrefix(r.Sort, "-"); {
	case len(t.Columns) == 0:
		return &tables.Page{Rows: [][]tables.Cell{}}, nil
	case r.Sort == "":
		page, err = t.Page(ctx, numeric, from, r.Limit)
	default:
		i := slices.Index(t.Columns, r.Sort)
		if i >= 0 {
			falling = false // the name itself begins with "-"
		} else if i = slices.Index(t.Columns, name); i < 0 {
			return nil, t.noColumn("query", "sort", name)
		}
		page, err = t.Sorted(ctx, numeric, tables.Order{Column: i, Numeric: numeric[i], Descending: falling}, from, r.Limit)
	}
	if err != nil {
		return nil, t.fileError(err)
	}
	return page, nil
}
