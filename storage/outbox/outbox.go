// Package outbox keeps webhooks and the deliveries of notices. A change of a job adds
// its deliveries in the transaction that stores it, so none is lost and none is made up.
package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/app/job/notice"
	"molrun/app/job/notify"
	"molrun/storage/kv"
)

// Records implements notice.Tx on one transaction.
type Records struct{ *kv.Tx }

// Note adds the deliveries of a change to those who want notice of it. Nobody
// does of most changes.
func Note(t *kv.Tx, old *app.Job, e app.EncodedJob) error {
	for _, told := range notify.Of(old, e) {
		all, err := told.AsAsked()
		if err != nil {
			return err
		}
		hooks, err := Records{t}.Hooks(e.Job.Organization)
		if err != nil {
			return err
		}
		for _, h := range hooks {
			if !h.Wants(told.Event) {
				continue
			}
			d, err := told.To(h)
			if err != nil {
				return err
			}
			all = append(all, d)
		}
		for _, d := range all {
			d.ID = newID(t, d.CreatedAt.Time)
			if err := (Records{t}).PutDelivery(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// newID returns an ID above those of all deliveries of the same moment: what happens
// first is sent first, and is first in the log.
func newID(t *kv.Tx, at time.Time) string {
	var highest sortid.ID
	moment := sortid.First(at)
	prefix := kv.Key(moment[:6])
	for k := range t.Descend(BucketDeliveries, prefix, prefix.End()) {
		highest = sortid.ID(k)
		break
	}
	return sortid.NewSource(highest).Next(at)
}

// Hooks returns the hooks of an organization.
func (t Records) Hooks(organization string) (all []*notice.Hook, err error) {
	for k := range t.Ascend(indexHooksList, kv.Key{}.Text(organization)) {
		id, err := k.LastID()
		if err != nil {
			return nil, err
		}
		h, err := readHook(t.Tx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

// Hook returns a hook.
func (t Records) Hook(id string) (*notice.Hook, error) {
	key, err := sortid.Parse(id)
	if err != nil {
		return nil, noHook(id)
	}
	return readHook(t.Tx, key)
}

func readHook(t *kv.Tx, id sortid.ID) (*notice.Hook, error) {
	value := t.Bucket(BucketHooks).Get(id[:])
	if value == nil {
		return nil, noHook(id.String())
	}
	return decoded[notice.Hook]("webhook", id, value)
}

func noHook(id string) error { return fault.Errorf(fault.NotFound, "there is no webhook %s", id) }

// PutHook inserts or replaces a hook.
func (t Records) PutHook(h *notice.Hook) error {
	id, err := sortid.Parse(h.ID)
	if err != nil {
		return fmt.Errorf("put webhook %q: %w", h.ID, err)
	}
	return put(t.Tx, &Hooks, id, h)
}

// DeleteHook deletes a hook with its deliveries.
func (t Records) DeleteHook(id string) error {
	h, err := t.Hook(id)
	if err != nil {
		return err
	}
	for k := range t.Ascend(indexDeliveriesLog, logKey(notice.Log{Organization: h.Organization, Hook: h.ID}, "")) {
		if err := t.deleteAt(k); err != nil {
			return err
		}
	}
	key, _ := sortid.Parse(id) // it was found
	return Hooks.Delete(t.Tx, key, h)
}

// Delivery returns a delivery.
func (t Records) Delivery(id string) (*notice.Delivery, error) {
	key, err := sortid.Parse(id)
	if err != nil {
		return nil, noDelivery(id)
	}
	return readDelivery(t.Tx, key)
}

func readDelivery(t *kv.Tx, id sortid.ID) (*notice.Delivery, error) {
	value := t.Bucket(BucketDeliveries).Get(id[:])
	if value == nil {
		return nil, noDelivery(id.String())
	}
	return decoded[notice.Delivery]("delivery", id, value)
}

func noDelivery(id string) error { return fault.Errorf(fault.NotFound, "there is no delivery %s", id) }

// PutDelivery inserts or replaces a delivery, within the bounds of its log.
func (t Records) PutDelivery(d *notice.Delivery) error {
	id, err := sortid.Parse(d.ID)
	if err != nil {
		return fmt.Errorf("put delivery %q: %w", d.ID, err)
	}
	waiting := countAt(t.Tx, countDeliveries, logKey(d.Log(), logPending))
	if d.State == notice.Pending && waiting >= notice.MaxPending && t.Bucket(BucketDeliveries).Get(id[:]) == nil {
		d.GiveUp(fmt.Sprintf("given up at once: %d others wait for this receiver", waiting), d.CreatedAt.Time)
	}
	if err := put(t.Tx, &Deliveries, id, d); err != nil {
		return err
	}
	return t.trim(d)
}

// trim forgets the oldest ended deliveries of a log that has too many.
func (t Records) trim(d *notice.Delivery) error {
	if d.State == notice.Pending {
		return nil
	}
	surplus := countAt(t.Tx, countDeliveries, logKey(d.Log(), logEnded)) - notice.MaxEnded
	for k := range t.Ascend(indexDeliveriesLog, logKey(d.Log(), logEnded)) {
		if surplus--; surplus < 0 {
			break
		}
		if err := t.deleteAt(k); err != nil {
			return err
		}
	}
	return nil
}

// DeleteDelivery deletes a delivery.
func (t Records) DeleteDelivery(id string) error {
	d, err := t.Delivery(id)
	if err != nil {
		return err
	}
	key, _ := sortid.Parse(id) // it was found
	return Deliveries.Delete(t.Tx, key, d)
}

// deleteAt deletes the delivery of an index entry. It has two in the log, so it may be
// gone.
func (t Records) deleteAt(k kv.Key) error {
	id, err := k.LastID()
	if err != nil {
		return err
	}
	d, err := present(readDelivery(t.Tx, id))
	if err != nil || d == nil {
		return err
	}
	return Deliveries.Delete(t.Tx, id, d)
}

// Deliveries walks a log, newest first.
func (t Records) Deliveries(of notice.Log) iter.Seq2[*notice.Delivery, error] {
	return t.deliveriesAt(indexDeliveriesLog, logKey(of, logAll))
}

// DeliveriesOf walks the deliveries that a job's submission asked for, newest first.
func (t Records) DeliveriesOf(job string) iter.Seq2[*notice.Delivery, error] {
	return t.deliveriesAt(indexDeliveriesJob, kv.Key{}.Text(job))
}

func (t Records) deliveriesAt(index string, prefix kv.Key) iter.Seq2[*notice.Delivery, error] {
	return func(yield func(*notice.Delivery, error) bool) {
		for k := range t.Descend(index, prefix, prefix.End()) {
			id, err := k.LastID()
			var d *notice.Delivery
			if err == nil {
				d, err = readDelivery(t.Tx, id)
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// PendingDeliveries visits what is to be delivered, by lane.
func (t Records) PendingDeliveries(visit func(notice.Due) notice.Visit) error {
	w := t.Walk(indexDeliveriesDue)
	for w.Seek(nil); w.Key != nil; {
		d, err := readDue(w.Key)
		if err != nil {
			return fmt.Errorf("%s: %w", indexDeliveriesDue, err)
		}
		switch visit(d) {
		case notice.EndVisit:
			return nil
		case notice.NextLane:
			lane := kv.Key{}.Text(d.Lane)
			w.Seek(append(lane, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)) // behind all times
		default:
			w.Next()
		}
	}
	return nil
}

func decoded[T any](noun string, id sortid.ID, value []byte) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(value, v); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", noun, id, err)
	}
	return v, nil
}

// put stores a record as JSON.
func put[T any](t *kv.Tx, table *kv.Table[T], id sortid.ID, v *T) error {
	old, err := present(table.Read(t, id))
	if err != nil {
		return err
	}
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("put into %s: %w", table.Bucket, err)
	}
	return table.Put(t, id, value, old, v)
}

// present turns NotFound into nil.
func present[T any](v *T, err error) (*T, error) {
	if errors.Is(err, fault.NotFound) {
		return nil, nil
	}
	return v, err
}
