package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"molrun/app/algorithm"
	"molrun/app/base/digest"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
)

// Pipeline is a request for a batch whose rows are Jobs, which can differ in type and
// depend on one another. Priority, MaxRuntime and After of the batch are the defaults of
// its rows.
type Pipeline struct {
	BatchSubmission // Type, Version, Rows and RowNames are not set
	Jobs            []PipelineJob
}

// PipelineJob is a row of a pipeline.
type PipelineJob struct {
	Name       string // "" means <batchName>-<n>
	Type       string // "" if it has an issue in Faults
	Version    string
	Settings   *strictjson.Value // nil if they have an issue in Faults
	Priority   *int64
	MaxRuntime int64
	After      *After
}

// maxPipelineWaits is the maximum total number of dependencies of the rows of a pipeline.
const maxPipelineWaits = 50_000

// pipeline validates a pipeline. Its embedded plan has no algorithm.
type pipeline struct {
	*plan
	sub   Pipeline
	names []string
	rows  []row
	plans []*plan // by row; nil for a row with an error
	waits [][]Dependency
}

func (p *pipeline) check(ctx context.Context) error {
	p.checkName(p.sub.Name, "batchName")
	p.checkLabels(p.sub.Labels)
	if n := len(p.sub.Jobs); n == 0 || n > MaxBatchRows {
		if !p.faulty("jobs") {
			p.fault("value", fmt.Sprintf("send 1 to %d jobs, not %d", MaxBatchRows, n), "jobs")
		}
		return nil
	}
	common, err := p.dependencies(ctx, p.sub.After, p.sub.Name, "after")
	if err != nil {
		return err
	}
	p.setNames()
	p.identify(p.names, func(i int) *algorithm.File {
		a, _ := p.catalogue.Find(p.sub.Jobs[i].Type, p.sub.Jobs[i].Version)
		return a
	})
	if err := p.planRows(ctx); err != nil {
		return err
	}
	if err := p.setDependencies(ctx, common); err != nil {
		return err
	}
	if len(p.faults) == 0 {
		p.checkCycles(p.names, p.waits, "jobs")
	}
	return nil
}

// setNames sets the names of the rows and records the errors in them.
func (p *pipeline) setNames() {
	p.names = make([]string, len(p.sub.Jobs))
	seen := map[string]int{}
	for i, j := range p.sub.Jobs {
		name := cmp.Or(j.Name, p.sub.Name+"-"+strconv.Itoa(i+1))
		first, taken := seen[name]
		switch msg := naming.CheckName(name); {
		case msg != "" && (j.Name != "" || !p.faulty("batchName")):
			p.fault("value", msg, "jobs", i, "jobName")
		case name == p.sub.Name:
			p.fault("taken", "choose a name other than the name of the batch", "jobs", i, "jobName")
		case taken:
			p.fault("taken", fmt.Sprintf("%q is already the name of job %d; choose another", name, first), "jobs", i, "jobName")
		default:
			seen[name] = i
		}
		p.names[i] = name
	}
}

// planKey groups the rows that one plan can check together.
type planKey struct {
	typ, version string
	priority     int
	maxRuntime   int64
}

// planRows checks the rows' settings, grouped so that a validator runs once for all
// similar rows.
func (p *pipeline) planRows(ctx context.Context) error {
	p.rows, p.plans = make([]row, len(p.names)), make([]*plan, len(p.names))
	groups, order := map[planKey][]int{}, []planKey{}
	for i, j := range p.sub.Jobs {
		if j.Type == "" {
			continue // already reported during decoding
		}
		a := planKey{j.Type, j.Version, p.sub.Priority, cmp.Or(j.MaxRuntime, p.sub.MaxRuntime)}
		if j.Priority != nil {
			a.priority = int(*j.Priority)
		}
		if groups[a] == nil {
			order = append(order, a)
		}
		groups[a] = append(groups[a], i)
	}
	for _, a := range order {
		if err := p.planGroup(ctx, a, groups[a]); err != nil {
			return err
		}
	}
	return nil
}

func (p *pipeline) planGroup(ctx context.Context, a planKey, group []int) error {
	plan := newPlan(p.core, p.by, a.typ, a.version, a.priority, a.maxRuntime, nil)
	plan.siblings, plan.resolved, plan.makers = p.siblings, p.resolved, p.makers
	common := len(plan.faults)
	for _, i := range group {
		for _, f := range plan.faults {
			p.addBelow([]any{"body", "jobs", i}, []fault.Field{{Loc: f.Loc[1:], Msg: f.Msg, Type: f.Type}})
		}
	}
	if plan.algorithm == nil {
		return nil
	}
	settings := make([]*strictjson.Value, len(group))
	for k, i := range group {
		settings[k] = p.sub.Jobs[i].Settings
	}
	rows, err := plan.rows(ctx, settings, func(k int) []any { return []any{"body", "jobs", group[k], "settings"} })
	if err != nil {
		return err
	}
	p.resolved = plan.resolved
	p.addBelow(nil, plan.faults[common:])
	for k, r := range rows {
		p.rows[group[k]], p.plans[group[k]] = r, plan
	}
	return nil
}

// setDependencies sets the dependencies of each row. Rows without After depend on common.
func (p *pipeline) setDependencies(ctx context.Context, common []Dependency) (err error) {
	p.waits = make([][]Dependency, len(p.names))
	total := 0
	for i, j := range p.sub.Jobs {
		waits := common
		if j.After != nil {
			if waits, err = p.dependencies(ctx, *j.After, p.names[i], "jobs", i, "after"); err != nil {
				return err
			}
		}
		p.waits[i] = mergeWaits(p.rows[i].waits, waits)
		total += len(p.waits[i])
	}
	if total > maxPipelineWaits {
		p.fault("value", fmt.Sprintf("a pipeline can have at most %d dependencies, not %d; insert a job that depends on many jobs and on which many depend", maxPipelineWaits, total), "jobs")
	}
	return nil
}

// checkCycles records an error for rows that depend on one another in a cycle.
func (p *plan) checkCycles(names []string, waits [][]Dependency, member string) {
	number := make(map[JobID]int, len(names))
	for i := range names {
		number[p.newIDs[i+1]] = i
	}
	found := findCycle(len(waits), func(i int) (next []int) {
		for _, w := range waits[i] {
			if to, ok := number[w.Job]; ok {
				next = append(next, to)
			}
		}
		return next
	})
	if found == nil {
		return
	}
	p.fault("value", "these jobs depend on one another, so none of them could start: "+cycleText(found, names)+"; remove one of these dependencies", member, found[0])
}

func (p *pipeline) jobs() (parent *Job, rows []*Job, definitions []*algorithm.File) {
	now := unit.At(p.now())
	parent = &Job{
		ID: p.newIDs[0], Name: p.sub.Name, Status: Queued, After: p.sub.After.Names, AfterAny: p.sub.After.Any,
		Organization: p.by.Organization, Email: p.by.Email, Priority: p.sub.Priority, CreatedAt: now,
		Executor: commonExecutor(p.rows), Counts: &Counts{Queued: len(p.rows)},
		Private: Private{QueuedAt: now},
	}
	if first := p.plans[0].algorithm; !slices.ContainsFunc(p.plans, func(other *plan) bool { return other.algorithm != first }) {
		parent.Type, parent.Version, parent.Private.Definition = first.Type, first.Version, first.Digest
	}
	meaning := [][]byte{[]byte(hashVersion), []byte("pipeline")}
	for i, plan := range p.plans {
		j := p.row(parent, i)
		rows = append(rows, j)
		meaning = append(meaning, j.meaningInPipeline())
		if !slices.Contains(definitions, plan.algorithm) {
			definitions = append(definitions, plan.algorithm)
		}
	}
	parent.Private.Meaning, parent.Private.Varying = digest.Parts(meaning...), varyingOf(rows)
	return parent, rows, definitions
}

func (p *pipeline) row(parent *Job, i int) *Job {
	plan, after := p.plans[i], p.sub.After
	if own := p.sub.Jobs[i].After; own != nil {
		after = *own
	}
	j := plan.job(p.newIDs[i+1], p.names[i], p.rows[i])
	j.After, j.AfterAny = after.Names, after.Any
	j.setWaits(p.waits[i])
	j.Batch, j.Private.Batch, j.Private.Row = parent.Name, parent.ID, i
	j.Private.Meaning = meaningHash("row", plan.algorithm, j.Private.Normalized)
	return j
}

// meaningInPipeline returns the row's contribution to the pipeline's meaning hash.
func (j *Job) meaningInPipeline() []byte {
	limit := int64(0)
	if j.Private.SetsMaxRuntime {
		limit = j.MaxRuntime
	}
	after := slices.Sorted(slices.Values(j.After))
	text, _ := json.Marshal([]any{j.Name, j.Private.Meaning, j.Priority, limit, after, j.AfterAny && len(after) > 0}) // cannot fail
	return text
}
