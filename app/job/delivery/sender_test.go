package delivery_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/apikey"
	"molrun/app/job/delivery"
	"molrun/app/job/notice"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

var root = app.Caller{KeyID: "root", Organization: "lab", Email: "root@lab.example", Rights: apikey.Admin.Rights()}

// office is a site with webhooks and the messages that receivers have accepted.
type office struct {
	*fixture.Site
	*delivery.Webhooks
	t *testing.T

	mu  sync.Mutex
	got map[string][]string // IDs of the accepted messages, by URL
}

func newOffice(t *testing.T) *office {
	t.Helper()
	policy := notice.Policy{Mail: true}
	site := fixture.New(t, app.Options{Notices: policy})
	return &office{Site: site, Webhooks: delivery.NewNotices(site.Store, policy, time.Now), t: t, got: map[string][]string{}}
}

func (o *office) hook(url string, events ...string) *notice.Hook {
	o.t.Helper()
	h := delivery.HookSettings{URL: &url}
	if events != nil {
		h.Events = &events
	}
	rec, err := o.Create(o.t.Context(), root, h)
	must.OK(o.t, err)
	return rec
}

// take records a message that a receiver has accepted.
func (o *office) take(p delivery.Posting) notice.Attempt {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.got[p.URL] = append(o.got[p.URL], p.ID)
	return notice.Attempt{Status: 200}
}

// different returns how many distinct messages a receiver has accepted.
func (o *office) different(url string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	ids := slices.Clone(o.got[url])
	slices.Sort(ids)
	return len(slices.Compact(ids))
}

// send runs a sender until the test ends or stop is called.
func (o *office) send(store app.Store, with delivery.SenderOptions) (stop func()) {
	o.t.Helper()
	with.Poll = cmp.Or(with.Poll, 10*time.Millisecond)
	if with.Now == nil {
		with.Now = time.Now
	}
	if with.Schedule == (notice.Schedule{}) {
		with.Schedule = notice.Schedule{First: 10 * time.Millisecond, Longest: 50 * time.Millisecond, GiveUpAfter: time.Hour}
	}
	with.Link = func(name string) string { return "https://molrun.example/jobs/" + name }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- delivery.NewSender(store, with).Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			must.OK(o.t, err)
		case <-time.After(must.Patience):
			o.t.Error("the sender does not end")
		}
	})
	o.t.Cleanup(stop)
	return stop
}

// complete submits a job that notifies targets of its end, and completes it.
func (o *office) complete(name string, targets ...string) {
	o.t.Helper()
	id := o.Submit(fixture.Ann, name, `{}`)
	if targets != nil {
		must.OK(o.t, must.Error2(o.Jobs.Label(o.t.Context(), fixture.Ann, name, app.Labels{Notify: targets}, nil)))
	}
	o.Complete(id, nil)
}

func (o *office) log(id string) []*notice.Delivery {
	o.t.Helper()
	all, err := o.Log(o.t.Context(), root, id, 1000)
	must.OK(o.t, err)
	return all
}

func TestNoticesTellOnlyWhatIsWanted(t *testing.T) {
	o := newOffice(t)
	usual, all, failures := o.hook("https://usual.example/"), o.hook("https://all.example/", "job.completed", "job.started", "job.failed"), o.hook("https://failures.example/", "job.failed")
	disabled := true
	off := o.hook("https://off.example/")
	must.OK(t, must.Error2(o.Change(t.Context(), root, off.ID, delivery.HookSettings{Disabled: &disabled})))

	o.complete("good", "https://asked.example/", "mailto:"+fixture.Ann.Email)
	o.Fail(o.Submit(fixture.Ann, "bad", `{}`), nil)
	_, rows := o.SubmitBatch(fixture.Ann, "screen", `{}`, `{}`, `{}`)
	for _, row := range rows {
		o.Complete(row, nil)
	}
	o.Submit(fixture.Ann, "stopped", `{}`)
	must.OK(t, must.Error2(o.Jobs.Cancel(t.Context(), fixture.Ann, "stopped")))

	told := func(id string) (all []string) {
		for _, d := range o.log(id) {
			all = append(all, string(d.Event)+" "+d.JobName)
		}
		slices.Sort(all)
		return all
	}
	for id, want := range map[string][]string{
		usual.ID: {"job.completed good", "job.completed screen", "job.failed bad", "job.failed stopped"},
		all.ID: {
			"job.completed good", "job.completed screen", "job.failed bad", "job.failed stopped",
			"job.started bad", "job.started good", "job.started screen",
		},
		failures.ID:          {"job.failed bad", "job.failed stopped"},
		off.ID:               nil,
		delivery.Submissions: {"job.completed good", "job.completed good"},
	} {
		must.Equal(t, fmt.Sprintf("%s is", id), told(id), want)
	}
	message := func(log []*notice.Delivery) string {
		i := slices.IndexFunc(log, func(d *notice.Delivery) bool { return d.JobName == "good" && d.Event == notice.JobCompleted })
		return log[i].Message
	}
	must.Equal(t, "the ID of one event", message(o.log(usual.ID)), message(o.log(delivery.Submissions)))
	var body struct {
		Type string
		Data map[string]any
	}
	must.OK(t, json.Unmarshal(o.log(failures.ID)[1].Body, &body))
	if body.Type != "job.failed" || body.Data["jobName"] != "bad" || body.Data["settings"] != nil {
		t.Errorf("the body is %+v", body)
	}
}

func TestLetterSaysWhatAScientistWantsToKnow(t *testing.T) {
	o := newOffice(t)
	letters := make(chan delivery.Email, 1)
	o.send(o.Store, delivery.SenderOptions{Mail: func(_ context.Context, l delivery.Email) notice.Attempt {
		letters <- l
		return notice.Attempt{}
	}})
	id := o.Submit(fixture.Ann, "bad", `{}`)
	note := "At 310 K."
	must.OK(t, must.Error2(o.Jobs.Label(t.Context(), fixture.Ann, "bad", app.Labels{Notify: []string{"mailto:" + fixture.Ann.Email}, Note: &note}, nil)))
	o.Fail(id, nil)
	select {
	case l := <-letters:
		if l.To != fixture.Ann.Email || l.Subject != `Job "bad" is FAILED` {
			t.Errorf("%+v", l)
		}
		j, err := o.Jobs.Named(t.Context(), fixture.Ann, "bad")
		must.OK(t, err)
		for _, want := range []string{`Job "bad" (echo) of ` + fixture.Ann.Email + " is FAILED.", j.Failure.Message, "Started    2026-11-20 10:40:00 UTC", "At 310 K.", "https://molrun.example/jobs/bad\n"} {
			must.Contain(t, "the letter", l.Text, want)
		}
	case <-time.After(must.Patience):
		t.Fatal("no letter")
	}
}

// amnesic is a store that loses some changes, as if the service were killed before they
// were durable.
type amnesic struct {
	app.Store
	updates atomic.Int32
}

func (s *amnesic) Update(ctx context.Context, fn func(app.Tx) error) error {
	if s.updates.Add(1)%3 == 0 {
		return errors.New("killed")
	}
	return s.Store.Update(ctx, fn)
}

// The receiver fails twice for each message, and the sender loses records of its attempts
// and is restarted.
func TestEveryEventArrivesWithOneID(t *testing.T) {
	o := newOffice(t)
	h := o.hook("https://good.example/")
	const jobs = 30
	for i := range jobs {
		o.complete(fmt.Sprint("job-", i))
	}
	var mu sync.Mutex
	tries := map[string]int{}
	store := &amnesic{Store: o.Store}
	options := delivery.SenderOptions{Post: func(_ context.Context, p delivery.Posting) notice.Attempt {
		mu.Lock()
		tries[p.ID]++
		n := tries[p.ID]
		mu.Unlock()
		if n <= 2 {
			return notice.Attempt{Status: 500, Error: "the receiver responded with status 500"}
		}
		return o.take(p)
	}}
	for i := range 3 {
		stop := o.send(store, options)
		must.Become(t, "some arrive", func() bool { return o.different("https://good.example/") > i*5 })
		stop()
	}
	o.send(store, options)
	must.Become(t, "all are recorded", func() bool {
		return !slices.ContainsFunc(o.log(h.ID), func(d *notice.Delivery) bool { return d.State != notice.Delivered })
	})
	if n := o.different("https://good.example/"); n != jobs || len(tries) != jobs {
		t.Errorf("%d messages arrived with %d IDs, want %d", n, len(tries), jobs)
	}
}

func TestReceiverThatNeverAnswersIsGivenUp(t *testing.T) {
	o := newOffice(t)
	h := o.hook("https://dead.example/")
	for i := range 20 {
		o.complete(fmt.Sprint("job-", i))
	}
	var told atomic.Int32
	o.send(o.Store, delivery.SenderOptions{
		Post: func(context.Context, delivery.Posting) notice.Attempt {
			return notice.Attempt{Error: "it refused the connection"}
		},
		Schedule: notice.Schedule{First: time.Millisecond, Longest: 10 * time.Millisecond, GiveUpAfter: 300 * time.Millisecond},
		OnAttempt: func(d *notice.Delivery) {
			if d.State == notice.Abandoned {
				told.Add(1)
			}
		},
	})
	must.Become(t, "all are abandoned", func() bool {
		return !slices.ContainsFunc(o.log(h.ID), func(d *notice.Delivery) bool {
			return d.State != notice.Abandoned || !strings.HasPrefix(d.Error, "abandoned: ")
		})
	})
	must.Become(t, "all are reported", func() bool { return told.Load() == 20 })
}

// The hook that signs messages to addresses in submissions is not listed as a webhook of
// the organization.
func TestSignerOfSubmissionsIsNoWebhook(t *testing.T) {
	o := newOffice(t)
	h := o.hook("https://a.example/")
	must.OK(t, must.Error2(o.Rotate(t.Context(), root, delivery.Submissions, time.Hour)))
	if all, err := o.ListHooks(t.Context(), root); err != nil || len(all) != 1 || all[0].ID != h.ID {
		t.Errorf("webhooks %v, %v", all, err)
	}
	for _, by := range []app.Caller{fixture.Ann, fixture.Bob} {
		_, listed := o.ListHooks(t.Context(), by)
		_, logged := o.Log(t.Context(), by, h.ID, 1)
		_, created := o.Create(t.Context(), by, delivery.HookSettings{URL: &h.URL})
		_, changed := o.Change(t.Context(), by, h.ID, delivery.HookSettings{URL: &h.URL})
		for _, err := range []error{listed, logged, created, changed} {
			if !errors.Is(err, fault.Forbidden) {
				t.Errorf("a member: %v", err)
			}
		}
	}
	_, changed := o.Change(t.Context(), root, delivery.Submissions, delivery.HookSettings{URL: &h.URL})
	_, tested := o.Test(t.Context(), root, delivery.Submissions)
	for _, err := range []error{changed, tested, o.Webhooks.Delete(t.Context(), root, delivery.Submissions)} {
		if !errors.Is(err, fault.NotFound) {
			t.Errorf("error %v", err)
		}
	}
}

func TestRotatedSecretsOverlap(t *testing.T) {
	o := newOffice(t)
	h := o.hook("https://a.example/")
	signatures := make(chan string, 10)
	o.send(o.Store, delivery.SenderOptions{Post: func(_ context.Context, p delivery.Posting) notice.Attempt {
		want, err := notice.Sign(p.ID, p.Timestamp, p.Body, h.Secret)
		if err == nil && !slices.Contains(strings.Fields(p.Signature), want) {
			t.Errorf("the old secret does not verify %s", p.Signature)
		}
		signatures <- p.Signature
		return notice.Attempt{Status: 200}
	}})
	for _, want := range []int{1, 2} {
		must.OK(t, must.Error2(o.Test(t.Context(), root, h.ID)))
		select {
		case s := <-signatures:
			must.Equal(t, "number of signatures", len(strings.Fields(s)), want)
		case <-time.After(must.Patience):
			t.Fatal("no message")
		}
		rotated, err := o.Rotate(t.Context(), root, h.ID, time.Hour)
		must.OK(t, err)
		if rotated.Secret == h.Secret || want == 1 && rotated.OldSecret != h.Secret {
			t.Errorf("%+v", rotated)
		}
	}
	must.Equal(t, "after the overlap", (&notice.Hook{Secret: "new", OldSecret: "old"}).Secrets(time.Now()), []string{"new"})
}

// TestClockSetBackDelaysNothing has messages that are scheduled hours ahead because the
// clock was set back.
func TestClockSetBackDelaysNothing(t *testing.T) {
	o := newOffice(t)
	o.hook("https://good.example/")
	o.complete("early")
	schedule := notice.Schedule{First: 10 * time.Millisecond, Longest: 50 * time.Millisecond, GiveUpAfter: time.Hour}
	var tries atomic.Int32
	stop := o.send(o.Store, delivery.SenderOptions{
		Schedule: schedule, Now: func() time.Time { return time.Now().Add(-3 * time.Hour) },
		Post: func(_ context.Context, p delivery.Posting) notice.Attempt {
			if tries.Add(1) == 1 {
				return notice.Attempt{Error: "it refused the connection"}
			}
			return o.take(p)
		},
	})
	must.Become(t, "it arrives", func() bool { return o.different("https://good.example/") == 1 })
	stop()
}

// TestSenderRestsWhileTheDiskIsFull has a delivery that should be abandoned, which can't
// be recorded.
func TestSenderRestsWhileTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.hook("https://dead.example/")
		o.complete("job")
		full := &fullDisk{Store: o.Store}
		stop := o.send(full, delivery.SenderOptions{
			Poll: time.Second, Schedule: notice.Schedule{First: time.Second, Longest: time.Second, GiveUpAfter: time.Nanosecond},
			Post: func(context.Context, delivery.Posting) notice.Attempt {
				return notice.Attempt{Error: "it refused the connection"}
			},
		})
		time.Sleep(time.Minute)
		stop()
		if n := full.refused.Load(); n < 10 || n > 200 {
			t.Errorf("it tried %d times within a minute", n)
		}
	})
}

// fullDisk is a store on a full disk. Space becomes available eventually, so that an
// endless loop does not hang the test.
type fullDisk struct {
	app.Store
	refused atomic.Int32
}

func (s *fullDisk) Update(ctx context.Context, fn func(app.Tx) error) error {
	if s.refused.Add(1) < 1000 {
		return errors.New("the disk is full")
	}
	return s.Store.Update(ctx, fn)
}

func TestMessagesOfOneMomentAreInOrder(t *testing.T) {
	o := newOffice(t)
	var targets []string
	for i := range notice.MaxTargets {
		targets = append(targets, fmt.Sprintf("https://%d.example/", i))
	}
	o.complete("job", targets...)
	var got []string
	for _, d := range o.log(delivery.Submissions) {
		got = append(got, d.Target)
	}
	slices.Reverse(got) // the log is newest first
	must.Equal(t, "the log", got, targets)
}
