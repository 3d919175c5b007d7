package algorithm

import (
	"molrun/app/algorithm/results"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
)

// Output is an entry of [[outputs]].
type Output = results.Output

// OutputOf returns the output named by a reference to a job of algorithm a. The error has
// code Invalid if there is no such output, or if a is nil.
func OutputOf(a *File, r naming.Reference) (*Output, error) {
	switch {
	case a == nil:
		return nil, fault.Errorf(fault.Invalid, "the outputs of job %q are unknown, because it has no algorithm", r.Job)
	case len(a.Outputs) == 0:
		return nil, fault.Errorf(fault.Invalid, "%s %s, the algorithm of job %q, declares no outputs: name a file, as in job:%s/<path>", a.Type, a.Version, r.Job, r.Job)
	}
	o := a.Outputs.Named(r.Output)
	if o == nil {
		return nil, fault.Errorf(fault.Invalid, "%s %s, the algorithm of job %q, has no output %q; it has %s", a.Type, a.Version, r.Job, r.Output, a.Outputs.Names())
	}
	return o, nil
}
