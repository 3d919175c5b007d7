package output

import (
	"fmt"
	"strings"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

// MissingRows describes the rows missing in the archive of a batch because they are not
// COMPLETED.
type MissingRows struct {
	Count   int
	Rows    []string // names of at most maxNamedFiles rows, FAILED ones first
	Message string   // for users
}

// missingRowsOf returns the rows missing in the archive of a batch, or nil if there are
// none.
func missingRowsOf(tx app.Tx, batch *app.Job) (*MissingRows, error) {
	m := &MissingRows{Count: batch.Counts.Total() - batch.Counts.Completed, Rows: []string{}}
	if m.Count == 0 {
		return nil, nil
	}
	for _, status := range []app.Status{app.Failed, app.Running, app.Queued} {
		if err := m.addRows(tx, batch, status); err != nil {
			return nil, err
		}
	}
	m.Message = fmt.Sprintf("The archive of batch %q has %d of its %s; these have no result: %s.",
		batch.Name, batch.Counts.Completed, unit.Count(batch.Counts.Total(), "job"), m.names())
	return m, nil
}

func (m *MissingRows) addRows(tx app.Tx, batch *app.Job, status app.Status) error {
	if *batch.Counts.Of(status) == 0 {
		return nil
	}
	for row, err := range tx.Subjobs(batch.ID, status) {
		if err != nil || len(m.Rows) == maxNamedFiles {
			return err
		}
		m.Rows = append(m.Rows, row.Name)
	}
	return nil
}

// names lists the names in m.Rows and says how many more rows are missing.
func (m *MissingRows) names() string {
	text := strings.Join(m.Rows, ", ")
	if more := m.Count - len(m.Rows); more > 0 {
		text += " and " + unit.Count(more, "other")
	}
	return text
}

// notCompleted returns an error that says why a job or batch has no result, and what is
// available instead.
func notCompleted(tx app.Tx, j *app.Job) error {
	if !j.IsBatch() {
		text := fmt.Sprintf("job %q is %s; its result can be downloaded when it is COMPLETED", j.Name, j.Status)
		if j.Status == app.Failed {
			text += "; GET /jobs/{jobName}/files lists the files that it created"
		}
		return fault.Errorf(fault.JobNotCompleted, "%s", text)
	}
	m, err := missingRowsOf(tx, j)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("batch %q is %s with %d of %s COMPLETED", j.Name, j.Status, j.Counts.Completed, unit.Count(j.Counts.Total(), "job"))
	if j.Counts.Completed > 0 {
		text += `; send "partial": true (molrun results --partial) for their archive`
	}
	if j.Status.Finished() {
		return fault.Errorf(fault.JobNotCompleted, "%s; retry the batch to run the others again: %s", text, m.names())
	}
	return fault.Errorf(fault.JobNotCompleted, "%s; its result can be downloaded when all are COMPLETED", text)
}
