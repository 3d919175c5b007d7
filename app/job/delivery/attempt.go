package delivery

import (
	"context"
	"errors"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/notice"
)

func (s *Sender) attempt(ctx context.Context, queue, id string) result {
	r := result{queue: queue, id: id}
	send, err := s.prepare(ctx, id)
	switch {
	case err != nil:
		r.err = err
		r.cut = ctx.Err() != nil
		return r
	case send == nil: // nothing to send
		return r
	}
	r.attempt = send(ctx)
	if r.attempt.Error != "" && ctx.Err() != nil {
		r.cut = true
		return r
	}
	// A completed attempt is recorded even if the service is stopping.
	const recordTime = 5 * time.Second
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	r.err = s.record(recording, id, func(d *notice.Delivery) { d.Tried(r.attempt, s.o.Now(), s.o.Schedule) })
	return r
}

// record changes a pending delivery.
func (s *Sender) record(ctx context.Context, id string, change func(*notice.Delivery)) error {
	var tried *notice.Delivery
	err := s.store.Update(ctx, func(tx app.Tx) error {
		tried = nil
		d, err := tx.Delivery(id)
		if errors.Is(err, fault.NotFound) || err == nil && d.State != notice.Pending {
			return nil
		}
		if err != nil {
			return err
		}
		change(d)
		tried = d
		return tx.PutDelivery(d)
	})
	if err == nil && tried != nil {
		s.o.OnAttempt(tried)
	}
	return err
}

// prepare reads a delivery and returns a function that sends it, or nil if it should not
// be sent.
func (s *Sender) prepare(ctx context.Context, id string) (send func(context.Context) notice.Attempt, err error) {
	var d *notice.Delivery
	var hook *notice.Hook
	err = s.store.View(ctx, func(tx app.Tx) (err error) {
		if d, err = tx.Delivery(id); err != nil || d.Hook == "" {
			return err
		}
		hook, err = tx.Hook(d.Hook)
		return err
	})
	switch {
	case errors.Is(err, fault.NotFound) || err == nil && d.State != notice.Pending:
		return nil, nil // deleted along with the hook
	case err != nil:
		return nil, err
	case hook != nil && hook.Disabled:
		return nil, s.record(ctx, id, func(d *notice.Delivery) { d.Abandon("the webhook was disabled", s.o.Now()) })
	}
	if _, isMail := notice.Address(d.Target); isMail {
		return s.prepareMail(ctx, d)
	}
	url := d.Target
	if hook != nil {
		url = hook.URL // it might have changed
	} else if hook, err = s.signer(ctx, d.Organization); err != nil {
		return nil, err
	}
	return func(ctx context.Context) notice.Attempt {
		now := s.o.Now()
		signature, err := notice.Sign(d.Message, now, d.Body, hook.Secrets(now)...)
		if err != nil {
			return notice.Attempt{Error: err.Error()}
		}
		return s.o.Post(ctx, Posting{url, d.Message, now, signature, d.Body})
	}, nil
}

func (s *Sender) prepareMail(ctx context.Context, d *notice.Delivery) (func(context.Context) notice.Attempt, error) {
	if s.o.Mail == nil {
		return nil, s.record(ctx, d.ID, func(d *notice.Delivery) { d.Abandon("this service no longer sends mail", s.o.Now()) })
	}
	return func(ctx context.Context) notice.Attempt {
		l, err := composeEmail(d, s.o.Link)
		if err != nil {
			return notice.Attempt{Error: err.Error()}
		}
		return s.o.Mail(ctx, l)
	}, nil
}

// signer returns the hook whose secret signs the notifications requested by submissions.
// It is created when the first such notification is sent.
func (s *Sender) signer(ctx context.Context, organization string) (hook *notice.Hook, err error) {
	stored := false
	err = s.store.View(ctx, func(tx app.Tx) (err error) {
		if hook, err = submissionsHook(tx, organization, s.o.Now()); err == nil {
			_, err = tx.Hook(hook.ID)
			stored = err == nil
		}
		return err
	})
	if stored || err != nil && !errors.Is(err, fault.NotFound) {
		return hook, err
	}
	return hook, s.store.Update(ctx, func(tx app.Tx) (err error) {
		if hook, err = submissionsHook(tx, organization, s.o.Now()); err != nil {
			return err
		}
		return tx.PutHook(hook)
	})
}
