package app

import (
	"strings"

	"molrun/app/base/fault"
)

// checkRepeat returns nil if other requests the same work as j: its body or its meaning
// is the same. Otherwise it returns an error that names the differences.
func (j *Job) checkRepeat(other *Job) error {
	if j.Private.Sent == other.Private.Sent {
		return nil
	}
	name := "jobName"
	if other.IsBatch() {
		name = "batchName"
	}
	switch {
	case j.Private.Batch != "":
		return fault.Errorf(fault.JobAlreadyExists, "job %q already exists in batch %q; choose another %s", j.Name, j.Batch, name)
	case j.IsBatch() && !other.IsBatch():
		return fault.Errorf(fault.JobAlreadyExists, "%q already exists as a batch; choose another %s", j.Name, name)
	case !j.IsBatch() && other.IsBatch():
		return fault.Errorf(fault.JobAlreadyExists, "%q already exists as a single job; choose another %s", j.Name, name)
	}
	if members := j.differences(other); len(members) > 0 {
		return fault.Errorf(fault.JobAlreadyExists, "job %q already exists and differs in %s; choose another %s, or send the original submission again to get that job",
			j.Name, strings.Join(members, " and "), name)
	}
	return nil
}

// differences names the members of a submission in which two jobs, or two batches, differ
// in meaning.
func (j *Job) differences(other *Job) (members []string) {
	switch {
	case j.Private.Meaning == other.Private.Meaning:
	case j.Type != other.Type:
		members = append(members, "type")
	case j.Version != other.Version:
		members = append(members, "version")
	case j.IsBatch():
		members = append(members, "settings or jobNames")
	default:
		members = append(members, "settings")
	}
	if j.Priority != other.Priority {
		members = append(members, "priority")
	}
	if !sameAfter(j, other) {
		members = append(members, "after")
	}
	// Two jobs that both use the algorithm's limit are equal even if that limit has
	// changed.
	if j.MaxRuntime != other.MaxRuntime && (j.Private.SetsMaxRuntime || other.Private.SetsMaxRuntime) {
		members = append(members, "maxRuntimeSeconds")
	}
	return members
}
