package app

import "fmt"

// place finds out what a row's job needs and where it runs, or gives a fault
// for each thing that there is not enough of.
func (o *order) place(r *row) []FieldError {
	needs, faults := o.algorithm.Needs(r.normalized)
	if len(faults) > 0 {
		return faults
	}
	r.needs = needs
	r.maxRuntime = o.maxRuntime
	r.executor = o.service.executorFor(o.algorithm, o.by, needs)
	fault, unready := o.unready[r.executor]
	switch {
	case unready && o.faulty("type"): // it can run nowhere, which is told already
		return nil
	case unready:
		return []FieldError{fault}
	}
	if machine := o.service.options.Machines[r.executor]; machine.Local {
		has := Node{CPUs: machine.CPUs, MemoryBytes: machine.MemoryBytes, GPUs: machine.GPUs}
		return o.algorithm.resources.beyond(needs, has, "this server has")
	}
	return o.fitsCluster(r)
}

// fitsCluster gives a fault for each need that no node meets where the job would
// go: there it would wait for ever. A job that asks for no time gets no more than
// the cluster lets it run.
func (o *order) fitsCluster(r *row) []FieldError {
	largest := o.service.options.Routing.Largest
	if largest == nil {
		return nil
	}
	placement := o.service.placement(o.algorithm, r.executor, o.by, r.needs)
	node, known := largest(placement)
	if !known {
		return nil
	}
	where := "any node of the cluster has"
	if placement.Partition != "" {
		where = fmt.Sprintf("any node of the partition %s has", placement.Partition)
	}
	faults := o.algorithm.resources.beyond(r.needs, node, where)
	switch {
	case node.Seconds == 0 || r.maxRuntime <= node.Seconds:
	case o.asksTime:
		faults = append(faults, FieldError{Type: "value", Msg: fmt.Sprintf(
			"the cluster lets jobs run %d seconds there; give a maxRuntimeSeconds of at most that, or leave it out", node.Seconds)})
	default:
		r.maxRuntime = node.Seconds
	}
	return faults
}

// beyond gives a fault for each need that a node does not meet.
func (r resources) beyond(needs Resources, node Node, where string) (faults []FieldError) {
	if needs.CPUs > node.CPUs {
		faults = append(faults, r.cpus.tooMuch(where, fmt.Sprintf("%d CPUs of %d", needs.CPUs, node.CPUs)))
	}
	if needs.MemoryBytes > node.MemoryBytes {
		faults = append(faults, r.memory.tooMuch(where, fmt.Sprintf("%s of memory of %s", Bytes(needs.MemoryBytes), Bytes(node.MemoryBytes))))
	}
	if needs.GPUs > node.GPUs {
		faults = append(faults, r.gpus.tooMuch(where, fmt.Sprintf("%d GPUs of %d", needs.GPUs, node.GPUs)))
	}
	return faults
}
