package app

import (
	"context"
	"slices"

	"molrun/app/algorithm"
	"molrun/app/base/fault"
)

// Planner validates submissions and creates their jobs without queueing them.
type Planner struct{ *core }

// Planner returns a planner for submissions.
func (s *Jobs) Planner() Planner { return Planner{s.core} }

// Planned holds the jobs that a submission would queue.
type Planned struct {
	job         *Job
	subjobs     []*Job
	makers      []*maker
	Definitions []*algorithm.File // of the jobs
}

// planned returns jobs of the plan's algorithm along with the jobs that make their files.
func (p *plan) planned(job *Job, subjobs []*Job) *Planned {
	return withMakers(job, subjobs, []*algorithm.File{p.algorithm}, p.makers)
}

func withMakers(job *Job, subjobs []*Job, definitions []*algorithm.File, all map[string]*maker) *Planned {
	p := &Planned{job: job, subjobs: subjobs, makers: plannedMakers(all), Definitions: definitions}
	for _, m := range p.makers {
		if m.job != nil && !slices.Contains(p.Definitions, m.algorithm) {
			p.Definitions = append(p.Definitions, m.algorithm)
		}
	}
	return p
}

// Jobs returns the jobs that would run: the job itself, or the rows of a batch.
func (p *Planned) Jobs() []*Job {
	if p.job.IsBatch() {
		return p.subjobs
	}
	return []*Job{p.job}
}

// Job plans a submission.
func (p Planner) Job(ctx context.Context, by Caller, sub Submission) (*Planned, error) {
	planned, faults, err := planJob(ctx, p.core, by, sub)
	if err == nil {
		err = fault.List(faults...)
	}
	if err != nil {
		return nil, err
	}
	return planned, nil
}

// Batch plans a batch.
func (p Planner) Batch(ctx context.Context, by Caller, sub BatchSubmission) (*Planned, error) {
	plan := newPlan(p.core, by, sub.Type, sub.Version, sub.Priority, sub.MaxRuntime, sub.Faults)
	defer plan.release()
	return plan.planBatch(ctx, sub)
}

// release releases the memory reserved for expansion, once the rows are stored.
func (p *plan) release() { p.expanding.Add(-p.reserved) }

func (p *plan) planBatch(ctx context.Context, sub BatchSubmission) (*Planned, error) {
	waits, err := p.dependencies(ctx, sub.After, sub.Name, "after")
	if err != nil {
		return nil, err
	}
	names, rows, err := p.batchRows(ctx, sub)
	if err == nil {
		p.checkCycles(names, rowWaits(rows), sub.rowsMember())
		err = fault.List(p.faults...)
	}
	if err != nil {
		return nil, err
	}
	parent, subjobs := p.batch(sub.Name, names, rows)
	p.siblings, p.newIDs = nil, nil // large, and not needed while waiting for the commit
	parent.After, parent.AfterAny = sub.After.Names, sub.After.Any
	for _, j := range subjobs {
		j.After, j.AfterAny = sub.After.Names, sub.After.Any
		j.setWaits(mergeWaits(j.Private.Waits, waits))
	}
	return p.planned(parent, subjobs), parent.label(sub.Labels)
}

// Pipeline plans a pipeline.
func (p Planner) Pipeline(ctx context.Context, by Caller, sub Pipeline) (*Planned, error) {
	plan := &pipeline{plan: &plan{core: p.core, by: by, makers: map[string]*maker{}, faults: slices.Clone(sub.Faults)}, sub: sub}
	err := plan.check(ctx)
	if err == nil {
		err = fault.List(plan.faults...)
	}
	if err != nil {
		return nil, err
	}
	parent, rows, definitions := plan.jobs()
	return withMakers(parent, rows, definitions, plan.makers), parent.label(sub.Labels)
}
