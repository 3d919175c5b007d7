package app_test

import (
	"fmt"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

// timedFile is an algorithm that computes the time limit of its jobs.
const timedFile = `
format = 1
type = "echo"
version = "1"
max_runtime = { seconds = "60 + 10 * settings.steps", most = "10m" }
command = ["true"]

[[parameters]]
name = "steps"
type = "integer"
default = 1
`

func TestTimeLimitsAreComputedForEachJob(t *testing.T) {
	s := newSite(t)
	s.Service = s.WithOptions(s.Store, app.Options{}, timedFile)
	want := func(name string, seconds int64) {
		t.Helper()
		must.Equal(t, fmt.Sprintf("how long %s may run", name), s.job(ann, name).MaxRuntime, seconds)
	}
	s.submit(ann, "short", `{}`)
	want("short", 70)
	s.submit(ann, "long", `{"steps":500}`)
	want("long", 600)
	s.submitBatch(ann, "b", `{"steps":2}`, `{"steps":3}`)
	want("b-1", 80)
	want("b-2", 90)
	s.submitPipeline("p", app.PipelineJob{Name: "x", Type: "echo", Settings: parseJSON(t, `{"steps":4}`)}, app.PipelineJob{Name: "y", Type: "echo", MaxRuntime: 500})
	want("x", 100)
	want("y", 500)
	asks := submission(t, "asks", `{}`)
	asks.MaxRuntime = 601
	must.Equal(t, "more than the most", faultLocations(t, must.Error3(s.Jobs.Submit(t.Context(), ann, asks))), []string{"[body maxRuntimeSeconds]"})
}
