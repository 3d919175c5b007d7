package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/job/notice"
)

// arrivesWithin is the maximum time until a message arrives at a working receiver, even
// after many failed attempts.
var arrivesWithin = schedule.Longest + time.Minute

// dueMessage is a message that must be delivered.
type dueMessage struct {
	event        notice.Event
	organization string
	job          app.JobID
	name         string
	status       app.Status
	hook, target string // hook is "" if a submission requested the message
	first        bool   // the first of several recipients of the same message
}

func (o *dueMessage) String() string {
	if o == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s of %q to %s", o.event, o.name, receiverOf(o.target))
}

func (s *simulation) addOwed(o *dueMessage) { s.owed = append(s.owed, o) }

// promise records the notifications due for a change of a job. They are due at its start
// and end, but not for jobs of a batch. Submissions request only the one for the end.
func (s *simulation) promise(before, now *app.Job) {
	if now == nil || now.Private.Batch != "" {
		return
	}
	o := dueMessage{organization: now.Organization, job: now.ID, name: now.Name, status: now.Status}
	if !now.StartedAt.IsZero() && (before == nil || before.StartedAt.IsZero()) {
		o.event = notice.JobStarted
		s.owedToHooks(o, true)
	}
	if !now.Status.Finished() || before != nil && before.Status.Finished() {
		return
	}
	o.event = map[app.Status]notice.Event{app.Completed: notice.JobCompleted, app.Failed: notice.JobFailed}[now.Status]
	for i, target := range now.Private.Notify {
		asked := o
		asked.target, asked.first = target, i == 0
		s.addOwed(&asked)
	}
	s.owedToHooks(o, len(now.Private.Notify) == 0)
}

// owedToHooks records the webhooks that must receive a message.
func (s *simulation) owedToHooks(o dueMessage, first bool) {
	for _, h := range s.hooksOf(o.organization) {
		if h.Disabled || !slices.Contains(h.Events, o.event) {
			continue
		}
		one := o
		one.hook, one.target, one.first = h.ID, h.URL, first
		first = false
		s.addOwed(&one)
	}
}

// compareNotices compares the deliveries in the store with the recorded ones, and updates
// their state.
func (s *simulation) compareNotices() error {
	all, err := s.storedDeliveries()
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, d := range all {
		have[d.ID] = true
		old := s.notices[d.ID]
		s.notices[d.ID] = d
		if old == nil {
			err = s.judgeOwed(d)
		} else if !reflect.DeepEqual(old, d) {
			err = s.judgeDelivery(old, d)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.messages.of(d.Message, d.Target), err)
		}
	}
	for id, d := range s.notices {
		if !have[id] {
			return fmt.Errorf("%s is lost", s.messages.of(d.Message, d.Target))
		}
	}
	if len(s.owed) > 0 {
		return fmt.Errorf("no recipient is notified of %s", s.owed[0])
	}
	return nil
}

// checkNotices compares the deliveries if a commit might have changed them.
func (s *simulation) checkNotices(changes []*change) {
	touches := func(c *change) bool { return c.label.verb == "record" || len(c.hooks) > 0 }
	if len(s.owed) == 0 && !slices.ContainsFunc(changes, touches) {
		return
	}
	if err := s.compareNotices(); err != nil {
		s.faultf("%v", err)
	}
}

// storedDeliveries returns all deliveries in the store, oldest first.
func (s *simulation) storedDeliveries() (all []*notice.Delivery, err error) {
	err = s.process.store.View(context.Background(), func(tx app.Tx) error {
		all = nil
		for _, organization := range organizations {
			hooks, err := tx.Hooks(organization)
			if err != nil {
				return err
			}
			have := 0
			for _, h := range append(hooks, &notice.Hook{}) {
				if want := s.hooks[h.ID]; h.ID != "" && !h.Submissions {
					have++
					if want == nil || !reflect.DeepEqual(want, h) {
						return fmt.Errorf("the store has the webhook %+v, but %+v was committed", h, want)
					}
				}
				for d, err := range tx.Deliveries(notice.Log{Organization: organization, Hook: h.ID}) {
					if err != nil {
						return err
					}
					all = append(all, d)
				}
			}
			if want := len(s.hooksOf(organization)); have != want {
				return fmt.Errorf("%s has %d webhooks, but %d were committed", organization, have, want)
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b *notice.Delivery) int { return cmp.Compare(a.ID, b.ID) })
	return all, err
}

// judgeOwed checks that a new delivery is the next one owed.
func (s *simulation) judgeOwed(d *notice.Delivery) error {
	var want *dueMessage
	if len(s.owed) > 0 {
		want = s.owed[0]
		s.owed = s.owed[1:]
	}
	_, known := s.messages.numbers.Load(d.Message)
	var told struct {
		Type notice.Event
		Data struct {
			JobName string
			Status  app.Status
		}
	}
	switch {
	case want == nil || d.Event != want.event || d.Organization != want.organization || d.Job != string(want.job) || d.Hook != want.hook || d.Target != want.target:
		return fmt.Errorf("the delivery is %s of %q to %s, want %s", d.Event, d.JobName, d.Target, want)
	case d.State != notice.Pending || d.Attempts != 0:
		return fmt.Errorf("it begins as %s after %d attempts", d.State, d.Attempts)
	case known == want.first:
		return fmt.Errorf("%s: the ID of its message is not that of one event", want)
	}
	if err := json.Unmarshal(d.Body, &told); err != nil {
		return err
	}
	if told.Type != want.event || told.Data.JobName != want.name || told.Data.Status != want.status {
		return fmt.Errorf("%s is sent as %s", want, d.Body)
	}
	s.owedSince[d.ID] = time.Now()
	if !known {
		s.told++
		s.messages.numbers.Store(d.Message, s.told)
	}
	if _, isMail := notice.Address(d.Target); isMail {
		n, _ := s.messages.numbers.Load(d.Message)
		s.messages.numbers.Store(d.ID, n) // e-mails are looked up by delivery ID
	}
	s.tracef("  to deliver: %s: %s", s.messages.of(d.Message, d.Target), want)
	return nil
}

// judgeDelivery checks a change of a delivery against the receiver's last response.
func (s *simulation) judgeDelivery(old, now *notice.Delivery) error {
	same := *now
	same.State, same.Attempts, same.Status, same.Error, same.NextAt, same.EndedAt, same.Body = old.State, old.Attempts, old.Status, old.Error, old.NextAt, old.EndedAt, old.Body
	late := s.wall().Sub(now.CreatedAt.Time) >= schedule.GiveUpAfter
	switch {
	case old.State != notice.Pending:
		return fmt.Errorf("it has ended as %s, and changes", old.State)
	case !reflect.DeepEqual(old, &same):
		return errors.New("more of it changes than what has become of it")
	case now.Attempts == old.Attempts:
		late = late || time.UnixMilli(s.looked.Load()).Sub(now.CreatedAt.Time) >= schedule.GiveUpAfter
		hook := s.hooks[now.Hook]
		return allow(now.State == notice.Abandoned && (late || hook != nil && hook.Disabled), "it is given up too early")
	case now.Attempts != old.Attempts+1:
		return fmt.Errorf("it has %d attempts after %d", now.Attempts, old.Attempts)
	}
	a, answered := s.receivers.take(s.messages.of(now.Message, now.Target))
	want := notice.Pending
	switch {
	case !answered:
		return fmt.Errorf("it is %s, but the receiver has answered nothing", now.State)
	case a.Error == "":
		want = notice.Delivered
	case a.Status == 410 || late:
		want = notice.Abandoned
	}
	soon := now.NextAt.Before(s.wall().Add(schedule.Longest + time.Second))
	return allow(now.State == want && now.Status == a.Status && (want != notice.Pending || soon && string(now.Body) == string(old.Body)),
		fmt.Sprintf("it is %s after the answer %+v, want %s, to be sent again at %s", now.State, a, want, now.NextAt))
}

// judgePosting checks a message that is about to arrive: it must be due to this receiver,
// and be signed with the receiver's secret.
func (s *simulation) judgePosting(p *posting) error {
	var found *notice.Delivery
	for _, d := range s.notices {
		if d.State == notice.Pending && receiverOf(d.Target) == receiverOf(p.URL) && (d.Message == p.ID || p.letter != nil && p.letter.ID == d.ID) {
			found = d
		}
	}
	switch {
	case found == nil:
		return errors.New("no delivery of it is pending")
	case p.letter != nil:
		return allow(strings.Contains(p.letter.Subject, fmt.Sprintf("%q", found.JobName)) && "mailto:"+p.letter.To == found.Target, "it is another letter")
	case string(p.Body) != string(found.Body):
		return errors.New("it is another message")
	}
	secret := s.signs[found.Organization]
	if found.Hook != "" {
		hook := s.hooks[found.Hook]
		if hook == nil || hook.Disabled {
			return errors.New("its webhook is deleted or disabled")
		}
		secret = hook.Secret
	}
	signature, err := notice.Sign(p.ID, p.Timestamp, p.Body, secret)
	return allow(err == nil && p.URL == found.Target && strings.Contains(p.Signature, signature), "it goes elsewhere, or is not signed with the secret of its receiver")
}

// judgeLate reports messages that should have been delivered long ago.
func (s *simulation) judgeLate() {
	long := func(since time.Time) bool { return time.Since(since) > arrivesWithin }
	if !s.stable() || !long(s.stableFrom) {
		return
	}
	for _, d := range s.notices {
		if d.State != notice.Pending || !long(s.owedSince[d.ID]) {
			continue
		}
		if m, since := s.receivers.of(receiverOf(d.Target)); m.healthy() && long(since) {
			s.faultf("%s has not arrived, although the receiver works for %v", s.messages.of(d.Message, d.Target), time.Since(since))
		}
	}
}

// pending returns the number of deliveries that are pending.
func (s *simulation) pending() (n int) {
	for _, d := range s.notices {
		if d.State == notice.Pending {
			n++
		}
	}
	return n
}

// changeReceiver makes a receiver work, or fail in one of many ways.
func (s *simulation) changeReceiver() {
	names := append([]string{"mailto:all"}, asked...)
	for _, organization := range organizations {
		for _, h := range s.hooksOf(organization) {
			names = append(names, h.URL)
		}
	}
	name, m := receiverOf(names[s.rng.IntN(len(names))]), moods[s.rng.IntN(len(moods))]
	if s.rng.IntN(3) == 0 {
		m = moods[0]
	}
	s.tracef("%s %s", name, m.name)
	s.receivers.become(name, m)
}

// asked lists the webhook addresses for which submissions can request notifications.
var asked = []string{"https://ask1.example/a", "https://ask2.example/b?c=d"}

// randomNotify returns random addresses to notify of a job's end.
func randomNotify(rng *rand.Rand, by app.Caller) (targets []string) {
	all := append([]string{"mailto:" + by.Email}, asked...)
	for _, i := range rng.Perm(len(all))[:max(0, rng.IntN(5)-2)] {
		targets = append(targets, all[i])
	}
	return targets
}
