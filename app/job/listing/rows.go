package listing

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
)

// Column is a setting or a metric in a table.
type Column struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Unit  string `json:"unit,omitempty"`
	// Better says which values of a metric are better: higher, lower or "".
	Better string `json:"better,omitempty"`
	// Digits is the number of digits shown after the decimal point; nil means all.
	Digits *int64 `json:"digits,omitempty"`
	// ErrorOf is the metric whose standard error this is.
	ErrorOf string `json:"errorOf,omitempty"`
}

// Row is a row of a table. It has one cell per column; nil means no value.
type Row struct {
	Job               *app.Job
	Live              Live
	Settings, Metrics []*strictjson.Value
}

// Live is the part of a row that is not stored.
type Live struct {
	StatusReason string          `json:"statusReason"`
	Progress     json.RawMessage `json:"progress"`
}

// settingColumns returns columns for settings, in the order of the algorithm's
// parameters.
func settingColumns(a *algorithm.File, names []string) []Column {
	columns := []Column{}
	for _, p := range a.Parameters {
		if slices.Contains(names, p.Name) {
			columns = append(columns, Column{Name: p.Name, Title: cmp.Or(p.Title, p.Name), Unit: p.Unit})
		}
	}
	return withOthers(columns, names)
}

// metricColumns returns a column for each metric of the algorithm file, even if it has no
// values yet, and for each other metric found. Better is "" where rows are not
// comparable.
func metricColumns(a *algorithm.File, found, varying []string) []Column {
	columns := []Column{}
	for _, m := range a.Metrics {
		if !m.Comparable(varying) {
			m.Better = ""
		}
		columns = append(columns, Column{m.Name, cmp.Or(m.Title, m.Name), m.Unit, m.Better, m.Digits, m.ErrorOf})
	}
	return withOthers(columns, found)
}

// withOthers adds a column for each name that has none.
func withOthers(columns []Column, names []string) []Column {
	known := placesOf(columns)
	for _, name := range names {
		if _, has := known[name]; !has {
			columns = append(columns, Column{Name: name, Title: name})
		}
	}
	return columns
}

func placesOf(columns []Column) map[string]int {
	places := make(map[string]int, len(columns))
	for i, c := range columns {
		places[c.Name] = i
	}
	return places
}

// readRows reads at least one row, and more until they exceed enough bytes. It returns
// how many of the IDs it has processed, and skips rows that have been deleted.
func (l *Lists) readRows(tx app.Tx, t *Table, ids []app.JobID, enough int) (rows []Row, read int, err error) {
	rows = make([]Row, 0, len(ids))
	for size := 0; read < len(ids) && size < enough; read++ {
		j, err := tx.Job(ids[read])
		if errors.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, read, err
		}
		row, err := t.row(j)
		if err != nil {
			return nil, read, err
		}
		if !j.Status.Finished() {
			if row.Live, err = l.live(tx, j.ID); err != nil {
				return nil, read, err
			}
		}
		rows = append(rows, row)
		size += row.size()
	}
	return rows, read, nil
}

func (t *Table) row(j *app.Job) (Row, error) {
	row := Row{Job: j, Settings: make([]*strictjson.Value, len(t.Settings)), Metrics: make([]*strictjson.Value, len(t.Metrics))}
	if len(t.Settings) > 0 {
		settings, err := strictjson.Parse(j.Private.Normalized)
		if err != nil {
			return row, fmt.Errorf("read the settings of job %s: %w", j.ID, err)
		}
		for _, m := range settings.Members {
			if i, has := t.settings[m.Name]; has && m.Value.Kind != strictjson.Null {
				row.Settings[i] = m.Value
			}
		}
	}
	if j.Metrics != nil {
		for _, m := range strictjson.Shown(j.Metrics.Results) {
			if i, has := t.metrics[m.Name]; has && !notNumber(m.Value) {
				row.Metrics[i] = m.Value
			}
		}
	}
	return row, nil
}

// notNumber reports whether a value is a string such as NaN, which programs print in
// place of a missing number.
func notNumber(v *strictjson.Value) bool {
	if v.Kind != strictjson.String {
		return false
	}
	f, err := strconv.ParseFloat(v.Text, 64)
	return err == nil && (math.IsNaN(f) || math.IsInf(f, 0))
}

// size estimates the size of a row in a response, in bytes.
func (r Row) size() (n int) {
	n = 300
	for _, cells := range [][]*strictjson.Value{r.Settings, r.Metrics} {
		for _, c := range cells {
			if c != nil {
				n += len(c.Raw)
			}
		}
	}
	return n
}

// live returns the part of an unfinished row that is not stored.
func (l *Lists) live(tx app.Tx, id app.JobID) (live Live, err error) {
	stored, err := tx.JobJSON(id)
	if err != nil {
		return live, err
	}
	return live, json.Unmarshal(l.jobs.WithLiveState(app.StoredJob{ID: id, JSON: stored}), &live)
}
