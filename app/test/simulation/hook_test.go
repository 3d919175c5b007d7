package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/job/delivery"
	"molrun/app/job/notice"
)

// maxHooks is the maximum number of webhooks in a simulation.
const maxHooks = 4

// hookUse is an admin's request to create, change or delete a webhook.
type hookUse struct {
	id    string // the webhook to change or delete
	asked delivery.HookSettings
}

// hookChange is a webhook after a transaction; now is nil if it was deleted.
type hookChange struct {
	id  string
	now *notice.Hook
}

// manageHook has an admin create, change or delete a webhook, preferably one with a
// pending message.
func (s *simulation) manageHook() {
	s.up()
	if s.process == nil {
		return
	}
	r := &request{label: label{verb: "hook"}, name: "a webhook", hook: &hookUse{}, by: admins[s.rng.IntN(len(admins))]}
	all := s.hooksOf(r.by.Organization)
	if s.rng.IntN(2) == 0 {
		all = slices.DeleteFunc(all, func(h *notice.Hook) bool { return !s.waitsFor(h) })
	}
	switch {
	case len(all) > 0 && (len(s.hooks) >= maxHooks || s.rng.IntN(3) > 0):
		r.label.verb = []string{"change", "unhook"}[s.rng.IntN(2)]
		r.hook.id = all[s.rng.IntN(len(all))].ID
		disabled := s.rng.IntN(2) == 0
		r.hook.asked.Disabled = &disabled
	case len(s.hooks) >= maxHooks:
		return
	default:
		url := fmt.Sprintf("https://hook%d.example/", s.sends)
		r.hook.asked.URL, r.hook.asked.Events = &url, &[]string{"job.started", "job.completed", "job.failed"}
	}
	s.send(r)
}

// waitsFor reports whether a webhook has a message that has not been delivered.
func (s *simulation) waitsFor(h *notice.Hook) bool {
	for _, d := range s.notices {
		if d.Hook == h.ID && d.State == notice.Pending {
			return true
		}
	}
	return false
}

// hooksOf returns the webhooks of an organization, oldest first.
func (s *simulation) hooksOf(organization string) (all []*notice.Hook) {
	for _, h := range s.hooks {
		if h.Organization == organization {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b *notice.Hook) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (r *request) callHook(ctx context.Context, p *process) (err error) {
	switch use := r.hook; r.label.verb {
	case "hook":
		_, err = p.Notices.Create(ctx, r.by, use.asked)
	case "change":
		_, err = p.Notices.Change(ctx, r.by, use.id, use.asked)
	case "unhook":
		err = p.Notices.Delete(ctx, r.by, use.id)
	}
	return err
}

// expectedOfHook returns the expected response to a request at the time when the store
// runs it.
func (r *request) expectedOfHook(s *simulation) answer {
	if r.hook.id != "" && s.hooks[r.hook.id] == nil {
		return answer{code: fault.NotFound}
	}
	return answer{}
}

// applyHooks checks the effect of a commit on webhooks, and records it.
func (s *simulation) applyHooks(c *change) {
	for _, h := range c.hooks {
		if err := s.judgeHook(c, s.hooks[h.id], h.now); err != nil {
			s.faultf("%s: a webhook: %v", c.label, err)
		}
		if h.now != nil {
			s.hooks[h.id] = h.now
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
	case old != nil && old.ID != r.hook.id:
		return errors.New("another one changes")
	case r.label.verb == "unhook":
		return allow(now == nil, "it is not deleted")
	case r.label.verb == "change":
		want := *old
		want.Disabled = *r.hook.asked.Disabled
		return allow(now != nil && fmt.Sprint(want) == fmt.Sprint(*now), "more of it changes than was asked for")
	}
	return allow(old == nil && now != nil && now.Organization == r.by.Organization && now.URL == *r.hook.asked.URL, "it is another one than was asked for")
}

// makeSigners creates, on the first start, the secret with which each organization signs
// messages requested by submissions.
func (s *site) makeSigners(notices *delivery.Webhooks) error {
	if s.signs != nil {
		return nil
	}
	s.signs = map[string]string{}
	for _, by := range admins {
		h, err := notices.Rotate(context.Background(), by, delivery.Submissions, 0)
		if err != nil {
			return err
		}
		s.signs[by.Organization] = h.Secret
	}
	return nil
}
