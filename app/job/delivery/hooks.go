// Package delivery notifies people and programs of jobs that have ended. A change of a job and
// the deliveries that follow from it are stored in one transaction; Sender makes them
// until they succeed or are abandoned, across restarts.
package delivery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
	"molrun/app/job/notice"
)

// MaxHooks is how many webhooks an organization may have.
const MaxHooks = 20

// Submissions stands for the ID of the hook with whose secret the notices are signed
// that submissions ask for.
const Submissions = "submissions"

// Notices manages the webhooks of organizations and shows what was delivered.
type Notices struct {
	store  app.Store
	policy notice.Policy
	now    func() time.Time
}

// NewNotices returns the notices of a store.
func NewNotices(store app.Store, policy notice.Policy, now func() time.Time) *Notices {
	return &Notices{store, policy, now}
}

// HookSettings says how a webhook is to be; nil leaves a part as it is, or takes the default.
type HookSettings struct {
	URL      *string
	Events   *[]string
	Disabled *bool
	Faults   []fault.Field // found while decoding
}

// validate returns all that is wrong with h.
func (h HookSettings) validate(p notice.Policy) error {
	faults := slices.Clone(h.Faults)
	add := func(msg string, loc ...any) {
		faults = append(faults, fault.Field{Loc: append([]any{"body"}, loc...), Msg: msg, Type: "value"})
	}
	if h.URL != nil {
		if msg := p.CheckURL(*h.URL); msg != "" {
			add(msg, "url")
		}
	}
	if h.Events != nil {
		if len(*h.Events) == 0 {
			add("list at least one event, or omit this", "events")
		}
		for i, name := range *h.Events {
			if i < len(known)+1 && !slices.Contains(known, notice.Event(name)) {
				add("use "+strings.Join(knownNames(), ", "), "events", i)
			}
		}
	}
	return fault.List(faults...)
}

var known = []notice.Event{notice.JobStarted, notice.JobCompleted, notice.JobFailed}

func knownNames() (names []string) {
	for _, e := range known {
		names = append(names, string(e))
	}
	return names
}

// change gives a record what h says.
func (h HookSettings) change(rec *notice.Hook) {
	if h.URL != nil {
		rec.URL = *h.URL
	}
	if h.Events != nil {
		rec.Events = nil
		for _, e := range known { // each once, in one order
			if slices.Contains(*h.Events, string(e)) {
				rec.Events = append(rec.Events, e)
			}
		}
	}
	if h.Disabled != nil {
		rec.Disabled = *h.Disabled
	}
}

// ListHooks returns the webhooks of the caller's organization.
func (s *Notices) ListHooks(ctx context.Context, by app.Caller) (all []*notice.Hook, err error) {
	if err := administers(by); err != nil {
		return nil, err
	}
	err = s.store.View(ctx, func(tx app.Tx) (err error) {
		all, err = tx.Hooks(by.Organization)
		return err
	})
	return slices.DeleteFunc(all, func(h *notice.Hook) bool { return h.Submissions }), err
}

// Create adds a webhook. Its secret is never shown again.
func (s *Notices) Create(ctx context.Context, by app.Caller, h HookSettings) (rec *notice.Hook, err error) {
	if err := h.validate(s.policy); err != nil {
		return nil, err
	}
	if err := administers(by); err != nil {
		return nil, err
	}
	now := s.now()
	rec = &notice.Hook{
		ID: newID(now), Organization: by.Organization, Events: notice.DefaultEvents,
		CreatedAt: unit.At(now), CreatedBy: by.Email, Secret: notice.NewSecret(),
	}
	h.change(rec)
	return rec, s.store.Update(ctx, func(tx app.Tx) error {
		all, err := tx.Hooks(by.Organization)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(h *notice.Hook) bool { return h.Submissions })
		if len(all) >= MaxHooks {
			return fault.Errorf(fault.QuotaExceeded, "your organization already has %d webhooks; delete one first", len(all))
		}
		return tx.PutHook(rec)
	})
}

// Change changes a webhook. Only what is given changes.
func (s *Notices) Change(ctx context.Context, by app.Caller, id string, h HookSettings) (*notice.Hook, error) {
	if err := h.validate(s.policy); err != nil {
		return nil, err
	}
	return s.change(ctx, by, id, func(_ app.Tx, rec *notice.Hook) error {
		if rec.Submissions {
			return noHook(id)
		}
		h.change(rec)
		return nil
	})
}

// Rotate gives a webhook a new secret. Until the overlap is over, messages are signed
// with the old one too.
func (s *Notices) Rotate(ctx context.Context, by app.Caller, id string, overlap time.Duration) (*notice.Hook, error) {
	secret := notice.NewSecret()
	return s.change(ctx, by, id, func(_ app.Tx, rec *notice.Hook) error {
		rec.OldSecret, rec.OldUntil = rec.Secret, unit.At(s.now().Add(overlap))
		rec.Secret = secret
		return nil
	})
}

// Test queues a test message, about no job, to a webhook.
func (s *Notices) Test(ctx context.Context, by app.Caller, id string) (d *notice.Delivery, err error) {
	_, err = s.change(ctx, by, id, func(tx app.Tx, rec *notice.Hook) error {
		if rec.Submissions {
			return noHook(id)
		}
		if rec.Disabled {
			return fault.Errorf(fault.Invalid, "webhook %s is disabled; enable it first", id)
		}
		now := s.now()
		d = &notice.Delivery{
			ID: newID(now), Organization: rec.Organization, Hook: rec.ID, Event: notice.Test,
			Target: rec.URL, State: notice.Pending, CreatedAt: unit.At(now), NextAt: unit.At(now),
		}
		d.Message = "msg_" + d.ID
		if d.Body, err = body(notice.Test, now, []byte(`{}`)); err != nil {
			return err
		}
		return tx.PutDelivery(d)
	})
	return d, err
}

// Delete deletes a webhook, with what is still to be delivered to it.
func (s *Notices) Delete(ctx context.Context, by app.Caller, id string) error {
	_, err := s.change(ctx, by, id, func(tx app.Tx, rec *notice.Hook) error {
		if rec.Submissions {
			return noHook(id)
		}
		return tx.DeleteHook(rec.ID)
	})
	return err
}

// change runs fn on a webhook of the caller's organization, and stores it if it is still
// there.
func (s *Notices) change(ctx context.Context, by app.Caller, id string, fn func(app.Tx, *notice.Hook) error) (rec *notice.Hook, err error) {
	if err := administers(by); err != nil {
		return nil, err
	}
	return rec, s.store.Update(ctx, func(tx app.Tx) (err error) {
		if rec, err = s.findHook(tx, by, id); err != nil {
			return err
		}
		if err := fn(tx, rec); err != nil {
			return err
		}
		if _, err := tx.Hook(rec.ID); errors.Is(err, fault.NotFound) && !rec.Submissions {
			return nil // fn deleted it
		}
		return tx.PutHook(rec)
	})
}

// findHook returns a webhook of the caller's organization.
func (s *Notices) findHook(tx app.Tx, by app.Caller, id string) (*notice.Hook, error) {
	if id == Submissions {
		return ofSubmissions(tx, by.Organization, s.now())
	}
	h, err := tx.Hook(id)
	if errors.Is(err, fault.NotFound) || err == nil && (h.Organization != by.Organization || h.Submissions) {
		return nil, noHook(id)
	}
	return h, err
}

func noHook(id string) error {
	return fault.Errorf(fault.NotFound, "there is no webhook %q in your organization; GET /webhooks lists them", id)
}

// ofSubmissions returns the hook with whose secret the notices are signed that
// submissions ask for, a new one if there is none.
func ofSubmissions(tx app.Tx, organization string, now time.Time) (*notice.Hook, error) {
	all, err := tx.Hooks(organization)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(h *notice.Hook) bool { return h.Submissions }); i >= 0 {
		return all[i], nil
	}
	return &notice.Hook{
		ID: newID(now), Organization: organization, Submissions: true,
		CreatedAt: unit.At(now), Secret: notice.NewSecret(),
	}, nil
}

// Log returns the last deliveries to a webhook, newest first.
func (s *Notices) Log(ctx context.Context, by app.Caller, id string, limit int) (all []*notice.Delivery, err error) {
	if err := administers(by); err != nil {
		return nil, err
	}
	err = s.store.View(ctx, func(tx app.Tx) error {
		log := notice.Log{Organization: by.Organization}
		if id != Submissions {
			h, err := s.findHook(tx, by, id)
			if err != nil {
				return err
			}
			log.Hook = h.ID
		}
		for d, err := range tx.Deliveries(log) {
			if err != nil {
				return err
			}
			if all = append(all, d); len(all) == limit {
				break
			}
		}
		return nil
	})
	return all, err
}

// OfJob returns who is notified of a job's end, and the last deliveries. Addresses may hold
// secrets, so only its submitter and admins may see them.
func (s *Notices) OfJob(ctx context.Context, by app.Caller, name string) (targets []string, all []*notice.Delivery, err error) {
	const most = 100
	err = s.store.View(ctx, func(tx app.Tx) error {
		j, err := tx.JobNamed(by.Organization, name)
		switch {
		case errors.Is(err, fault.NotFound):
			return fault.Errorf(fault.NotFound, "there is no job %q in your organization; GET /jobs?organization=true lists them", name)
		case err != nil:
			return err
		case !by.May(j.Email):
			return fault.Errorf(fault.Forbidden, "job %q was submitted by %s; ask them or an admin of the organization", name, j.Email)
		}
		targets = j.Private.Notify
		for d, err := range tx.DeliveriesOf(string(j.ID)) {
			if err != nil {
				return err
			}
			if all = append(all, d); len(all) == most {
				break
			}
		}
		return nil
	})
	return targets, all, err
}

func administers(by app.Caller) error {
	if !by.Administers() {
		return fault.Errorf(fault.Forbidden, "only admins manage webhooks; ask one of your organization, or give %q with a submission", "notify")
	}
	return nil
}
