package app

import (
	"context"
	"encoding/json"
	"fmt"

	"molrun/app/algorithm"
	"molrun/app/algorithm/fanout"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/base/strictjson"
)

// MaxBatchRows is the maximum number of jobs in a batch.
const MaxBatchRows = 10_000

// BatchSubmission is a request for a job made of subjobs, one for each of Rows. FanOut,
// if set, describes how to generate the rows instead.
type BatchSubmission struct {
	Name       string
	Type       string
	Version    string
	Rows       []*strictjson.Value // settings objects; nil for one with an issue in Faults
	RowNames   []string            // nil means <batchName>-1, <batchName>-2, …
	FanOut     *fanout.Request     // nil if the request lists the rows
	Priority   int
	MaxRuntime int64
	Labels     Labels // of the batch itself
	After      After  // for every row
	Body       *strictjson.Value
	Faults     []fault.Field
}

// SubmitBatch queues all rows or none. Submitting the same body again returns the
// existing batch.
func (s *Jobs) SubmitBatch(ctx context.Context, by Caller, sub BatchSubmission) (rec Record, created bool, err error) {
	sent := sentHash("batch", sub.Body)
	rec, err = s.findRepeated(ctx, by, sub.Name, sent)
	if err != nil || rec != nil {
		return rec, false, err
	}
	var last *plan
	defer func() { last.release() }()
	return s.queue(ctx, sent, func() (*Planned, error) {
		if last != nil {
			last.release()
		}
		last = newPlan(s.core, by, sub.Type, sub.Version, sub.Priority, sub.MaxRuntime, sub.Faults)
		planned, err := last.planBatch(ctx, sub)
		if err == nil && len(planned.makers) == 0 {
			sub.Body, sub.Rows = nil, nil // large, and not needed while waiting for the commit
		}
		return planned, err
	})
}

// SubmitPipeline queues all rows or none, as SubmitBatch does.
func (s *Jobs) SubmitPipeline(ctx context.Context, by Caller, sub Pipeline) (rec Record, created bool, err error) {
	sent := sentHash("batch", sub.Body)
	rec, err = s.findRepeated(ctx, by, sub.Name, sent)
	if err != nil || rec != nil {
		return rec, false, err
	}
	return s.queue(ctx, sent, func() (*Planned, error) { return s.Planner().Pipeline(ctx, by, sub) })
}

// rowsMember names the request member that defines the rows.
func (sub *BatchSubmission) rowsMember() string {
	if sub.FanOut != nil {
		return fanout.Member
	}
	return "settings"
}

// batchRows validates a batch and returns the names and settings of its rows.
func (p *plan) batchRows(ctx context.Context, sub BatchSubmission) (names []string, rows []row, err error) {
	p.checkLabels(sub.Labels)
	at := func(row int) []any { return []any{"body", "settings", row} }
	if sub.FanOut != nil {
		at = func(int) []any { return []any{"body"} } // each error has its own location
		if err := p.expand(ctx, &sub); err != nil {
			return nil, nil, err
		}
	}
	names = p.rowNames(sub)
	p.identify(names, func(int) *algorithm.File { return p.algorithm })
	if p.algorithm != nil {
		rows, err = p.rows(ctx, sub.Rows, at)
	}
	return names, rows, err
}

// rowNames returns the names of the rows and records the errors in them.
func (p *plan) rowNames(sub BatchSubmission) []string {
	p.checkName(sub.Name, "batchName")
	if sub.FanOut != nil {
		return sub.RowNames
	}
	if n := len(sub.Rows); !p.faulty("settings") && (n == 0 || n > MaxBatchRows) {
		p.fault("value", fmt.Sprintf("send settings for 1 to %d jobs, not %d", MaxBatchRows, n), "settings")
		return nil
	}
	if sub.RowNames == nil {
		return p.numberedNames(sub)
	}
	if len(sub.RowNames) != len(sub.Rows) {
		p.fault("value", fmt.Sprintf("send one name for each of the %d jobs, not %d", len(sub.Rows), len(sub.RowNames)), "jobNames")
	}
	seen := map[string]int{}
	for i, name := range sub.RowNames {
		first, taken := seen[name]
		switch msg := naming.CheckName(name); {
		case msg != "":
			p.fault("value", msg, "jobNames", i)
		case name == sub.Name:
			p.fault("taken", "choose a name other than the name of the batch", "jobNames", i)
		case taken:
			p.fault("taken", fmt.Sprintf("%q is already the name of job %d; choose another", name, first), "jobNames", i)
		default:
			seen[name] = i
		}
	}
	return sub.RowNames
}

func (p *plan) numberedNames(sub BatchSubmission) []string {
	names := make([]string, len(sub.Rows))
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", sub.Name, i+1)
	}
	if n := len(names); n > 0 && !p.faulty("batchName") {
		if msg := naming.CheckName(names[n-1]); msg != "" {
			p.fault("value", fmt.Sprintf("use a shorter name; for the job %q: %s", names[n-1], msg), "batchName")
		}
	}
	return names
}

// identify assigns ascending IDs to a batch and its rows, in this order, so that rows can
// refer to one another.
func (p *plan) identify(names []string, algorithmOf func(i int) *algorithm.File) {
	p.siblings = make(map[string]sibling, len(names))
	p.newIDs = []JobID{p.newJobID()}
	for i, name := range names {
		id := p.newJobID()
		p.siblings[name], p.newIDs = sibling{id, algorithmOf(i)}, append(p.newIDs, id)
	}
}

func (p *plan) batch(name string, names []string, rows []row) (*Job, []*Job) {
	parent := p.job(p.newIDs[0], name, row{executor: commonExecutor(rows), maxRuntime: p.maxRuntime})
	parent.Counts = &Counts{Queued: len(rows)}
	parent.Private.Retries = 0
	meanings := make([]json.RawMessage, 0, 2*len(rows))
	subjobs := make([]*Job, len(rows))
	for i, r := range rows {
		j := p.job(p.newIDs[i+1], names[i], r)
		j.Private.Waits = r.waits
		j.Batch = name
		j.Private.Batch = parent.ID
		j.Private.Row = i
		if p.expanded != nil {
			j.Source = p.expanded.Sources[i]
		}
		j.Private.Meaning = meaningHash("row", p.algorithm, r.normalized)
		subjobs[i] = j
		meanings = append(meanings, json.RawMessage(names[i]), r.normalized)
	}
	parent.Private.Meaning = meaningHash("batch", p.algorithm, meanings...)
	parent.Private.Varying = varyingOf(subjobs)
	return parent, subjobs
}

// varyingOf returns the names of the settings in which new rows differ, including
// settings left at their defaults.
func varyingOf(rows []*Job) []string {
	settings := make([]json.RawMessage, len(rows))
	for i, j := range rows {
		settings[i] = j.Private.Normalized
	}
	names, _ := strictjson.Differing(settings) // the settings are valid
	return names
}

func rowWaits(rows []row) [][]Dependency {
	waits := make([][]Dependency, len(rows))
	for i, r := range rows {
		waits[i] = r.waits
	}
	return waits
}

// commonExecutor returns the executor of all rows, or "" if they differ.
func commonExecutor(rows []row) string {
	for _, r := range rows {
		if r.executor != rows[0].executor {
			return ""
		}
	}
	return rows[0].executor
}

// expand generates the rows of a batch from its fan-out request.
func (p *plan) expand(ctx context.Context, sub *BatchSubmission) (err error) {
	if p.algorithm == nil || p.faulty(fanout.Member) {
		return nil
	}
	var faults []fault.Field
	p.expanded, faults, err = fanout.Expand(ctx, *sub.FanOut, sub.Name, p.algorithm, &ownFiles{plan: p}, MaxBatchRows)
	p.addBelow([]any{"body"}, faults)
	if p.expanded != nil {
		sub.Rows, sub.RowNames = p.expanded.Settings, p.expanded.Names
	}
	return err
}

// locateFaults moves the errors of an expanded row to where the caller can fix them, and drops
// those already reported for another row. Without an expansion it returns the errors
// unchanged.
func (p *plan) locateFaults(row int, faults []fault.Field) []fault.Field {
	if p.expanded == nil {
		return faults
	}
	var placed []fault.Field
	for _, f := range faults {
		if f, isNew := p.expanded.LocateFault(row, f); isNew {
			placed = append(placed, f)
		}
	}
	return placed
}
