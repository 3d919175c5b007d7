package app_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// pipelineOf returns a pipeline as package web decodes it from a request body.
func pipelineOf(t *testing.T, name string, jobs ...app.PipelineJob) app.Pipeline {
	t.Helper()
	var p app.Pipeline
	for i := range jobs {
		if jobs[i].Settings == nil {
			jobs[i].Settings = parseJSON(t, `{}`)
		}
	}
	p.Name, p.Jobs = name, jobs
	p.Body = parseJSON(t, fmt.Sprintf(`{"batchName":%q,"jobs":%d}`, name, bodies.Add(1)))
	return p
}

func pipelineStep(name string, after ...string) app.PipelineJob {
	return app.PipelineJob{Name: name, Type: "echo", After: &app.After{Names: after}}
}

func (s *site) submitPipeline(name string, jobs ...app.PipelineJob) shownJob {
	s.t.Helper()
	rec, created, err := s.Jobs.SubmitPipeline(s.t.Context(), ann, pipelineOf(s.t, name, jobs...))
	must.OK(s.t, err)
	if !created {
		s.t.Fatalf("pipeline %q existed already", name)
	}
	return decode(s.t, rec)
}

func TestPipelineRunsInItsOrder(t *testing.T) {
	s := newSite(t, greedyFile)
	p := s.submitPipeline("p",
		pipelineStep("report", "run-1", "run-2"), // refers to later jobs
		pipelineStep("run-1", "prep"),
		app.PipelineJob{Name: "run-2", Type: "greedy", After: &app.After{Names: []string{"prep"}}, MaxRuntime: 60},
		pipelineStep("prep"),
	)
	if p.Type != "" || p.Version != "" || p.Counts.Queued != 4 || p.Executor != "local" {
		t.Errorf("the batch is %+v", p.Job)
	}
	rec, err := s.Jobs.Get(t.Context(), ann, "p", 0)
	if must.OK(t, err); !strings.Contains(string(rec), `"type":"","version":""`) {
		t.Errorf("its record is %s", rec)
	}
	must.Equal(t, "the queue", s.queued(), []string{"prep"})
	s.Run(s.job(ann, "prep").ID, success())
	must.Equal(t, "the queue", s.queued(), []string{"run-1", "run-2"})
	if j := s.job(ann, "run-2"); j.Type != "greedy" || j.MaxRuntime != 60 || j.Batch != "p" {
		t.Errorf("a row is %+v", j.Job)
	}
	s.Run(s.job(ann, "run-1").ID, failure())
	s.Run(s.job(ann, "run-2").ID, success())
	s.wantStandings("a row failed", map[string]string{"report": "FAILED DEPENDENCY_FAILED", "p": "FAILED 2 of 4 jobs failed"})
	s.retry(ann, "p")
	s.Run(s.job(ann, "run-1").ID, success())
	s.Run(s.job(ann, "report").ID, success())
	s.wantStandings("in the end", map[string]string{"p": "COMPLETED"})
}

func TestPipelineOfOneTypeHasIt(t *testing.T) {
	s := newSite(t)
	if p := s.submitPipeline("p", pipelineStep("a"), pipelineStep("")); p.Type != "echo" || p.Version != "1" {
		t.Errorf("the batch is %+v", p.Job)
	}
	s.job(ann, "p-2") // default name from its number
}

func TestRowsWithoutAfterTakeThatOfTheBatch(t *testing.T) {
	s := newSite(t)
	s.submit(ann, "before", `{}`)
	own := int64(-2)
	p := pipelineOf(t, "p", app.PipelineJob{Name: "a", Type: "echo"}, pipelineStep("b"),
		app.PipelineJob{Name: "c", Type: "echo", After: &app.After{Names: []string{"a"}, Any: true}, Priority: &own})
	p.After, p.Priority, p.MaxRuntime = app.After{Names: []string{"before"}}, -1, 100
	rec, _, err := s.Jobs.SubmitPipeline(t.Context(), ann, p)
	must.OK(t, err)
	must.Equal(t, "the batch", decode(t, rec).After, []string{"before"})
	s.wantStandings("at first", map[string]string{"a": `QUEUED waiting for job "before"`, "b": "QUEUED", "c": `QUEUED waiting for job "a"`})
	if a, c := s.job(ann, "a"), s.job(ann, "c"); a.Priority != -1 || c.Priority != -2 || a.MaxRuntime != 100 || !c.AfterAny {
		t.Errorf("rows are %+v and %+v", a.Job, c.Job)
	}
}

func TestFaultsOfAPipelineNameTheirJob(t *testing.T) {
	s := newSite(t, greedyFile)
	s.submit(ann, "there", `{}`)
	bad := func(settings string) app.PipelineJob {
		return app.PipelineJob{Type: "echo", Settings: parseJSON(t, settings)}
	}
	high := int64(5)
	for _, tt := range []struct {
		name string
		jobs []app.PipelineJob
		want []string
	}{
		{"types and settings", []app.PipelineJob{
			{Type: "none"}, bad(`{"steps":0}`), {Type: "greedy", Settings: parseJSON(t, `{"cores":99}`)}, {Type: "none"}, bad(`{"steps":0}`),
		}, []string{
			"[body jobs 0 type]", "[body jobs 3 type]", "[body jobs 1 settings steps]", "[body jobs 4 settings steps]", "[body jobs 2 settings cores]",
		}},
		{
			"names",
			[]app.PipelineJob{pipelineStep("a/b"), pipelineStep("p"), pipelineStep("x"), pipelineStep("x")},
			[]string{"[body jobs 0 jobName]", "[body jobs 1 jobName]", "[body jobs 3 jobName]"},
		},
		{
			"what they wait for",
			[]app.PipelineJob{pipelineStep("x", "none", "x", "there"), pipelineStep("y", "x", "x", "p")},
			[]string{"[body jobs 0 after 0]", "[body jobs 0 after 1]", "[body jobs 1 after 1]", "[body jobs 1 after 2]"},
		},
		{
			"other members",
			[]app.PipelineJob{{Type: "echo", Priority: &high, Version: "2"}, {Type: "echo", MaxRuntime: 1 << 40}},
			[]string{"[body jobs 0 version]", "[body jobs 0 priority]", "[body jobs 1 maxRuntimeSeconds]"},
		},
		{
			"a circle",
			[]app.PipelineJob{pipelineStep("a", "there"), pipelineStep("b", "c"), pipelineStep("c", "d"), pipelineStep("d", "b")},
			[]string{"[body jobs 1]"},
		},
		{
			"a cycle of files",
			[]app.PipelineJob{{Name: "a", Type: "echo", Settings: parseJSON(t, `{"input":"job:b/x.txt"}`)}, pipelineStep("b", "a")},
			[]string{"[body jobs 0]"},
		},
		{
			"files",
			[]app.PipelineJob{bad(`{"input":"job:there"}`), bad(`{"input":"job:there/x.pdb"}`), bad(`{"input":"job:p-1/../x.txt"}`), bad(`{"input":"job:p/x.txt"}`)},
			[]string{"[body jobs 0 settings input]", "[body jobs 1 settings input]", "[body jobs 2 settings input]", "[body jobs 3 settings input]"},
		},
		{"none", nil, []string{"[body jobs]"}},
	} {
		must.Equal(t, tt.name, faultLocations(t, must.Error3(s.Jobs.SubmitPipeline(t.Context(), ann, pipelineOf(t, "p", tt.jobs...)))), tt.want)
	}
	wantCode(t, "after faults", must.Error2(s.Jobs.Get(t.Context(), ann, "p", 0)), fault.NotFound)
}

func TestCircleIsSpelledOut(t *testing.T) {
	s := newSite(t)
	_, _, err := s.Jobs.SubmitPipeline(t.Context(), ann, pipelineOf(t, "p", pipelineStep("b", "c"), pipelineStep("c", "b")))
	must.Fail(t, "the error", err, `"b", for "c", for "b"`)
	var long []app.PipelineJob
	for i := range 500 {
		long = append(long, pipelineStep(fmt.Sprint("n", i), fmt.Sprint("n", (i+1)%500)))
	}
	_, _, err = s.Jobs.SubmitPipeline(t.Context(), ann, pipelineOf(t, "p", long...))
	if err == nil || len(err.Error()) > 400 {
		t.Errorf("%v, want it to be short", err)
	}
}

func TestPipelineMayNotWaitForTooManyInAll(t *testing.T) {
	s := newSite(t)
	var names []string
	var jobs []app.PipelineJob
	for i := range app.MaxAfter {
		names = append(names, fmt.Sprint("first-", i))
		jobs = append(jobs, pipelineStep(names[i]))
	}
	for range 500 {
		jobs = append(jobs, pipelineStep("", names...))
	}
	planner := s.Jobs.Planner()
	must.OK(t, must.Error2(planner.Pipeline(t.Context(), ann, pipelineOf(t, "p", jobs...))))
	must.Equal(t, "one too many", faultLocations(t, must.Error2(planner.Pipeline(t.Context(), ann, pipelineOf(t, "p", append(jobs, pipelineStep("one", "first-0"))...)))), []string{"[body jobs]"})
}

func TestSamePipelineIsNotSubmittedTwice(t *testing.T) {
	s := newSite(t)
	jobs := func() []app.PipelineJob {
		return []app.PipelineJob{pipelineStep("a"), pipelineStep("b"), {Name: "c", Type: "echo", Settings: parseJSON(t, `{"input":"job:a/x.txt"}`), After: &app.After{Names: []string{"a", "b"}}}}
	}
	first := s.submitPipeline("p", jobs()...)
	for name, change := range map[string]func([]app.PipelineJob){
		"":                   func([]app.PipelineJob) {},
		"the order of names": func(j []app.PipelineJob) { j[2].After.Names = []string{"b", "a"} },
		"a default":          func(j []app.PipelineJob) { j[0].Settings = parseJSON(t, `{"steps":10}`) },
	} {
		rec, created, err := s.Jobs.SubmitPipeline(t.Context(), ann, pipelineOf(t, "p", apply(jobs(), change)...))
		if err != nil || created || decode(t, rec).ID != first.ID {
			t.Errorf("with another %q: %v, created %v", name, err, created)
		}
	}
	own := int64(-1)
	for name, change := range map[string]func([]app.PipelineJob){
		"settings": func(j []app.PipelineJob) { j[0].Settings = parseJSON(t, `{"steps":11}`) },
		"after":    func(j []app.PipelineJob) { j[2].After.Names = []string{"a"} },
		"any":      func(j []app.PipelineJob) { j[2].After.Any = true },
		"name":     func(j []app.PipelineJob) { j[2].Name = "d" },
		"priority": func(j []app.PipelineJob) { j[1].Priority = &own },
		"time":     func(j []app.PipelineJob) { j[1].MaxRuntime = 5 },
	} {
		wantCode(t, "another "+name, must.Error3(s.Jobs.SubmitPipeline(t.Context(), ann, pipelineOf(t, "p", apply(jobs(), change)...))), fault.JobAlreadyExists)
	}
	wantCode(t, "a batch of that name", must.Error3(s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "p", `{}`, `{}`, `{}`))), fault.JobAlreadyExists)
}

func apply(jobs []app.PipelineJob, change func([]app.PipelineJob)) []app.PipelineJob {
	change(jobs)
	return jobs
}

// bodies numbers pipelines so that no two have the same body.
var bodies atomic.Int64

// makes completes a job with a single file in its result.
func (s *site) makes(name, file string, size int) {
	s.t.Helper()
	s.Complete(s.job(chief, name).ID, map[string]string{file: strings.Repeat("t", size)})
}

func TestFilesOfUnfinishedJobsAreFoundAtTheStart(t *testing.T) {
	s := newSite(t)
	s.submit(bob, "source", `{}`)
	j := s.submit(ann, "reader", `{"input":"job:source/a.txt"}`)
	must.Equal(t, "inputs", j.Inputs, []app.Input{{Setting: "input", Job: "source", Path: "a.txt", Filename: "a.txt"}})
	s.submit(ann, "misled", `{"input":"job:source/b.txt"}`)
	batch := s.submitBatch(ann, "rows", `{"input":"job:source/a.txt"}`, `{"input":"job:rows-1/c.txt"}`)
	s.wantStandings("at first", map[string]string{"reader": `QUEUED waiting for job "source"`, "rows-2": `QUEUED waiting for job "rows-1"`})
	s.makes("source", "a.txt", 7)
	must.Equal(t, "the queue", s.queued(), []string{"reader", "misled", "rows-1"})
	wantCode(t, "delete a job that is still read", s.Jobs.Delete(t.Context(), bob, "source"), fault.FileInUse)

	claimed, _, err := s.Runs.Claim(t.Context(), j.ID, placement.Devices{}, app.ClaimLimit{})
	must.OK(t, err)
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte("ttttttt")))
	for range 2 { // repeated, as after a crash
		failure, err := s.Runs.ResolveInputs(t.Context(), claimed)
		if failure != nil || err != nil {
			t.Fatal(failure, err)
		}
		for what, found := range map[string]*app.Job{"as returned": claimed, "as stored": s.storedJob(j.ID)} {
			ref := found.Private.References[0]
			if found.Inputs[0].SHA256 != digest || ref.Path != "result/a.txt" || ref.Size != 7 || ref.Pending {
				t.Errorf("%s: %+v %+v", what, found.Inputs, ref)
			}
		}
	}
	misled, _, err := s.Runs.Claim(t.Context(), s.job(ann, "misled").ID, placement.Devices{}, app.ClaimLimit{})
	must.OK(t, err)
	failure, err := s.Runs.ResolveInputs(t.Context(), misled)
	if err != nil || failure == nil || failure.Code != app.FailedInput || !strings.Contains(failure.Message, `has no file "b.txt"`) {
		t.Errorf("%+v, %v, want the missing file", failure, err)
	}
	s.makes("rows-1", "c.txt", 1)
	must.Equal(t, "the queue", s.queued(), []string{"rows-2"})
	must.Equal(t, "rows queued at first", batch.Counts.Queued, 2)
}

func TestFilesOfFailedJobsAndBatchesAreRefused(t *testing.T) {
	s := newSite(t)
	s.Run(s.submit(ann, "failed", `{}`).ID, failure())
	s.submitBatch(ann, "rows", `{}`)
	for _, name := range []string{"failed", "rows", "self"} {
		must.Equal(t, name, faultLocations(t, must.Error3(s.Jobs.Submit(t.Context(), ann, submission(t, "self", fmt.Sprintf(`{"input":"job:%s/a.txt"}`, name))))), []string{"[body settings input]"})
	}
	must.Equal(t, "rows that read one another", faultLocations(t, must.Error3(s.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "round", `{"input":"job:round-2/a.txt"}`, `{"input":"job:round-1/a.txt"}`)))), []string{"[body settings 0]"})
}

// A job whose file is read must be COMPLETED, even if the reader's After only requires
// that it has finished.
func TestReadersWaitForSuccessWhateverElseTheyWaitFor(t *testing.T) {
	s := newSite(t)
	sub := submission(t, "reader", `{"input":"job:source/a.txt"}`)
	sub.After = app.After{Names: []string{"source"}, Any: true}
	row := app.PipelineJob{Name: "row", Type: "echo", Settings: sub.Settings, After: &sub.After}
	s.submitPipeline("p", pipelineStep("source"), row)
	must.OK(t, must.Error3(s.Jobs.Submit(t.Context(), ann, sub)))
	s.Run(s.job(ann, "source").ID, failure())
	s.wantStandings("the source failed", map[string]string{"reader": "FAILED DEPENDENCY_FAILED", "row": "FAILED DEPENDENCY_FAILED"})
}

// checkedFile is an algorithm whose validator rejects files that contain an x.
const checkedFile = `
format = 1
type = "checked"
version = "1"
title = "Check a file"
command = ["true"]

[[parameters]]
name = "input"
file = [".txt"]

[validate]
command = ["/bin/sh", "-c", '''if grep -q x "$1"; then echo '[{{"loc":["input"],"msg":"leave out every x","type":"value"}}]'; else echo '[]'; fi''', "check", { if = "settings.input", args = ["{files.input}"] }]
`

func TestSettingsAreCheckedWithTheFilesOfOtherJobs(t *testing.T) {
	s := newSite(t, checkedFile)
	for _, tt := range []struct{ name, text, want string }{
		{"good", "abc", ""},
		{"bad", "abxc", "input: leave out every x"},
	} {
		source := s.submit(ann, "source-"+tt.name, `{}`)
		rec, _, err := s.Jobs.Submit(t.Context(), ann, submissionOf(t, "checked", tt.name, fmt.Sprintf(`{"input":"job:source-%s/a.txt"}`, tt.name)))
		must.OK(t, err)
		s.Complete(source.ID, map[string]string{"a.txt": tt.text})
		j, _, err := s.Runs.Claim(t.Context(), decode(t, rec).ID, placement.Devices{}, app.ClaimLimit{})
		must.OK(t, err)
		failure, err := s.Runs.ResolveInputs(t.Context(), j)
		must.OK(t, err)
		switch {
		case tt.want == "" && failure != nil:
			t.Errorf("%s: %+v", tt.name, failure)
		case tt.want != "" && (failure == nil || failure.Code != app.FailedInvalid || !strings.Contains(failure.Message, tt.want)):
			t.Errorf("%s: %+v, want %q", tt.name, failure, tt.want)
		}
	}
}

func TestRetriedRowsFallWithARowThatCannotBeTriedAgain(t *testing.T) {
	s := newSite(t)
	outside := s.submit(ann, "outside", `{}`)
	s.submitPipeline("p", pipelineStep("last", "middle"), pipelineStep("middle", "outside"), pipelineStep("other"))
	s.Run(outside.ID, failure())
	s.Run(s.job(ann, "other").ID, failure())
	s.retry(ann, "p")
	s.wantStandings("tried again", map[string]string{"last": "FAILED DEPENDENCY_FAILED", "middle": "FAILED DEPENDENCY_FAILED", "other": "QUEUED"})
	s.retry(ann, "outside")
	s.wantStandings("outside too", map[string]string{"last": `QUEUED waiting for job "middle"`, "middle": `QUEUED waiting for job "outside"`})
}
