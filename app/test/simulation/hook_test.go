package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"molrun/app/base/fault"
	"molrun/app/job/notice"
	"molrun/app/job/notify"
)

// maxHooks bounds the number of webhooks, beyond which few are made.
const maxHooks = 4

// hookUse is what an admin does with a webhook.
type hookUse struct {
	id    string // of the one to change, to test, or that was made
	asked notify.Hook
}

// hookChange is a webhook after a transaction; now is nil if it was deleted.
type hookChange struct {
	id  string
	now *notice.Hook
}

// forbidden are addresses to which nothing may be sent.
var forbidden = []string{"https://127.0.0.1/", "https://[::1]:8443/x", "https://10.1.2.3/", "http://open.example/", "https://169.254.169.254/meta"}

// manageHook has a user make, change, rotate, test or delete a webhook. Only admins may.
func (s *simulation) manageHook() {
	s.up()
	if s.process == nil {
		return
	}
	r := &request{name: "a webhook", hook: &hookUse{}, by: admins[s.rng.IntN(len(admins))]}
	if s.rng.IntN(6) == 0 {
		r.by = users[s.rng.IntN(len(users))]
	}
	all := s.hooksOf(r.by.Organization)
	if s.rng.IntN(8) == 0 {
		all = slices.SortedFunc(maps.Values(s.hooks), byID)
	}
	if s.rng.IntN(2) == 0 {
		all = slices.DeleteFunc(all, func(h *notice.Hook) bool { return !s.waitsFor(h) })
	}
	verbs := []string{"change", "change", "rotate", "test", "test", "unhook"}
	verb := "hook"
	if len(all) > 0 && (len(s.hooks) >= maxHooks || s.rng.IntN(3) > 0) {
		verb = verbs[s.rng.IntN(len(verbs))]
		r.hook.id = all[s.rng.IntN(len(all))].ID
	}
	r.label.verb = verb
	if verb == "hook" || verb == "change" {
		r.hook.asked = s.randomHook(r.hook.id)
	}
	s.send(r)
}

// waitsFor reports whether a message has not arrived at a webhook.
func (s *simulation) waitsFor(h *notice.Hook) bool {
	for _, d := range s.notices {
		if d.Hook == h.ID && d.State == notice.Pending {
			return true
		}
	}
	return false
}

func byID(a, b *notice.Hook) int {
	if a.ID < b.ID {
		return -1
	}
	return 1
}

// randomHook returns how a webhook is to be. Its host never changes.
func (s *simulation) randomHook(id string) (h notify.Hook) {
	if id == "" || s.rng.IntN(2) == 0 {
		host := fmt.Sprintf("hook%d.example", s.sends)
		if old := s.hooks[id]; old != nil {
			host = receiverOf(old.URL)
		}
		url := fmt.Sprintf("https://%s/%d", host, s.sends)
		if s.rng.IntN(8) == 0 {
			url = forbidden[s.rng.IntN(len(forbidden))]
		}
		h.URL = &url
	}
	if s.rng.IntN(2) == 0 {
		h.Events = &[]string{"job.started", "job.completed", "job.failed"}
	}
	if id != "" {
		disabled := s.rng.IntN(3) == 0
		h.Disabled = &disabled
	}
	return h
}

// hooksOf returns the webhooks of an organization, oldest first.
func (s *simulation) hooksOf(organization string) (all []*notice.Hook) {
	for _, h := range s.hooks {
		if h.Organization == organization {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, byID)
	return all
}

func (r *request) callHook(ctx context.Context, p *process) (err error) {
	switch use := r.hook; r.label.verb {
	case "hook":
		var made *notice.Hook
		if made, err = p.Notices.Create(ctx, r.by, use.asked); err == nil {
			use.id = made.ID
		}
	case "change":
		_, err = p.Notices.Change(ctx, r.by, use.id, use.asked)
	case "rotate":
		_, err = p.Notices.Rotate(ctx, r.by, use.id, time.Minute)
	case "test":
		_, err = p.Notices.Test(ctx, r.by, use.id)
	case "unhook":
		err = p.Notices.Delete(ctx, r.by, use.id)
	}
	return err
}

// expectOfHook returns the answer to a request that never reaches the store's Update.
func (r *request) expectOfHook() *answer {
	switch url := r.hook.asked.URL; {
	case url != nil && slices.Contains(forbidden, *url):
		return &answer{code: fault.Invalid}
	case !r.by.Administers():
		return &answer{code: fault.Forbidden}
	}
	return nil
}

// expectedOfHook returns the answer to a request when the store runs it.
func (r *request) expectedOfHook(s *simulation) answer {
	h := s.hooks[r.hook.id]
	switch {
	case r.label.verb == "hook":
	case h == nil || h.Organization != r.by.Organization:
		return answer{code: fault.NotFound}
	case r.label.verb == "test" && h.Disabled:
		return answer{code: fault.Invalid}
	case r.label.verb == "test":
		s.owe(&owed{event: notice.Test, organization: h.Organization, hook: h.ID, target: h.URL})
	}
	return answer{}
}

// applyHooks checks what a commit does to webhooks.
func (s *simulation) applyHooks(c *change) {
	for _, h := range c.hooks {
		if err := s.judgeHook(c, s.hooks[h.id], h.now); err != nil {
			s.faultf("%s: a webhook: %v", c.label, err)
		}
		if h.now != nil {
			s.hooks[h.id] = h.now
			s.secrets[h.now.Secret] = h.id
			continue
		}
		delete(s.hooks, h.id)
		maps.DeleteFunc(s.notices, func(_ string, d *notice.Delivery) bool { return d.Hook == h.id })
	}
}

func (s *simulation) judgeHook(c *change, old, now *notice.Hook) error {
	r := s.requests[c.label]
	switch {
	case r == nil || r.hook == nil:
		return errors.New("it changes without a request")
	case now == nil:
		return allow(r.label.verb == "unhook" && old.ID == r.hook.id, "another one is deleted")
	case old == nil && r.label.verb != "hook" || old != nil && (r.label.verb == "hook" || old.ID != r.hook.id):
		return errors.New("another one changes")
	}
	want := notice.Hook{Organization: r.by.Organization, Events: []notice.Event{notice.JobCompleted, notice.JobFailed}, CreatedBy: r.by.Email}
	if old != nil {
		want = *old
	}
	asked := r.hook.asked
	if asked.URL != nil {
		want.URL = *asked.URL
	}
	if asked.Events != nil {
		want.Events = []notice.Event{notice.JobStarted, notice.JobCompleted, notice.JobFailed}
	}
	if asked.Disabled != nil {
		want.Disabled = *asked.Disabled
	}
	same := now.Organization == want.Organization && now.URL == want.URL && slices.Equal(now.Events, want.Events) && now.Disabled == want.Disabled
	if old != nil {
		same = same && (now.Secret == old.Secret) == (r.label.verb != "rotate")
	}
	return allow(same, fmt.Sprintf("it is %+v, want %+v", now, want))
}

// makeSigners gives every organization what signs the messages that submissions ask for, once.
func (s *site) makeSigners(notices *notify.Notices) error {
	if s.signs != nil {
		return nil
	}
	s.signs = map[string]string{}
	for _, by := range admins {
		h, err := notices.Rotate(context.Background(), by, notify.Submissions, 0)
		if err != nil {
			return err
		}
		s.signs[h.Secret] = by.Organization
	}
	return nil
}
