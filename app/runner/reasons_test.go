package runner

import (
	"maps"
	"testing"

	"molrun/app"
	"molrun/app/job/eta"
)

// reasonsOnly accepts the published wait reasons.
type reasonsOnly struct {
	Jobs
	published map[app.JobID]eta.Reason
}

func (r *reasonsOnly) SetWaitReasons(reasons map[app.JobID]eta.Reason) { r.published = reasons }

// TestReasonsOfJobsThatStartAreNotThoseOfTheQueue publishes an executor's reasons from
// before it started two of its jobs.
func TestReasonsOfJobsThatStartAreNotThoseOfTheQueue(t *testing.T) {
	jobs := &reasonsOnly{}
	noCPU := eta.Reason{Text: "no CPU is free", By: eta.CPU}
	full := eta.Reason{Text: "the cluster is full", By: eta.Slurm}
	held := eta.Reason{Text: "the cluster holds it", By: eta.Slurm}
	r := &Runner{
		core: core{jobs: jobs},
		executors: []*executor{
			{reasons: map[app.JobID]eta.Reason{"waits": noCPU, "starts": noCPU, "held": noCPU}},
			{reasons: map[app.JobID]eta.Reason{"elsewhere": full}},
		},
		active: map[app.JobID]*attempt{"starts": {}, "held": {reason: held}},
	}
	r.publishReasons()
	want := map[app.JobID]eta.Reason{"waits": noCPU, "held": held, "elsewhere": full}
	if !maps.Equal(jobs.published, want) {
		t.Errorf("published %v, want %v", jobs.published, want)
	}
}
