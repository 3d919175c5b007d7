package usage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/base/strictjson"
	"molrun/app/job/apikey"
	"molrun/app/job/spent"
	"molrun/app/job/usage"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

// needs are what the types need.
var needs = map[string]placement.Resources{"fold": {CPUs: 1, GPUs: 2}, "dock": {CPUs: 3}, "md": {CPUs: 2, GPUs: 1}}

var users = []app.Caller{
	{Organization: "lab", Email: "ann@lab.example", Rights: apikey.Admin.Rights()},
	{Organization: "lab", Email: "bob@lab.example", Rights: apikey.Member.Rights()},
	{Organization: "firm", Email: "ann@lab.example", Rights: apikey.Member.Rights()},
	{Organization: "firm", Email: "eve@firm.example", Rights: apikey.Member.Rights()},
}

// site is a service with several types of jobs. Nothing runs them: the test says how
// they end.
type site struct {
	*fixture.Site
	*app.Service
	t *testing.T
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Site: fixture.New(t, app.Options{}), t: t}
	var files []*algorithm.File
	for typ, n := range needs {
		text := fmt.Sprintf("format = 1\ntype = %q\nversion = \"1\"\ntitle = \"T\"\nretries = 2\ncommand = [\"true\"]\n[resources]\ncpus = %d\ngpus = %d\n", typ, n.CPUs, n.GPUs)
		f, mistakes := algorithm.Parse(typ+".toml", []byte(text))
		if len(mistakes) > 0 {
			t.Fatal(mistakes)
		}
		files = append(files, f)
	}
	catalogue, err := algorithm.NewCatalogue(files)
	must.OK(t, err)
	s.Service, err = app.NewService(s.Store, s.Blobs, catalogue, app.Options{
		Now:     s.Now,
		Routing: routing.Table{Executor: "local", Machines: map[string]placement.Machine{"local": {CPUs: 64, MemoryBytes: 1 << 40, GPUs: 8, Local: true}}},
	})
	must.OK(t, err)
	return s
}

// TestSumsAreThoseOfAllJobsThatEverWere lets 10,000 jobs (1,000 with the race detector) of random users and types end in
// random ways, some of them several times, deletes many, and adds up what their records
// said before that.
func TestSumsAreThoseOfAllJobsThatEverWere(t *testing.T) {
	s := newSite(t)
	const workers, jobs = 50, 20
	var all sync.WaitGroup
	parts := make([]*ledger, workers)
	for i := range parts {
		l := &ledger{site: s, rand: rand.New(rand.NewPCG(uint64(i), 15)), seen: map[spent.Share]*spent.Counters{}}
		parts[i] = l
		all.Go(func() {
			for n := 0; n < jobs; {
				n += l.some(fmt.Sprintf("job-%d-%d", i, n))
			}
			for n := range 5 {
				l.upload(fmt.Sprintf("file-%d-%d.txt", i, n))
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	seen := parts[0]
	for _, l := range parts[1:] {
		for who, c := range l.seen {
			seen.count(who, *c)
		}
	}
	reports := usage.New(s.Store, s.Now)
	for _, by := range []usage.By{usage.ByOrganization, usage.ByUser, usage.ByType, usage.ByDay} {
		for _, organization := range []string{"", "lab", "firm", "none"} {
			got, err := reports.Of(t.Context(), app.Operator(), usage.Query{By: by, Organization: organization, Since: span[0], Until: span[1]})
			must.OK(t, err)
			seen.compare(by, got, func(s spent.Share) bool { return organization == "" || s.Organization == organization }, true)
		}
		for _, u := range users {
			if by == usage.ByOrganization {
				continue
			}
			got, err := reports.Of(t.Context(), u, usage.Query{By: by, Since: span[0], Until: span[1], Organization: "lab"})
			must.OK(t, err)
			seen.compare(by, got, func(s spent.Share) bool {
				return s.Organization == u.Organization && (u.Administers() || s.Email == u.Email)
			}, false)
		}
		from, until := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
		got, err := reports.Of(t.Context(), app.Operator(), usage.Query{By: by, Since: from, Until: until})
		must.OK(t, err)
		seen.compare(by, got, func(s spent.Share) bool { return !s.Day.Before(from) && s.Day.Before(until) }, true)
	}
}

// span has all days of the test.
var span = [2]time.Time{time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC)}

// ledger plays jobs and notes what was seen of them.
type ledger struct {
	*site
	rand *rand.Rand
	seen map[spent.Share]*spent.Counters // by share without counters
}

func (l *ledger) count(who spent.Share, c spent.Counters) {
	if l.seen[who] == nil {
		l.seen[who] = &spent.Counters{}
	}
	l.seen[who].Add(c)
}

// some submits a job or a batch, plays it and perhaps deletes it. It returns the number of
// jobs.
func (l *ledger) some(name string) int {
	by := users[l.rand.IntN(len(users))]
	typ := []string{"fold", "dock", "md"}[l.rand.IntN(3)]
	names := []string{name}
	if l.rand.IntN(10) == 0 {
		body := l.parse(`{"batchName":"` + name + `","settings":[{},{},{}]}`)
		_, _, err := l.Service.Jobs.SubmitBatch(context.Background(), by, app.BatchSubmission{Name: name, Type: typ, Rows: body.Member("settings").Items, Body: body})
		l.must(err)
		names = []string{name + "-1", name + "-2", name + "-3"}
	} else {
		body := l.parse(`{"jobName":"` + name + `","settings":{}}`)
		_, _, err := l.Service.Jobs.Submit(context.Background(), by, app.Submission{Name: name, Type: typ, Settings: body.Member("settings"), Body: body})
		l.must(err)
	}
	finished := true
	for _, n := range names {
		finished = l.play(by, n) && finished
	}
	if finished && l.rand.IntN(2) == 0 {
		l.must(l.Service.Jobs.Delete(context.Background(), by, name))
	}
	return len(names)
}

// play lets a job end, perhaps several times, and returns whether it has.
func (l *ledger) play(by app.Caller, name string) (finished bool) {
	if l.rand.IntN(20) == 0 {
		return false
	}
	for !l.t.Failed() {
		if l.rand.IntN(12) == 0 { // before it starts
			_, err := l.Service.Jobs.Cancel(context.Background(), by, name)
			l.must(err)
			l.ended(l.job(by, name), spent.Counters{})
		} else {
			l.attempt(by, name)
		}
		j := l.job(by, name)
		switch {
		case j.Status == app.Queued: // lost
		case j.Status == app.Failed && l.rand.IntN(3) == 0:
			_, err := l.Service.Jobs.Retry(context.Background(), by, name)
			l.must(err)
		default:
			return true
		}
	}
	return false
}

// attempt plays an attempt of a queued job.
func (l *ledger) attempt(by app.Caller, name string) {
	ctx, id := context.Background(), l.job(by, name).ID
	j, _, err := l.Service.Runs.Claim(ctx, id, placement.Devices{}, app.Portion{})
	l.must(err)
	start := l.Now()
	started := l.rand.IntN(4) > 0
	if started {
		l.must(l.Service.Runs.Started(ctx, id, j.Attempts, start))
	}
	if l.rand.IntN(10) == 0 {
		_, err := l.Service.Jobs.Cancel(ctx, by, name)
		l.must(err)
	}
	o := &app.Outcome{StartedAt: start, EndedAt: start.Add(time.Duration(l.rand.Int64N(int64(5 * 24 * time.Hour)))), CPUSeconds: l.rand.Float64() * 1e5}
	e := app.Ending{Outcome: o}
	switch l.rand.IntN(8) {
	case 0:
		o.Cause = app.CauseInterrupted
	case 1:
		e = app.Ending{Lost: "the machine was restarted"}
	case 2:
		*o = app.Outcome{Cause: app.CauseCannotStart}
		e.Failure = &app.Failure{Code: app.FailedCannotStart, Message: "There is no such program."}
	case 3, 4:
		o.Cause = app.CauseExit
		e.Failure = &app.Failure{Code: app.FailedExit, Message: "It failed."}
	default:
		o.Cause, e.ResultBytes = app.CauseDone, l.rand.Int64N(1e9)
	}
	for range 1 + l.rand.IntN(2) { // a second time changes nothing
		l.must(l.Service.Runs.Finish(ctx, id, j.Attempts, e))
	}
	l.ended(l.job(by, name), l.used(j, e, started))
}

// used returns what an attempt has used as far as somebody saw it.
func (l *ledger) used(j *app.Job, e app.Ending, started bool) (c spent.Counters) {
	ran := e.Outcome != nil && !e.Outcome.StartedAt.IsZero()
	if ran || started {
		c.Attempts = 1
	}
	if ran {
		c.RunMillis = e.Outcome.EndedAt.Sub(e.Outcome.StartedAt).Milliseconds()
		c.CPUMillis = int64(e.Outcome.CPUSeconds*1000 + 0.5)
		c.BookedMillis, c.GPUMillis = c.RunMillis*int64(needs[j.Type].CPUs), c.RunMillis*int64(needs[j.Type].GPUs)
	}
	return c
}

// ended notes the end of a job or of an attempt.
func (l *ledger) ended(j *app.Job, c spent.Counters) {
	at := j.CompletedAt.Time
	switch j.Status {
	case app.Completed:
		c.Completed, c.ResultBytes = 1, *j.ResultBytes
	case app.Failed:
		c.Failed = 1
	default:
		at = j.Private.Spent.At.Time
	}
	if j.Status.Finished() && j.Metrics != nil {
		record := int64(j.Metrics.RunSeconds*1000 + 0.5)
		if c.RunMillis != record {
			l.t.Errorf("the record of %s says %d ms, its attempt ran %d", j.Name, record, c.RunMillis)
		}
	}
	if c == (spent.Counters{}) {
		return
	}
	l.count(spent.Share{Organization: j.Organization, Email: j.Email, Type: j.Type, Day: at.UTC().Truncate(24 * time.Hour)}, c)
}

func (l *ledger) upload(name string) {
	by := users[l.rand.IntN(len(users))]
	u := l.Upload(by, name, fmt.Sprintf("%0*d", 1+l.rand.IntN(100), 0))
	l.count(spent.Share{Organization: by.Organization, Email: by.Email, Day: u.CompletedAt.UTC().Truncate(24 * time.Hour)}, spent.Counters{Uploads: 1, UploadBytes: u.Size})
	if l.rand.IntN(2) == 0 {
		l.must(l.Files.Delete(context.Background(), by, string(u.ID)))
	}
}

func (l *ledger) job(by app.Caller, name string) (j *app.Job) {
	l.must(l.Store.View(context.Background(), func(tx app.Tx) (err error) {
		j, err = tx.JobNamed(by.Organization, name)
		return err
	}))
	return j
}

func (l *ledger) parse(text string) *strictjson.Value {
	v, err := strictjson.Parse([]byte(text))
	l.must(err)
	return v
}

// must reports from any goroutine.
func (l *ledger) must(err error) {
	if err != nil {
		l.t.Error(err)
		panic(err)
	}
}

// compare compares a report with what was seen.
func (l *ledger) compare(by usage.By, got *usage.Report, in func(spent.Share) bool, operator bool) {
	l.t.Helper()
	type key struct{ organization, user, typ, day string }
	want, sum := map[key]*spent.Counters{}, spent.Counters{}
	for s, c := range l.seen {
		if !in(s) {
			continue
		}
		k := map[usage.By]key{
			usage.ByOrganization: {organization: s.Organization}, usage.ByUser: {user: s.Email},
			usage.ByType: {typ: s.Type}, usage.ByDay: {day: s.Day.Format(time.DateOnly)},
		}[by]
		if by == usage.ByUser && operator {
			k.organization = s.Organization
		}
		if want[k] == nil {
			want[k] = &spent.Counters{}
		}
		want[k].Add(*c)
		sum.Add(*c)
	}
	have := map[key]*spent.Counters{}
	for _, r := range got.Rows {
		c := counters(r)
		have[key{r.Organization, r.User, r.Type, r.Day}] = &c
	}
	if diff := cmp.Diff(want, have); diff != "" {
		l.t.Errorf("by %s (-seen +reported):\n%s", by, diff)
	}
	if diff := cmp.Diff(sum, counters(got.Total)); diff != "" {
		l.t.Errorf("by %s, total (-seen +reported):\n%s", by, diff)
	}
}

func counters(r usage.Row) spent.Counters {
	millis := func(seconds float64) int64 { return int64(seconds*1000 + 0.5) }
	return spent.Counters{
		Completed: r.Completed, Failed: r.Failed, Attempts: r.Attempts, RunMillis: millis(r.RunSeconds), CPUMillis: millis(r.CPUSeconds),
		BookedMillis: millis(r.CPUSecondsBooked), GPUMillis: millis(r.GPUSeconds), ResultBytes: r.ResultBytes, Uploads: r.Uploads, UploadBytes: r.UploadBytes,
	}
}
