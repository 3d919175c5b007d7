package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"molrun/app/base/fault"
)

// MaxAfter is the maximum number of jobs that a job can list as dependencies.
const MaxAfter = 100

// After lists the jobs that must finish before a job starts.
type After struct {
	Names []string
	Any   bool // a failed job also satisfies the dependency
}

// dependencies looks up the jobs that a new job starts after and drops those already
// satisfied. at is the path of their names in the request.
func (p *plan) dependencies(ctx context.Context, after After, own string, at ...any) (waits []Dependency, err error) {
	if n := len(after.Names); n == 0 {
		return nil, nil
	} else if n > MaxAfter {
		p.fault("value", fmt.Sprintf("list at most %d jobs, not %d; a batch counts as one", MaxAfter, n), at...)
		return nil, nil
	}
	err = p.store.View(ctx, func(tx Tx) error {
		for i := range after.Names {
			w, wrong, err := p.dependency(tx, after, i, own)
			switch {
			case err != nil:
				return err
			case wrong.Msg != "":
				p.fault(wrong.Type, wrong.Msg, slices.Concat(at, []any{i})...)
			case w != nil:
				waits = append(waits, *w)
			}
		}
		return nil
	})
	return waits, err
}

// dependency looks up one of the jobs that a new job starts after. It returns nil if
// there is no need to wait for it, or what is wrong with its name.
func (p *plan) dependency(tx Tx, after After, i int, own string) (w *Dependency, wrong fault.Field, err error) {
	name := after.Names[i]
	if name == own {
		return nil, fault.Field{Type: "value", Msg: "a job can't depend on itself; remove this name"}, nil
	}
	if first := slices.Index(after.Names, name); first < i {
		return nil, fault.Field{Type: "value", Msg: fmt.Sprintf("%q is already listed at index %d; remove it here", name, first)}, nil
	}
	if s, ok := p.siblings[name]; ok {
		return &Dependency{s.id, name, after.Any}, wrong, nil
	}
	d, err := tx.JobNamed(p.by.Organization, name)
	switch {
	case errors.Is(err, fault.NotFound):
		return nil, fault.Field{Type: "unknown", Msg: fmt.Sprintf("there is no job %q in your organization; submit it first", name)}, nil
	case err != nil || d.satisfiesDependency(after.Any):
		return nil, wrong, err
	}
	return &Dependency{d.ID, name, after.Any}, wrong, nil
}

// mergeWaits adds the dependencies in after to those whose results are read, which must
// be COMPLETED.
func mergeWaits(read, after []Dependency) (all []Dependency) {
	for _, w := range slices.Concat(read, after) {
		if !slices.ContainsFunc(all, func(other Dependency) bool { return other.Job == w.Job }) {
			all = append(all, w)
		}
	}
	return all
}

// sameAfter reports whether two jobs have the same dependencies in After.
func sameAfter(a, b *Job) bool {
	return slices.Equal(slices.Sorted(slices.Values(a.After)), slices.Sorted(slices.Values(b.After))) &&
		(a.AfterAny == b.AfterAny || len(a.After) == 0)
}

// dependenciesRemain checks that the dependencies of the new jobs have not been deleted
// since they were looked up, and marks those that have finished since, so that their
// status is propagated.
func dependenciesRemain(tx Tx, first *Job, rows []EncodedJob) error {
	checked := map[JobID]bool{}
	isRow := func(id JobID) bool { // row IDs are in ascending order
		_, found := slices.BinarySearchFunc(rows, id, func(r EncodedJob, id JobID) int { return cmp.Compare(r.Job.ID, id) })
		return found
	}
	check := func(waits []Dependency) error {
		for _, w := range waits {
			if checked[w.Job] || isRow(w.Job) {
				continue
			}
			checked[w.Job] = true
			if err := dependencyRemains(tx, w); err != nil {
				return err
			}
		}
		return nil
	}
	if err := check(first.Private.Waits); err != nil {
		return err
	}
	for _, r := range rows {
		if err := check(r.Job.Private.Waits); err != nil {
			return err
		}
	}
	return nil
}

func dependencyRemains(tx Tx, w Dependency) error {
	d, err := tx.Job(w.Job)
	switch {
	case errors.Is(err, fault.NotFound):
		return fault.List(fault.Field{
			Loc: []any{"body", "after"}, Type: "unknown",
			Msg: fmt.Sprintf("the job %q was just deleted; remove it from the list", w.Name),
		})
	case err == nil && d.Status.Finished():
		d.Private.Unpropagated = true
		return tx.PutJob(d)
	}
	return err
}
