package web_test

import (
	"testing"
)

func TestEstimateChecksAsASubmissionAndQueuesNothing(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		name, body string
		jobs       float64
		faults     []string
	}{
		{"a job", `{"jobName":"a","type":"echo","settings":{}}`, 1, []string{}},
		{"again", `{"jobName":"a","type":"echo","settings":{}}`, 1, []string{}},
		{"a batch", `{"batchName":"b","type":"echo","settings":[{},{"steps":2}]}`, 2, []string{}},
		{"a pipeline", `{"batchName":"p","jobs":[{"jobName":"x","type":"echo","settings":{}},{"jobName":"y","type":"echo","settings":{},"after":["x"]}]}`, 2, []string{}},
		{"a fault", `{"jobName":"a","type":"echo","settings":{"steps":"many"}}`, 0, []string{"body.settings.steps type"}},
		{"faults of rows", `{"batchName":"b","type":"echo","settings":[{},{"steps":"many"}],"x":1}`, 0, []string{"body.x unknown", "body.settings.1.steps type"}},
		{"an unknown type", `{"jobName":"a","type":"none","settings":{}}`, 0, []string{"body.type unknown"}},
		{"nothing", `{}`, 0, []string{"body.jobName missing", "body.type missing", "body.settings missing"}},
	} {
		a := s.want(200, "POST", "/estimate", tt.body)
		f := a.fields(t)
		if f["possible"] != (len(tt.faults) == 0) || f["jobs"] != tt.jobs && tt.jobs > 0 {
			t.Errorf("%s: %s", tt.name, a.body)
		}
		same(t, tt.name, a.faults(t), tt.faults)
	}
	one := s.want(200, "POST", "/estimate", `{"batchName":"b","type":"echo","settings":[{},{}]}`).body
	contains(t, one, `"slots":[{"executor":"local","cpus":1,"memoryBytes":`, `"gpus":0,"jobs":2}]`)
	same(t, "jobs were queued", s.want(200, "GET", "/jobs?count=true", "").fields(t)["count"], 0.0)
	s.want(422, "POST", "/estimate", `[]`)
	s.want(422, "POST", "/estimate", ``)
}

func TestEstimateOfJobsThatWaitForOthers(t *testing.T) {
	s := start(t)
	s.submit("prep")
	f := s.want(200, "POST", "/estimate", `{"jobName":"a","type":"echo","settings":{},"after":["prep"]}`).fields(t)
	same(t, "queue", f["queue"], any(map[string]any{"blockedBy": "dependency"}))
}
