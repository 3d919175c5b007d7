package runner

import (
	"maps"
	"testing"

	"molrun/app"
)

// reasonsOnly takes the reasons why jobs wait.
type reasonsOnly struct {
	Jobs
	published map[app.JobID]string
}

func (r *reasonsOnly) SetWaitReasons(reasons map[app.JobID]string) { r.published = reasons }

// TestReasonsOfJobsThatStartAreNotThoseOfTheQueue publishes what one executor said
// before it started two of its jobs.
func TestReasonsOfJobsThatStartAreNotThoseOfTheQueue(t *testing.T) {
	jobs := &reasonsOnly{}
	r := &Runner{
		core: core{jobs: jobs},
		executors: []*executor{
			{reasons: map[app.JobID]string{"waits": "no CPU is free", "starts": "no CPU is free", "held": "no CPU is free"}},
			{reasons: map[app.JobID]string{"elsewhere": "the cluster is full"}},
		},
		active: map[app.JobID]*attempt{"starts": {}, "held": {reason: "the cluster holds it"}},
	}
	r.publishReasons()
	want := map[app.JobID]string{"waits": "no CPU is free", "held": "the cluster holds it", "elsewhere": "the cluster is full"}
	if !maps.Equal(jobs.published, want) {
		t.Errorf("published %v, want %v", jobs.published, want)
	}
}
