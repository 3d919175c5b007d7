// Package delivery notifies people and programs when jobs start or end. A change of a job
// and the resulting deliveries are stored in one transaction; Sender attempts them until
// they succeed or are abandoned, across restarts.
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

// MaxHooks is the maximum number of webhooks of an organization.
const MaxHooks = 20

// Submissions is used in place of the ID of the hook whose secret signs the notifications
// requested by submissions.
const Submissions = "submissions"

// Webhooks manages the webhooks of organizations and lists deliveries.
type Webhooks struct {
	store  app.Store
	policy notice.Policy
	now    func() time.Time
}

// NewNotices returns the webhooks of the organizations in store.
func NewNotices(store app.Store, policy notice.Policy, now func() time.Time) *Webhooks {
	return &Webhooks{store, policy, now}
}

// HookSettings holds the settings of a webhook. A nil field keeps the current value or,
// in a new webhook, means the default.
type HookSettings struct {
	URL      *string
	Events   *[]string
	Disabled *bool
	Faults   []fault.Field // found during decoding
}

// validate returns all validation errors of h.
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

// change applies h to a record.
func (h HookSettings) change(rec *notice.Hook) {
	if h.URL != nil {
		rec.URL = *h.URL
	}
	if h.Events != nil {
		rec.Events = nil
		for _, e := range known { // removes duplicates and sets the order
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
func (s *Webhooks) ListHooks(ctx context.Context, by app.Caller) (all []*notice.Hook, err error) {
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
func (s *Webhooks) Create(ctx context.Context, by app.Caller, h HookSettings) (rec *notice.Hook, err error) {
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

// Change changes a webhook. Fields that are not given stay unchanged.
func (s *Webhooks) Change(ctx context.Context, by app.Caller, id string, h HookSettings) (*notice.Hook, error) {
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

// Rotate sets a new secret for a webhook. Until the overlap ends, messages are also
// signed with the old one.
func (s *Webhooks) Rotate(ctx context.Context, by app.Caller, id string, overlap time.Duration) (*notice.Hook, error) {
	secret := notice.NewSecret()
	return s.change(ctx, by, id, func(_ app.Tx, rec *notice.Hook) error {
		rec.OldSecret, rec.OldUntil = rec.Secret, unit.At(s.now().Add(overlap))
		rec.Secret = secret
		return nil
	})
}

// Test queues a test message, unrelated to any job, for a webhook.
func (s *Webhooks) Test(ctx context.Context, by app.Caller, id string) (d *notice.Delivery, err error) {
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

// Delete deletes a webhook and its pending deliveries.
func (s *Webhooks) Delete(ctx context.Context, by app.Caller, id string) error {
	_, err := s.change(ctx, by, id, func(tx app.Tx, rec *notice.Hook) error {
		if rec.Submissions {
			return noHook(id)
		}
		return tx.DeleteHook(rec.ID)
	})
	return err
}

// change runs fn on a webhook of the caller's organization and stores it unless fn has
// deleted it.
func (s *Webhooks) change(ctx context.Context, by app.Caller, id string, fn func(app.Tx, *notice.Hook) error) (rec *notice.Hook, err error) {
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

func (s *Webhooks) findHook(tx app.Tx, by app.Caller, id string) (*notice.Hook, error) {
	if id == Submissions {
		return submissionsHook(tx, by.Organization, s.now())
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

// submissionsHook returns the hook whose secret signs the notifications requested by
// submissions, or a new one if there is none.
func submissionsHook(tx app.Tx, organization string, now time.Time) (*notice.Hook, error) {
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

// Log returns the latest deliveries to a webhook, newest first.
func (s *Webhooks) Log(ctx context.Context, by app.Caller, id string, limit int) (all []*notice.Delivery, err error) {
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

// OfJob returns the recipients to notify of a job's end, and the latest deliveries to
// them. Addresses can contain secrets, so only the submitter and admins are allowed to
// see them.
func (s *Webhooks) OfJob(ctx context.Context, by app.Caller, name string) (targets []string, all []*notice.Delivery, err error) {
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
