package usage_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/job/apikey"
	"molrun/app/job/usage"
	"molrun/app/task/protocol"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

var (
	ann    = fixture.Ann
	viewer = app.Caller{Organization: "lab", Email: "vic@lab.example", Rights: apikey.Viewer.Rights()}
	chief  = app.Caller{Organization: "lab", Email: "chief@lab.example", Rights: apikey.Admin.Rights()}
)

// newSite returns a site with the types fold, whose jobs need 3 CPUs and 2 GPUs, and
// dock, whose jobs need 1 CPU.
func newSite(t *testing.T) *fixture.Site {
	t.Helper()
	const text = "format = 1\ntype = %q\nversion = \"1\"\ntitle = \"T\"\nretries = 2\ncommand = [\"true\"]\n[resources]\ncpus = %d\ngpus = %d\n"
	machine := placement.Machine{CPUs: 64, MemoryBytes: 1 << 40, GPUs: 8, Local: true}
	return fixture.New(t, app.Options{Routing: routing.Table{Executor: "local", Machines: map[string]placement.Machine{"local": machine}}},
		fmt.Sprintf(text, "fold", 3, 2), fmt.Sprintf(text, "dock", 1, 0))
}

// job is a job whose lifecycle a test controls.
type job struct {
	*fixture.Site
	t  *testing.T
	id app.JobID
}

// ends runs an attempt that ends with e. Its start is reported only if started is set.
// The end is reported twice, as after a crash.
func (j job) ends(started bool, e app.Ending) {
	j.t.Helper()
	attempt, _, err := j.Runs.Claim(j.t.Context(), j.id, placement.Devices{}, app.ClaimLimit{})
	must.OK(j.t, err)
	if started {
		must.OK(j.t, j.Runs.Started(j.t.Context(), j.id, attempt.Attempts, j.Now(), app.ClusterJob{}))
	}
	if o := e.Outcome; o != nil && o.Cause != app.CauseCannotStart {
		o.StartedAt = j.Now()
		o.EndedAt = o.StartedAt.Add(time.Minute)
	}
	for range 2 {
		must.OK(j.t, j.Runs.Finish(j.t.Context(), j.id, attempt.Attempts, e))
	}
}

func (j job) cancel() {
	j.t.Helper()
	must.OK(j.t, must.Error2(j.Jobs.Cancel(j.t.Context(), ann, "a")))
}

func (j job) retry() {
	j.t.Helper()
	must.OK(j.t, must.Error2(j.Jobs.Retry(j.t.Context(), ann, "a")))
}

// ran returns the ending of a one-minute attempt that used 90 seconds of CPU time.
func ran(cause protocol.Cause) app.Ending {
	e := app.Ending{Outcome: &app.Outcome{Cause: cause, CPUSeconds: 90}}
	switch cause {
	case app.CauseDone:
		e.ResultBytes = 7
	case app.CauseExit:
		e.Failure = &app.Failure{Code: app.FailedExit, Message: "It failed."}
	}
	return e
}

// used returns the usage of a number of attempts that ran.
func used(attempts, completed, failed int64) usage.Row {
	n := float64(attempts)
	return usage.Row{
		Completed: completed, Failed: failed, Attempts: attempts, ResultBytes: 7 * completed,
		RunSeconds: 60 * n, CPUSeconds: 90 * n, CPUSecondsBooked: 180 * n, GPUSeconds: 120 * n,
	}
}

func TestEachEndOfAJobCountsOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		life func(job)
		want usage.Row
	}{
		"waits":                      {func(job) {}, usage.Row{}},
		"completed":                  {func(j job) { j.ends(true, ran(app.CauseDone)) }, used(1, 1, 0)},
		"its start was not reported": {func(j job) { j.ends(false, ran(app.CauseDone)) }, used(1, 1, 0)},
		"failed":                     {func(j job) { j.ends(true, ran(app.CauseExit)) }, used(1, 0, 1)},
		"interrupted":                {func(j job) { j.ends(true, ran(app.CauseInterrupted)) }, used(1, 0, 0)},
		"lost while it ran":          {func(j job) { j.ends(true, app.Ending{Lost: "its node failed"}) }, usage.Row{Attempts: 1}},
		"lost before it started":     {func(j job) { j.ends(false, app.Ending{Lost: "its node failed"}) }, usage.Row{}},
		"cancelled while it waits":   {func(j job) { j.cancel() }, usage.Row{Failed: 1}},
		"cannot start": {func(j job) {
			j.ends(false, app.Ending{Outcome: &app.Outcome{Cause: app.CauseCannotStart}, Failure: &app.Failure{Code: app.FailedCannotStart, Message: "No program."}})
		}, usage.Row{Failed: 1}},
		"interrupted, then completed": {func(j job) {
			j.ends(true, ran(app.CauseInterrupted))
			j.ends(true, ran(app.CauseDone))
		}, used(2, 1, 0)},
		"failed, then completed": {func(j job) {
			j.ends(true, ran(app.CauseExit))
			j.retry()
			j.ends(true, ran(app.CauseDone))
		}, used(2, 1, 1)},
		"cancelled twice": {func(j job) {
			j.cancel()
			j.retry()
			j.cancel()
		}, usage.Row{Failed: 2}},
		"deleted": {func(j job) {
			j.ends(true, ran(app.CauseDone))
			must.OK(t, j.Jobs.Delete(t.Context(), ann, "a"))
		}, used(1, 1, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			tt.life(job{s, t, s.SubmitOf("fold", ann, "a", `{}`)})
			report, err := usage.New(s.Store, s.Now).Of(t.Context(), app.Operator(), usage.Query{By: usage.ByOrganization})
			must.OK(t, err)
			must.Equal(t, "used", report.Total, tt.want)
		})
	}
}

// TestRowsThatEndAtOnceAllCount makes changes that share a commit.
func TestRowsThatEndAtOnceAllCount(t *testing.T) {
	s := newSite(t)
	_, rows := s.SubmitBatch(ann, "b", slices.Repeat([]string{`{}`}, 50)...) // of type echo, which needs one CPU
	var all sync.WaitGroup
	for _, id := range rows {
		all.Go(func() { job{s, t, id}.ends(true, ran(app.CauseDone)) })
	}
	all.Wait()
	report, err := usage.New(s.Store, s.Now).Of(t.Context(), app.Operator(), usage.Query{By: usage.ByType})
	must.OK(t, err)
	must.Equal(t, "used", report.Total, usage.Row{
		Completed: 50, Attempts: 50, ResultBytes: 7 * 50, RunSeconds: 60 * 50, CPUSeconds: 90 * 50, CPUSecondsBooked: 60 * 50,
	})
}

func TestReportsAddUpWhatTheirCallerMaySee(t *testing.T) {
	s := newSite(t)
	end := func(typ string, by app.Caller, name string, e app.Ending) {
		job{s, t, s.SubmitOf(typ, by, name, `{}`)}.ends(true, e)
	}
	end("fold", ann, "a", ran(app.CauseDone))
	end("dock", fixture.Bob, "b", ran(app.CauseExit))
	end("dock", fixture.Eve, "c", ran(app.CauseDone))
	u := s.Upload(ann, "a.txt", "abc")
	must.OK(t, s.Files.Delete(t.Context(), ann, string(u.ID)))
	s.Advance(2 * fixture.Day)
	end("fold", fixture.Bob, "d", ran(app.CauseDone))
	second := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name  string
		by    app.Caller
		query usage.Query
		want  []string // completed, failed, uploads
	}{
		{"the operator", app.Operator(), usage.Query{By: usage.ByOrganization}, []string{"lab: 2 1 1", "other: 1 0 0", ": 3 1 1"}},
		{"the operator, of a user", app.Operator(), usage.Query{By: usage.ByUser}, []string{"lab bob@lab.example: 1 1 0", "lab ann@lab.example: 1 0 1", "other ann@lab.example: 1 0 0", ": 3 1 1"}},
		{"the operator, of an organization", app.Operator(), usage.Query{By: usage.ByType, Organization: "other"}, []string{"dock: 1 0 0", ": 1 0 0"}},
		{"the operator, of no organization", app.Operator(), usage.Query{By: usage.ByType, Organization: "none"}, []string{": 0 0 0"}},
		{"an admin", chief, usage.Query{By: usage.ByUser}, []string{"bob@lab.example: 1 1 0", "ann@lab.example: 1 0 1", ": 2 1 1"}},
		{"an admin, by type", chief, usage.Query{By: usage.ByType}, []string{"fold: 2 0 0", "dock: 0 1 0", ": 0 0 1", ": 2 1 1"}},
		{"an admin, by day", chief, usage.Query{By: usage.ByDay}, []string{"2026-11-20: 1 1 1", "2026-11-22: 1 0 0", ": 2 1 1"}},
		{"an admin, since the second day", chief, usage.Query{By: usage.ByUser, Since: second}, []string{"bob@lab.example: 1 0 0", ": 1 0 0"}},
		{"an admin, until then", chief, usage.Query{By: usage.ByUser, Until: second}, []string{"ann@lab.example: 1 0 1", "bob@lab.example: 0 1 0", ": 1 1 1"}},
		{"a viewer", viewer, usage.Query{By: usage.ByUser, Since: second}, []string{"bob@lab.example: 1 0 0", ": 1 0 0"}},
		{"a member", ann, usage.Query{By: usage.ByUser, Organization: "other"}, []string{"ann@lab.example: 1 0 1", ": 1 0 1"}},
	} {
		report, err := usage.New(s.Store, s.Now).Of(t.Context(), tt.by, tt.query)
		must.OK(t, err)
		var got []string
		for _, r := range append(report.Rows, report.Total) {
			who := strings.TrimSpace(fmt.Sprintln(r.Organization, r.User, r.Type, r.Day))
			got = append(got, fmt.Sprintf("%s: %d %d %d", who, r.Completed, r.Failed, r.Uploads))
		}
		must.Equal(t, tt.name, got, tt.want)
	}
}
