package app

import (
	"context"
	"encoding/json"
	"fmt"

	"molrun/app/fault"
	"molrun/app/strictjson"
	"molrun/app/unit"
)

// MaxBatchRows is how many jobs one batch may have.
const MaxBatchRows = 10_000

// BatchSubmission asks for a job made of subjobs, one for each of Rows.
type BatchSubmission struct {
	Name       string
	Type       string
	Version    string
	Rows       []*strictjson.Value // settings, objects; nil where one is among Faults
	RowNames   []string            // nil: <batchName>-1 …
	Priority   int
	MaxRuntime int64
	Body       *strictjson.Value
	Faults     []fault.Field
}

// SubmitBatch queues all rows or none. The same body again returns the batch
// already there.
func (s *Service) SubmitBatch(ctx context.Context, by Caller, sub BatchSubmission) (rec Record, created bool, err error) {
	sent := sentHash("batch", sub.Body)
	rec, err = s.sentBefore(ctx, by, sub.Name, sent)
	if err != nil || rec != nil {
		return rec, false, err
	}
	order := s.newOrder(by, sub.Type, sub.Version, sub.Priority, sub.MaxRuntime, sub.Faults)
	names := order.rowNames(sub)
	var rows []row
	if order.algorithm != nil {
		rows, err = order.rows(ctx, sub.Rows, func(i int) []any { return []any{"body", "settings", i} })
	}
	if err == nil {
		err = fault.List(order.faults...)
	}
	if err != nil {
		return nil, false, err
	}
	parent, subjobs := order.batch(sub.Name, names, rows)
	parent.Private.Sent = sent
	return s.insert(ctx, parent, subjobs, order.algorithm)
}

// batch makes the parent and its subjobs. The parent has the lowest ID, the
// rows rise in their order.
func (o *order) batch(name string, names []string, rows []row) (*Job, []*Job) {
	parent := o.job(name, row{executor: commonExecutor(rows), maxRuntime: o.maxRuntime})
	parent.Counts = &Counts{Queued: len(rows)}
	parent.Private.Retries = 0
	meanings := make([]json.RawMessage, 0, 2*len(rows))
	subjobs := make([]*Job, len(rows))
	for i, r := range rows {
		j := o.job(names[i], r)
		j.Batch = name
		j.Private.Batch = parent.ID
		j.Private.Row = i
		j.Private.Meaning = meaningHash("row", o.algorithm, r.normalized)
		subjobs[i] = j
		meanings = append(meanings, json.RawMessage(names[i]), r.normalized)
	}
	parent.Private.Meaning = meaningHash("batch", o.algorithm, meanings...)
	return parent, subjobs
}

// commonExecutor names where all rows run, "" where they do not run in one place.
func commonExecutor(rows []row) string {
	for _, r := range rows {
		if r.executor != rows[0].executor {
			return ""
		}
	}
	return rows[0].executor
}

// rowNames gives the names of the rows and notes what is wrong with them.
func (o *order) rowNames(sub BatchSubmission) []string {
	o.checkName(sub.Name, "batchName")
	if n := len(sub.Rows); !o.faulty("settings") && (n == 0 || n > MaxBatchRows) {
		o.fault("value", fmt.Sprintf("give the settings of 1 to %d jobs, not %d", MaxBatchRows, n), "settings")
		return nil
	}
	if sub.RowNames == nil {
		return o.numberedNames(sub)
	}
	if len(sub.RowNames) != len(sub.Rows) {
		o.fault("value", fmt.Sprintf("give one name for each of the %d settings, not %d", len(sub.Rows), len(sub.RowNames)), "jobNames")
	}
	seen := map[string]int{}
	for i, name := range sub.RowNames {
		first, taken := seen[name]
		switch msg := CheckName(name); {
		case msg != "":
			o.fault("value", msg, "jobNames", i)
		case name == sub.Name:
			o.fault("taken", "use a name other than the batch's own", "jobNames", i)
		case taken:
			o.fault("taken", fmt.Sprintf("%q is the name of row %d already", name, first), "jobNames", i)
		default:
			seen[name] = i
		}
	}
	return sub.RowNames
}

func (o *order) numberedNames(sub BatchSubmission) []string {
	names := make([]string, len(sub.Rows))
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", sub.Name, i+1)
	}
	if n := len(names); n > 0 && !o.faulty("batchName") {
		if msg := CheckName(names[n-1]); msg != "" {
			o.fault("value", fmt.Sprintf("use a shorter name: of row %q, %s", names[n-1], msg), "batchName")
		}
	}
	return names
}

// putChanged stores a job whose state was from, and keeps the counts and the
// state of its batch in step. It tells the batch where that changed.
func putChanged(tx Tx, j *Job, from Status) (batch JobID, err error) {
	if err := tx.PutJob(j); err != nil || j.Private.Batch == "" || from == j.Status {
		return "", err
	}
	parent, err := tx.Job(j.Private.Batch)
	if err != nil {
		return "", fmt.Errorf("batch of %s: %w", j.ID, err)
	}
	parent.count(j, from)
	return parent.ID, tx.PutJob(parent)
}

// count moves a subjob from one state to its present one. Of a short one the
// end may be the first that is heard.
func (parent *Job) count(j *Job, from Status) {
	*parent.Counts.Of(from)--
	*parent.Counts.Of(j.Status)++
	switch {
	case parent.Status == Queued && !j.StartedAt.IsZero():
		parent.Status = Running
		if parent.StartedAt.IsZero() {
			parent.StartedAt = j.StartedAt
		}
	case j.Status == Queued && parent.Status.Finished(): // a retry
		parent.Status, parent.StatusReason, parent.CompletedAt = Queued, "", unit.Time{}
	}
	if j.Status == Completed && j.ResultBytes != nil {
		total := *j.ResultBytes
		if parent.ResultBytes != nil {
			total += *parent.ResultBytes
		}
		parent.ResultBytes = &total
	}
	parent.conclude(j.CompletedAt)
}

// conclude ends a batch whose rows have all ended.
func (parent *Job) conclude(at unit.Time) {
	c := parent.Counts
	if c.Queued+c.Running > 0 {
		return
	}
	parent.Status, parent.StatusReason = Completed, ""
	if c.Failed > 0 {
		parent.Status, parent.StatusReason = Failed, c.reason()
	}
	if parent.CompletedAt.Before(at.Time) {
		parent.CompletedAt = at
	}
}

// reason says why a batch has failed.
func (c *Counts) reason() string {
	if c.Failed == 0 {
		return "the subjobs that failed were deleted"
	}
	return fmt.Sprintf("%d of %d subjobs failed", c.Failed, c.Total())
}

// forget takes a finished subjob that is deleted out of the counts. The state
// stays: a batch that has failed is not completed by what is thrown away.
func (parent *Job) forget(row *Job) {
	*parent.Counts.Of(row.Status)--
	if row.ResultBytes != nil && parent.ResultBytes != nil {
		rest := *parent.ResultBytes - *row.ResultBytes
		parent.ResultBytes = &rest
	}
	if parent.Status == Failed {
		parent.StatusReason = parent.Counts.reason()
	}
}
