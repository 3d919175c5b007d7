package web_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestJobsThatWaitForOthers(t *testing.T) {
	s := start(t)
	s.submit("prep")
	f := s.want(200, "POST", "/submit-job", `{"jobName":"run","type":"echo","settings":{},"after":["prep"]}`).fields(t)
	same(t, "run", fmt.Sprint(f["status"], " ", f["statusReason"], " ", f["after"]), `QUEUED waiting for job "prep" [prep]`)
	s.want(200, "POST", "/submit-job", `{"jobName":"report","type":"echo","settings":{},"after":["run"],"afterAny":true}`)
	s.want(200, "POST", "/submit-batch", `{"batchName":"more","type":"echo","settings":[{},{}],"after":["prep","run"]}`).has(t, `"after":["prep","run"]`)
	s.want(200, "GET", "/jobs/more-2", "").has(t, `"after":["prep","run"]`)
	s.want(200, "GET", "/jobs", "").has(t, `"after":["run"],"afterAny":true`, `waiting for job \"prep\"`)

	same(t, "waiting dependents", s.want(200, "POST", "/jobs/run/cancel", `{"cascade":false}`).fields(t)["dependants"], float64(0))
	s.refused(s.ann, 409, "FILE_IN_USE", "DELETE", "/jobs/run", "")
	same(t, "failed dependents", s.want(200, "POST", "/jobs/prep/cancel", "").fields(t)["dependants"], float64(2))
	s.want(200, "GET", "/jobs/more-1", "").has(t, `"code":"DEPENDENCY_FAILED"`)
	s.refused(s.ann, 409, "DEPENDENCY_FAILED", "POST", "/jobs/more/retry", "")
}

func TestDependants(t *testing.T) {
	s := start(t)
	of := func(name string) string {
		f := s.as(s.bob, "GET", "/jobs/"+name+"/dependants", "").fields(t)
		var all []string
		for _, j := range f["jobs"].([]any) {
			j := j.(map[string]any)
			all = append(all, strings.Trim(fmt.Sprint(j["jobName"], " ", j["status"], " ", j["rows"]), " <nil>"))
		}
		return strings.Join(all, ", ")
	}
	s.submit("prep")
	same(t, "of nothing yet", s.want(200, "GET", "/jobs/prep/dependants", "").body, `{"jobs":[],"more":false}`+"\n")
	s.want(200, "POST", "/submit-job", `{"jobName":"waits","type":"echo","settings":{},"after":["prep"]}`)
	s.want(200, "POST", "/submit-job", `{"jobName":"reads","type":"echo","settings":{"structure":"job:prep/a.pdb"},"after":["prep"]}`)
	s.want(200, "POST", "/submit-job", `{"jobName":"any","type":"echo","settings":{},"after":["prep"],"afterAny":true}`)
	s.want(200, "POST", "/submit-batch", `{"batchName":"many","type":"echo","settings":[{"structure":"job:prep/a.pdb"},{"steps":2,"structure":"job:prep/a.pdb"},{}]}`)
	same(t, "that wait", of("prep"), "many QUEUED 2, any QUEUED, reads QUEUED, waits QUEUED")
	s.want(200, "POST", "/jobs/prep/cancel", "")
	same(t, "that fell", of("prep"), "many QUEUED 2, reads FAILED, waits FAILED")
	s.want(200, "POST", "/jobs/prep/retry", "")
	s.run("prep", map[string]string{"a.pdb": "ATOM"})
	same(t, "that read its result", of("prep"), "many QUEUED 2, reads QUEUED")

	s.want(200, "POST", "/submit-batch", `{"batchName":"p","jobs":[{"jobName":"one","type":"echo","settings":{}},{"jobName":"two","type":"echo","settings":{"structure":"job:one/a.pdb"}}]}`)
	s.want(200, "POST", "/submit-job", `{"jobName":"reads-a-row","type":"echo","settings":{"structure":"job:one/a.pdb"}}`)
	s.want(200, "POST", "/submit-job", `{"jobName":"waits-for-all","type":"echo","settings":{},"after":["p"]}`)
	s.want(200, "POST", "/submit-batch", `{"batchName":"q","jobs":[{"jobName":"three","type":"echo","settings":{"structure":"job:two/a.pdb"}}]}`)
	same(t, "of a row", of("one"), "reads-a-row QUEUED, two QUEUED")
	same(t, "of a batch", of("p"), "q QUEUED 1, waits-for-all QUEUED, reads-a-row QUEUED")

	s.want(404, "GET", "/jobs/absent/dependants", "")
	s.wantAs(s.eve, 404, "GET", "/jobs/prep/dependants", "")
	for i := range 120 {
		s.want(200, "POST", "/submit-job", fmt.Sprintf(`{"jobName":"more-%d","type":"echo","settings":{"structure":"job:prep/a.pdb","steps":%d}}`, i, i+1))
	}
	f := s.want(200, "GET", "/jobs/prep/dependants", "").fields(t)
	same(t, "the newest of many", []any{len(f["jobs"].([]any)), f["more"]}, []any{100, true})
}

func TestPipelineInOneRequest(t *testing.T) {
	s := start(t)
	const body = `{"batchName":"p","priority":-1,"tags":{"kind":"study"},"jobs":[
		{"jobName":"report","type":"echo","settings":{"structure":"job:run/a.pdb"},"after":["prep","run"]},
		{"jobName":"prep","type":"echo","settings":{}},
		{"jobName":"run","type":"echo","settings":{},"after":["prep"],"priority":-2,"maxRuntimeSeconds":60,"afterAny":false}]}`
	p := s.want(200, "POST", "/submit-batch", body).fields(t)
	same(t, "created", p["created"], true)
	same(t, "created again", s.want(200, "POST", "/submit-batch", body).fields(t)["created"], false)
	report := s.want(200, "GET", "/jobs/report", "").fields(t)
	same(t, "report", report["statusReason"], `waiting for job "run" and 1 more`)
	same(t, "its input", fmt.Sprint(report["inputs"]), "[map[filename:a.pdb job:run path:a.pdb setting:structure]]")
	s.run("prep", map[string]string{"out.txt": "text"})
	s.run("run", map[string]string{"a.pdb": "ATOM"})
	s.run("report", map[string]string{"out.txt": "text"})
	same(t, "the batch", s.want(200, "GET", "/jobs/p?wait=0s", "").fields(t)["status"], "COMPLETED")
	same(t, "its tags", p["tags"], any(map[string]any{"kind": "study"}))
	s.want(200, "GET", "/jobs/summary", "")
}

func TestFaultsOfAPipeline(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		members string
		faults  []string
	}{
		{`"jobs":[{"type":"echo","settings":{}},{"settings":[]},7]`, []string{"body.jobs.2 type", "body.jobs.1.type missing", "body.jobs.1.settings type"}},
		{
			`"type":"echo","settings":[{}],"jobNames":["a"],"version":"1","jobs":[{"type":"echo","settings":{}}]`,
			[]string{"body.type value", "body.version value", "body.settings value", "body.jobNames value"},
		},
		{`"jobs":[{"type":"echo","settings":{},"aftr":["x"],"after":[1]}]`, []string{"body.jobs.0.after.0 type", "body.jobs.0.aftr unknown"}},
		{`"tags":{"x":""},"jobs":[{"type":"echo","settings":{}}]`, []string{"body.tags.x value"}},
		{`"jobs":[]`, []string{"body.jobs value"}},
		{`"jobs":{}`, []string{"body.jobs type"}},
		{`"jobs":null`, []string{"body.type missing", "body.settings missing"}},
	} {
		same(t, tt.members, s.want(422, "POST", "/submit-batch", `{"batchName":"p",`+tt.members+`}`).faults(t), tt.faults)
	}
}

func TestFaultsOfAfter(t *testing.T) {
	s := start(t)
	s.submit("a")
	many := `["` + strings.Repeat(`a","`, 100) + `a"]`
	for _, tt := range []struct {
		members string
		faults  []string
	}{
		{`"after":["none","a","n","a"]`, []string{"body.after.0 unknown", "body.after.2 value", "body.after.3 value"}},
		{`"after":[7,"none"]`, []string{"body.after.0 type"}},
		{`"after":"a"`, []string{"body.after type"}},
		{`"after":` + many, []string{"body.after value"}},
		{`"afterAny":"yes","aftr":[]`, []string{"body.afterAny type", "body.aftr unknown"}},
		{`"after":[""]`, []string{"body.after.0 unknown"}},
	} {
		body := `{"jobName":"n","type":"echo","settings":{},` + tt.members + `}`
		same(t, tt.members, s.want(422, "POST", "/submit-job", body).faults(t), tt.faults)
		valid := s.want(200, "POST", "/validate-job", body).fields(t)
		same(t, "faults of a validation", len(valid["detail"].([]any)), len(tt.faults))
	}
	same(t, "of a batch", s.want(422, "POST", "/submit-batch", `{"batchName":"n","type":"echo","settings":[{}],"after":["n","n-1"]}`).faults(t),
		[]string{"body.after.0 value", "body.after.1 unknown"})
	same(t, "of a cancel", s.want(422, "POST", "/jobs/a/cancel", `{"cascade":1,"all":true}`).faults(t), []string{"body.cascade type", "body.all unknown"})
	s.want(200, "POST", "/submit-job", `{"jobName":"n","type":"echo","settings":{},"after":[],"afterAny":null}`)
	s.want(200, "POST", "/submit-job", `{"jobName":"n","type":"echo","settings":{},"after":null,"afterAny":true}`)
}
