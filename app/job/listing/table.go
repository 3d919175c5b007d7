package listing

import (
	"context"
	"errors"
	"iter"
	"strings"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/base/fault"
)

// Limits of a table.
const (
	MaxTablePage     = 1000
	DefaultTablePage = 100
	maxFoundMetrics  = 100     // columns for metrics not in the algorithm file
	rowsAtOnce       = 200     // read in one transaction
	enoughAtOnce     = 1 << 20 // bytes after which a transaction reads no more rows
)

// SortByRow sorts a table in order of submission. SortByMetric, followed by the name of a
// metric, sorts it by that metric.
const (
	SortByRow    = "row"
	SortByMetric = "metric:"
)

// TableQuery selects and pages the rows of a batch.
type TableQuery struct {
	Batch    string
	Status   []app.Status // any of them; empty means all
	Sort     string       // SortByRow, or SortByMetric and a name; "" means the algorithm's ranking
	Order    string       // asc or desc; "" means best first, or lowest first if neither end is better
	Limit    int
	StartKey string
	Faults   []fault.Field // found during decoding
}

// Table describes the table of a batch, without its rows.
type Table struct {
	Batch       string
	Statuses    app.Counts
	Sort, Order string   // as in the query, never ""
	Settings    []Column // settings in which rows differ
	Metrics     []Column // those in the algorithm file come first

	filter            app.JobFilter
	settings, metrics map[string]int // column indexes by name
}

// Table returns the table of a batch, a page of its rows, and the cursor of the next
// page, "" on the last page.
func (l *Lists) Table(ctx context.Context, by app.Caller, q TableQuery) (t *Table, rows []Row, next string, err error) {
	scope := []string{"table", by.Organization, q.Batch, q.Sort, q.Order}
	for _, status := range distinct(q.Status) {
		scope = append(scope, string(status))
	}
	after, err := l.readCursor(q.StartKey, q.Faults, scope)
	if err != nil {
		return nil, nil, "", err
	}
	if t, err = l.openTable(ctx, by, q); err != nil {
		return nil, nil, "", err
	}
	var end app.Position
	err = l.store.View(ctx, func(tx app.Tx) error {
		var ids []app.JobID
		if ids, end, err = tx.JobIDs(t.filter, after, q.Limit); err != nil {
			return err
		}
		var read int
		if rows, read, err = l.readRows(tx, t, ids, app.PageBytes); err != nil || read == len(ids) {
			return err
		}
		_, end, err = tx.JobIDs(t.filter, after, read)
		return err
	})
	return t, rows, l.cursor(end, scope), err
}

// WholeTable returns the table of a batch and all its rows, or only the first ones up to
// the query's limit. Rows are read in chunks, each as of the time it is read. No
// transaction is open between chunks, so the caller can be slow.
func (l *Lists) WholeTable(ctx context.Context, by app.Caller, q TableQuery) (*Table, iter.Seq2[[]Row, error], error) {
	if err := fault.List(q.Faults...); err != nil {
		return nil, nil, err
	}
	t, err := l.openTable(ctx, by, q)
	if err != nil {
		return nil, nil, err
	}
	var ids []app.JobID
	err = l.store.View(ctx, func(tx app.Tx) (err error) {
		ids, _, err = tx.JobIDs(t.filter, "", q.Limit)
		return err
	})
	return t, func(yield func([]Row, error) bool) {
		for left := ids; len(left) > 0; {
			var rows []Row
			err := l.store.View(ctx, func(tx app.Tx) (err error) {
				var read int
				rows, read, err = l.readRows(tx, t, left[:min(rowsAtOnce, len(left))], enoughAtOnce)
				left = left[read:]
				return err
			})
			if !yield(rows, err) || err != nil {
				return
			}
		}
	}, err
}

// openTable reads everything of a table except its rows.
func (l *Lists) openTable(ctx context.Context, by app.Caller, q TableQuery) (*Table, error) {
	var batch *app.Job
	var metrics []string
	err := l.store.View(ctx, func(tx app.Tx) (err error) {
		if batch, err = batchNamed(tx, by, q.Batch); err != nil {
			return err
		}
		metrics, err = tx.MetricNames(batch.ID, maxFoundMetrics)
		return err
	})
	if err != nil {
		return nil, err
	}
	a := &algorithm.File{} // used if the rows have several types
	if batch.Type != "" {
		if a, err = l.jobs.Algorithm(ctx, batch); err != nil {
			return nil, err
		}
	}
	t := &Table{Batch: batch.Name, Statuses: *batch.Counts, Settings: settingColumns(a, batch.Private.Varying), Metrics: metricColumns(a, metrics, batch.Private.Varying)}
	t.settings, t.metrics = placesOf(t.Settings), placesOf(t.Metrics)
	t.filter = app.JobFilter{Organization: by.Organization, Batch: batch.ID, Statuses: distinct(q.Status)}
	t.sortAs(q, a, batch.Private.Varying)
	return t, nil
}

func batchNamed(tx app.Tx, by app.Caller, name string) (*app.Job, error) {
	batch, err := tx.JobNamed(by.Organization, name)
	switch {
	case errors.Is(err, fault.NotFound):
		return nil, fault.Errorf(fault.NotFound, "there is no batch %q in your organization; GET /jobs?organization=true lists batches and jobs", name)
	case err == nil && !batch.IsBatch():
		return nil, fault.List(fault.Field{
			Loc: []any{"path", "jobName"}, Type: "value",
			Msg: "name a batch: this is a single job, which GET /jobs/{jobName} shows",
		})
	}
	return batch, err
}

// sortAs sets the requested order or, by default, that of the algorithm's ranking if rows
// that differ in the varying settings are comparable.
func (t *Table) sortAs(q TableQuery, a *algorithm.File, varying []string) {
	t.Sort, t.Order = q.Sort, q.Order
	if ranking := a.Metrics.Ranking(); t.Sort == "" && ranking != nil && ranking.Comparable(varying) {
		t.Sort = SortByMetric + ranking.Name
	} else if t.Sort == "" {
		t.Sort = SortByRow
	}
	if name, ok := strings.CutPrefix(t.Sort, SortByMetric); ok {
		t.filter.Metric = name
	}
	if t.Order == "" {
		t.Order = "asc"
		if m := a.Metrics.Named(t.filter.Metric); m != nil && m.Better == "higher" {
			t.Order = "desc"
		}
	}
	t.filter.Ascending = t.Order == "asc"
}
