package web

import (
	"bytes"
	"encoding/json"
	"iter"
	"mime"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"molrun/app"
	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
	"molrun/app/job/listing"
	"molrun/web/decode"
	"molrun/web/respond"
)

// tables serves batches as tables.
type tables struct {
	lists      *listing.Lists
	answerTime time.Duration
}

type tableRequest struct {
	listing.TableQuery
	csv bool
}

func readTable(r *decode.Reader) tableRequest {
	req := tableRequest{csv: r.WantsCSV()}
	standard := int64(listing.DefaultTablePage)
	if req.csv {
		standard = app.MaxBatchRows
	}
	req.TableQuery = listing.TableQuery{
		Batch:    r.Path("jobName"),
		Status:   readStatuses(r),
		Sort:     r.ChoiceOr(listing.SortByMetric, "sort", listing.SortByRow),
		Order:    r.Choice("order", "asc", "desc"),
		Limit:    int(r.Integer("limit", 1, listing.MaxTablePage, standard)),
		StartKey: r.StartKey(),
	}
	if req.csv && req.StartKey != "" {
		r.Fault("value", []any{"query", "startKey"}, "omit this: CSV contains all rows, or the first ones up to limit")
	}
	return req
}

// get handles GET /jobs/{batchName}/table.
func (h tables) get(c *gin.Context, by app.Caller) error {
	req, faults := decode.Query(c, readTable)
	req.Faults = faults
	c.Writer.Header().Set("Vary", "Accept")
	if req.csv {
		return h.writeCSV(c, by, req.TableQuery)
	}
	t, rows, next, err := h.lists.Table(c.Request.Context(), by, req.TableQuery)
	if err != nil {
		return err
	}
	view := tableView{
		Batch: t.Batch, Statuses: t.Statuses, Sort: t.Sort, Order: t.Order,
		Settings: t.Settings, Metrics: t.Metrics, Rows: make([]rowView, len(rows)), StartKey: next,
	}
	for i, row := range rows {
		view.Rows[i] = viewRow(t, row)
	}
	return respond.JSON(c.Writer, http.StatusOK, view)
}

type tableView struct {
	Batch    string           `json:"batch"`
	Statuses app.Counts       `json:"statuses"`
	Sort     string           `json:"sort"`
	Order    string           `json:"order"`
	Settings []listing.Column `json:"settings"`
	Metrics  []listing.Column `json:"metrics"`
	Rows     []rowView        `json:"rows"`
	StartKey string           `json:"startKey,omitempty"`
}

const shownFailure = 500 // maximum characters of a failed job's message

type rowView struct {
	Row          int             `json:"row"`
	ID           app.JobID       `json:"jobId"`
	Name         string          `json:"jobName"`
	Source       string          `json:"source,omitempty"`
	Type         string          `json:"type"`
	Status       app.Status      `json:"status"`
	StatusReason string          `json:"statusReason,omitempty"`
	Progress     json.RawMessage `json:"progress,omitempty"`
	Attempts     int             `json:"attempts"`
	CreatedAt    unit.Time       `json:"createdAt"`
	StartedAt    unit.Time       `json:"startedAt,omitzero"`
	CompletedAt  unit.Time       `json:"completedAt,omitzero"`
	QueueSeconds *float64        `json:"queueSeconds,omitempty"`
	RunSeconds   *float64        `json:"runSeconds,omitempty"`
	FailureCode  app.FailureCode `json:"failureCode,omitempty"`
	Failure      string          `json:"failureMessage,omitempty"`
	Warnings     []string        `json:"warnings,omitempty"`
	Settings     json.RawMessage `json:"settings"`
	Metrics      json.RawMessage `json:"metrics"`
}

func viewRow(t *listing.Table, row listing.Row) rowView {
	j := row.Job
	v := rowView{
		Row: j.Private.Row + 1, ID: j.ID, Name: j.Name, Source: j.Source, Type: j.Type, Status: j.Status,
		StatusReason: row.Live.StatusReason, Progress: row.Live.Progress, Attempts: j.Attempts,
		CreatedAt: j.CreatedAt, StartedAt: j.StartedAt, CompletedAt: j.CompletedAt, Warnings: j.Warnings,
		Settings: object(t.Settings, row.Settings), Metrics: object(t.Metrics, row.Metrics),
	}
	if j.Metrics != nil {
		v.QueueSeconds, v.RunSeconds = &j.Metrics.QueueSeconds, &j.Metrics.RunSeconds
	}
	if j.Failure != nil {
		v.FailureCode, v.Failure = j.Failure.Code, plaintext.Cut(j.Failure.Message, shownFailure)
	}
	return v
}

// object returns the cells of some columns as a JSON object, with null for empty cells.
func object(columns []listing.Column, cells []*strictjson.Value) json.RawMessage {
	b := []byte{'{'}
	for i, cell := range cells {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendQuoted(b, columns[i].Name), ':')
		if cell == nil {
			b = append(b, "null"...)
		} else {
			b = append(b, cell.Raw...)
		}
	}
	return append(b, '}')
}

// writeCSV responds with all rows, a few at a time to limit memory use.
func (h tables) writeCSV(c *gin.Context, by app.Caller, q listing.TableQuery) error {
	t, rows, err := h.lists.WholeTable(c.Request.Context(), by, q)
	if err != nil {
		return err
	}
	c.Header("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": t.Batch + ".csv"}))
	return stream(c, "text/csv; charset=utf-8; header=present", func(w http.ResponseWriter) error {
		return h.copyCSV(w, t, rows)
	})
}

// copyCSV sends the rows to a client that may be slow but must not stall.
func (h tables) copyCSV(w http.ResponseWriter, t *listing.Table, parts iter.Seq2[[]listing.Row, error]) error {
	text := bytes.NewBuffer(nil)
	table := respond.NewCSV(text)
	table.Row(headOf(t)...)
	for rows, err := range parts {
		if err != nil {
			return err
		}
		for _, row := range rows {
			table.Row(cellsOf(row)...)
		}
		if err := copyPaced(w, text, int64(text.Len()), h.answerTime); err != nil {
			return err
		}
	}
	return copyPaced(w, text, int64(text.Len()), h.answerTime)
}

// headOf returns the names of the columns. Metrics come last, so that a new one that
// appears while the batch runs does not move other columns.
func headOf(t *listing.Table) []any {
	head := []any{"row", "jobName", "source", "type", "status", "attempts", "createdAt", "startedAt", "completedAt", "queueSeconds", "runSeconds", "failureCode"}
	for _, c := range t.Settings {
		head = append(head, "setting:"+c.Name)
	}
	for _, c := range t.Metrics {
		head = append(head, "metric:"+c.Name)
	}
	return head
}

func cellsOf(row listing.Row) []any {
	j := row.Job
	cells := []any{j.Private.Row + 1, j.Name, j.Source, j.Type, string(j.Status), j.Attempts, j.CreatedAt, j.StartedAt, j.CompletedAt}
	var queued, ran, code any
	if j.Metrics != nil {
		queued, ran = j.Metrics.QueueSeconds, j.Metrics.RunSeconds
	}
	if j.Failure != nil {
		code = string(j.Failure.Code)
	}
	cells = append(cells, queued, ran, code)
	for _, values := range [][]*strictjson.Value{row.Settings, row.Metrics} {
		for _, v := range values {
			cells = append(cells, v)
		}
	}
	return cells
}
