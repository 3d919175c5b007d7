package storage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
	"molrun/app/job/notice"
	"molrun/app/test/must"
	"molrun/storage/kv"
)

var noticeStart = time.Date(2026, 11, 20, 10, 40, 0, 0, time.UTC)

// noticeID returns the n-th ID. IDs ascend with n.
func noticeID(n int) string {
	return sortid.First(noticeStart.Add(time.Duration(n) * time.Millisecond)).String()
}

func hook(n int, organization string) *notice.Hook {
	return &notice.Hook{
		ID: noticeID(n), Organization: organization, URL: "https://a.example/",
		Events: notice.DefaultEvents, Secret: notice.NewSecret(),
	}
}

// pending returns a delivery whose next attempt is due in the given number of seconds.
func pending(n int, organization, hook string, seconds int) *notice.Delivery {
	return &notice.Delivery{
		ID: noticeID(n), Message: fmt.Sprint("msg_", n), Organization: organization, Hook: hook, Job: "job-" + fmt.Sprint(n%3),
		Event: notice.JobFailed, Target: "https://a.example/", State: notice.Pending, Body: []byte(`{}`),
		CreatedAt: unit.At(noticeStart), NextAt: unit.At(noticeStart.Add(time.Duration(seconds) * time.Second)),
	}
}

func TestHooksBelongToTheirOrganization(t *testing.T) {
	s := openNew(t)
	update(t, s, func(r app.Tx) error {
		return errors.Join(r.PutHook(hook(3, "lab")), r.PutHook(hook(1, "lab")), r.PutHook(hook(2, "lab2")), r.PutHook(hook(4, "la")))
	})
	list := func(organization string) (ids []string) {
		view(t, s, func(r app.Tx) error {
			all, err := r.Hooks(organization)
			for _, h := range all {
				ids = append(ids, h.ID)
			}
			return err
		})
		return ids
	}
	for organization, want := range map[string][]string{"lab": {noticeID(1), noticeID(3)}, "lab2": {noticeID(2)}, "la": {noticeID(4)}, "": nil, "nobody": nil} {
		must.Equal(t, organization, list(organization), want)
	}
	view(t, s, func(r app.Tx) error {
		h, err := r.Hook(noticeID(2))
		if err != nil || h.Organization != "lab2" || h.Secret == "" {
			t.Errorf("%+v, %v", h, err)
		}
		for _, absent := range []string{noticeID(9), "", "no ID"} {
			_, noHook := r.Hook(absent)
			_, noDelivery := r.Delivery(absent)
			if !errors.Is(noHook, fault.NotFound) || !errors.Is(noDelivery, fault.NotFound) {
				t.Errorf("%q: %v, %v", absent, noHook, noDelivery)
			}
		}
		return nil
	})
	if err := s.Update(t.Context(), func(r app.Tx) error { return r.DeleteHook(noticeID(9)) }); !errors.Is(err, fault.NotFound) {
		t.Errorf("deletion of no hook: %v", err)
	}
	for _, put := range []func(app.Tx) error{
		func(r app.Tx) error { return r.PutHook(&notice.Hook{ID: "no ID"}) },
		func(r app.Tx) error { return r.PutDelivery(&notice.Delivery{ID: "no ID"}) },
	} {
		if err := s.Update(t.Context(), put); err == nil {
			t.Error("a record without an ID is stored")
		}
	}
}

// When a log is full, the oldest finished deliveries are deleted and new ones are
// abandoned immediately. Pending deliveries can still be updated. Each log has its own
// limits.
func TestDeliveryLogsHaveBounds(t *testing.T) {
	s := openNew(t)
	h, other := hook(1, "lab"), hook(2, "lab")
	update(t, s, func(r app.Tx) error { return errors.Join(r.PutHook(h), r.PutHook(other)) })
	const n = notice.MaxEnded + 3
	update(t, s, func(r app.Tx) (err error) {
		for i := range n {
			d := pending(10+i, "lab", h.ID, 0)
			d.Abandon("for the test", noticeStart)
			err = errors.Join(err, r.PutDelivery(d))
		}
		return errors.Join(err, r.PutDelivery(pending(5, "lab", h.ID, 0))) // the oldest delivery, which is still pending
	})
	logOf := func(hook string) (ids []string) {
		view(t, s, func(r app.Tx) error {
			for d, err := range r.Deliveries(notice.Log{Organization: "lab", Hook: hook}) {
				must.OK(t, err)
				ids = append(ids, d.ID)
			}
			return nil
		})
		return ids
	}
	if got := logOf(h.ID); len(got) != notice.MaxEnded+1 || got[0] != noticeID(10+n-1) || got[notice.MaxEnded-1] != noticeID(13) || got[notice.MaxEnded] != noticeID(5) {
		t.Errorf("%d entries, from %s to %s", len(got), got[0], got[len(got)-1])
	}
	update(t, s, func(r app.Tx) (err error) {
		for i := range notice.MaxPending - 1 {
			err = errors.Join(err, r.PutDelivery(pending(1000+i, "lab", h.ID, i)))
		}
		return err
	})
	one, late, elsewhere := pending(5, "lab", h.ID, 7), pending(20_000, "lab", h.ID, 0), pending(20_001, "lab", other.ID, 0)
	update(t, s, func(r app.Tx) error {
		return errors.Join(r.PutDelivery(one), r.PutDelivery(late), r.PutDelivery(elsewhere))
	})
	if one.State != notice.Pending || elsewhere.State != notice.Pending {
		t.Errorf("one that was pending is %s, one to another receiver %s", one.State, elsewhere.State)
	}
	if late.State != notice.Abandoned || late.Error != "abandoned: 10000 other deliveries are pending for this receiver" || late.Body != nil {
		t.Errorf("one too many: %+v", late)
	}
	update(t, s, func(r app.Tx) error { return r.DeleteDelivery(noticeID(1000)) })
	again := pending(20_002, "lab", h.ID, 0)
	update(t, s, func(r app.Tx) error { return r.PutDelivery(again) })
	must.Equal(t, "when there is room again", again.State, notice.Pending)
}

// The test applies random changes to random deliveries and compares the results with a
// map.
func TestDeliveriesAreFoundInEveryOrder(t *testing.T) {
	s := openNew(t)
	random := rand.New(rand.NewPCG(1, 2))
	model := map[string]*notice.Delivery{}
	hooks := []*notice.Hook{hook(1, "lab"), hook(2, "lab"), hook(3, "other")}
	update(t, s, func(r app.Tx) (err error) {
		for _, h := range hooks {
			err = errors.Join(err, r.PutHook(h))
		}
		return err
	})
	change := func(r app.Tx) error {
		n := random.IntN(60)
		if random.IntN(20) == 0 { // deleting a hook deletes all its deliveries
			h := hooks[random.IntN(len(hooks))]
			maps.DeleteFunc(model, func(_ string, d *notice.Delivery) bool { return d.Hook == h.ID })
			return errors.Join(r.DeleteHook(h.ID), r.PutHook(h))
		}
		if model[noticeID(n)] != nil && random.IntN(3) == 0 {
			delete(model, noticeID(n))
			return r.DeleteDelivery(noticeID(n))
		}
		d := pending(n, "lab", "", random.IntN(10))
		switch of := n % 5; of { // a delivery's receiver never changes
		case 0, 1, 2:
			d.Hook, d.Organization = hooks[of].ID, hooks[of].Organization
		case 3:
			d.Target = "mailto:ann@lab.example"
		}
		switch random.IntN(4) {
		case 0:
			d.Abandon("for the test", noticeStart)
		case 1:
			d.Job = ""
		}
		model[d.ID] = d
		return r.PutDelivery(d)
	}
	for range 200 {
		update(t, s, func(r app.Tx) (err error) {
			for range random.IntN(5) {
				err = errors.Join(err, change(r))
			}
			return err
		})
		view(t, s, func(r app.Tx) error { compareDeliveries(t, r, model); return nil })
		if t.Failed() {
			return
		}
	}
}

// selected returns the IDs of the deliveries that match, newest first.
func selected(model map[string]*notice.Delivery, match func(*notice.Delivery) bool) (ids []string) {
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(model))) {
		if match(model[id]) {
			ids = append(ids, id)
		}
	}
	return ids
}

func compareDeliveries(t *testing.T, r app.Tx, model map[string]*notice.Delivery) {
	t.Helper()
	collect := func(d *notice.Delivery, err error, ids []string) []string {
		must.OK(t, err)
		if want := model[d.ID]; want == nil || d.State != want.State || !d.NextAt.Equal(want.NextAt.Time) {
			t.Errorf("%+v, want %+v", d, want)
		}
		return append(ids, d.ID)
	}
	logs := map[notice.Log]bool{{Organization: "lab", Hook: noticeID(1)}: true}
	for _, d := range model {
		logs[d.Log()] = true
	}
	for log := range logs {
		var got []string
		for d, err := range r.Deliveries(log) {
			got = collect(d, err, got)
		}
		must.Equal(t, fmt.Sprint("log ", log), got, selected(model, func(d *notice.Delivery) bool { return d.Log() == log }))
	}
	for n := range 3 {
		job, got := fmt.Sprint("job-", n), []string(nil)
		for d, err := range r.DeliveriesOf(job) {
			got = collect(d, err, got)
		}
		must.Equal(t, fmt.Sprintf("job %s", job), got, selected(model, func(d *notice.Delivery) bool { return d.Job == job && d.Hook == "" }))
	}
	compareDue(t, r, model)
}

// compareDue compares the pending deliveries: all of them, the first of each queue, and
// the first one alone.
func compareDue(t *testing.T, r app.Tx, model map[string]*notice.Delivery) {
	t.Helper()
	var want []notice.Due
	for _, d := range model {
		if d.State == notice.Pending {
			want = append(want, notice.Due{Queue: d.Queue(), At: d.NextAt.Time, ID: d.ID})
		}
	}
	slices.SortFunc(want, func(a, b notice.Due) int {
		return cmp.Or(bytes.Compare(kv.Key{}.Text(a.Queue), kv.Key{}.Text(b.Queue)), a.At.Compare(b.At), strings.Compare(a.ID, b.ID))
	})
	first := slices.CompactFunc(slices.Clone(want), func(a, b notice.Due) bool { return a.Queue == b.Queue })
	for how, want := range map[notice.Visit][]notice.Due{notice.NextDue: want, notice.NextQueue: first, notice.EndVisit: want[:min(1, len(want))]} {
		var got []notice.Due
		must.OK(t, r.PendingDeliveries(func(d notice.Due) notice.Visit { got = append(got, d); return how }))
		same := func(a, b notice.Due) bool { return a.Queue == b.Queue && a.ID == b.ID && a.At.Equal(b.At) }
		if !slices.EqualFunc(got, want, same) {
			t.Errorf("visit %v: %v, want %v", how, got, want)
		}
	}
}

func TestCheckFindsWrongCountsOfDeliveries(t *testing.T) {
	for name, spoil := range map[string]func(*kv.Tx) error{
		"another number": func(tx *kv.Tx) error {
			return count[notice.Delivery]{countDeliveries, deliveryLogs}.add(tx, logKey(notice.Log{Organization: "lab"}, logPending), 1)
		},
		"of nothing": func(tx *kv.Tx) error {
			return count[notice.Delivery]{countDeliveries, deliveryLogs}.add(tx, logKey(notice.Log{Organization: "absent"}, logEnded), 2)
		},
		"none": func(tx *kv.Tx) error {
			return tx.Delete(countDeliveries, logKey(notice.Log{Organization: "lab"}, logPending))
		},
	} {
		s := openAt(t, newPath(t), Options{})
		update(t, s, func(r app.Tx) error { return r.PutDelivery(pending(1, "lab", "", 0)) })
		update(t, s, func(r app.Tx) error { return spoil(r.(tx).Tx) })
		must.Fail(t, fmt.Sprintf("%s: the check", name), s.Check(t.Context()), countDeliveries)
	}
}
