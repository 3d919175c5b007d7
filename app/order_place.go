package app

import (
	"fmt"

	"molrun/app/fault"
)

// place finds out what a row's job needs and where it runs, or gives a fault
// for each thing that there is not enough of.
func (o *order) place(r *row) []fault.Field {
	needs, faults := o.algorithm.Needs(r.normalized)
	if len(faults) > 0 {
		return faults
	}
	r.needs = needs
	r.maxRuntime = o.maxRuntime
	r.executor = o.service.router.Executor(o.algorithm, o.by.routed(), needs)
	why, unready := o.unready[r.executor]
	switch {
	case unready && o.faulty("type"): // it can run nowhere, which is told already
		return nil
	case unready:
		return []fault.Field{why}
	}
	limit, faults := o.service.router.Fit(o.algorithm, r.executor, o.by.routed(), needs, r.maxRuntime)
	switch {
	case limit == 0:
	case o.asksTime:
		faults = append(faults, fault.Field{Type: "value", Msg: fmt.Sprintf(
			"the cluster lets jobs run %d seconds there; give a maxRuntimeSeconds of at most that, or leave it out", limit)})
	default:
		r.maxRuntime = limit
	}
	return faults
}
