package runner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/strictjson"
	"molrun/app/test/must"
)

// pipeline submits jobs of a batch, given as name, settings and dependencies.
func (w *world) pipeline(name string, jobs ...[3]string) {
	w.t.Helper()
	var p app.Pipeline
	p.Name = name
	for _, j := range jobs {
		settings, err := strictjson.Parse([]byte(j[1]))
		must.OK(w.t, err)
		p.Jobs = append(p.Jobs, app.PipelineJob{Name: j[0], Type: "sim", Settings: settings, After: &app.After{Names: strings.Fields(j[2])}})
	}
	var err error
	p.Body, err = strictjson.Parse(fmt.Appendf(nil, `{"batchName":%q}`, name))
	must.OK(w.t, err)
	_, _, err = w.Jobs.SubmitPipeline(w.t.Context(), ann, p)
	must.OK(w.t, err)
}

func TestPipelineOfThreeStages(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(name string, _ int) script {
			return script{runs: time.Minute, cause: app.CauseDone, out: map[string]string{"made.fasta": "by " + name}}
		})
		jobs := [][3]string{{"last", "{}", ""}, {"first", "{}", ""}}
		for i := range 50 {
			name := fmt.Sprint("run-", i)
			jobs = append(jobs, [3]string{name, `{"sequence":"job:first/made.fasta"}`, ""})
			jobs[0][2] += " " + name
		}
		w.pipeline("p", jobs...)
		stop := w.start()
		w.until("run-7", app.Running, app.Completed)
		stop()
		w.start()
		if r := w.finished("p"); r.Status != app.Completed || r.Counts.Completed != 52 {
			t.Fatalf("the pipeline ended as %+v", r.Job)
		}
		first, last := w.job("first"), w.job("last")
		for i := range 50 {
			r := w.job(fmt.Sprint("run-", i))
			if r.StartedAt.Before(first.CompletedAt.Time) || last.StartedAt.Before(r.CompletedAt.Time) {
				t.Errorf("%s ran from %v to %v; first ended at %v, last started at %v", r.Name, r.StartedAt, r.CompletedAt, first.CompletedAt, last.StartedAt)
			}
			if len(r.Inputs) != 1 || len(r.Inputs[0].SHA256) != 64 {
				t.Errorf("%s reads %+v, want its digest", r.Name, r.Inputs)
			}
		}
	})
}

func TestInputsOfOtherJobsAreLaidOut(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(name string, _ int) script {
			if name == "reader" {
				return script{runs: time.Hour, cause: app.CauseDone}
			}
			return script{runs: time.Minute, cause: app.CauseDone, out: map[string]string{"x/made.fasta": "MSEQ"}}
		})
		source := w.submit(ann, "source", "{}")
		id := w.submit(ann, "reader", `{"sequence":"job:source/x/made.fasta"}`)
		w.submit(bob, "misled", `{"sequence":"job:source/other.fasta"}`)
		w.start()
		w.until("reader", app.Running)
		must.Equal(t, "the input", w.text(w.path(id, "1", "work", "in", "sequence.fasta")), "MSEQ")
		if f := w.finished("misled").Failure; f == nil || f.Code != app.FailedInput || !strings.Contains(f.Message, `has no file "other.fasta"`) {
			t.Errorf("misled failed with %+v", f)
		}
		if w.job("source").ID != source {
			t.Error("another job is the source")
		}
	})
}

// TestManyDependantsFollow submits more dependents than one transaction updates.
func TestManyDependantsFollow(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ends := app.CauseExit
		w.play(func(string, int) script { return script{runs: time.Second, cause: ends} })
		w.submit(ann, "first", "{}")
		var jobs [][3]string
		for range 250 {
			jobs = append(jobs, [3]string{"", "{}", "first"})
		}
		w.pipeline("p", jobs...)
		stop := w.start()
		if r := w.finished("p"); r.Counts.Failed != 250 || w.job("p-250").Failure.Code != app.FailedDependency {
			t.Errorf("batch counts: %+v", r.Counts)
		}
		stop()
		ends = app.CauseDone
		_, err := w.Jobs.Retry(t.Context(), ann, "first")
		must.OK(t, err)
		w.start()
		w.until("first", app.Completed)
		rec, err := w.Jobs.Get(t.Context(), ann, "p", 0)
		must.OK(t, err)
		if n := w.read(rec).Counts.Failed; n > 0 { // updated at once, without waiting for the next round
			t.Errorf("%d jobs are not updated yet", n)
		}
		if r := w.until("p", app.Completed); r.Counts.Completed != 250 {
			t.Errorf("batch counts: %+v", r.Counts)
		}
	})
}
