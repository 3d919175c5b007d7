package storage

import (
	"fmt"
	"iter"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/app/job/delivery"
	"molrun/app/job/notice"
	"molrun/storage/kv"
)

// addDeliveries queues the notifications of a change that receivers requested; most
// changes have none. It runs in the transaction that stores the change, so that they are
// stored if and only if the change is.
func addDeliveries(t *kv.Tx, old *app.Job, e app.EncodedJob) error {
	for _, event := range delivery.EventsOf(old, e) {
		all, err := event.RequestedDeliveries()
		if err != nil {
			return err
		}
		hooks, err := newTx(t).Hooks(e.Job.Organization)
		if err != nil {
			return err
		}
		for _, h := range hooks {
			if !h.Wants(event.Event) {
				continue
			}
			d, err := event.DeliveryTo(h)
			if err != nil {
				return err
			}
			all = append(all, d)
		}
		for _, d := range all {
			d.ID = newDeliveryID(t, d.CreatedAt.Time)
			if err := newTx(t).PutDelivery(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// newDeliveryID returns an ID greater than those of all deliveries of the same
// millisecond, so that deliveries are sent and logged in the order of their events.
func newDeliveryID(t *kv.Tx, at time.Time) string {
	var highest sortid.ID
	moment := sortid.First(at)
	prefix := kv.Key(moment[:6])
	for k := range t.Descend(bucketDeliveries, prefix, prefix.End()) {
		highest = sortid.ID(k)
		break
	}
	return sortid.NewSource(highest).Next(at)
}

// Hooks returns the hooks of an organization.
func (t tx) Hooks(organization string) (all []*notice.Hook, err error) {
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
func (t tx) Hook(id string) (*notice.Hook, error) {
	key, err := sortid.Parse(id)
	if err != nil {
		return nil, noHook(id)
	}
	return readHook(t.Tx, key)
}

func readHook(t *kv.Tx, id sortid.ID) (*notice.Hook, error) {
	value := t.Bucket(bucketHooks).Get(id[:])
	if value == nil {
		return nil, noHook(id.String())
	}
	return decodedRecord[notice.Hook]("webhook", id, value)
}

func noHook(id string) error { return fault.Errorf(fault.NotFound, "there is no webhook %s", id) }

// PutHook inserts or replaces a hook.
func (t tx) PutHook(h *notice.Hook) error {
	id, err := sortid.Parse(h.ID)
	if err != nil {
		return fmt.Errorf("put webhook %q: %w", h.ID, err)
	}
	return putRecord(t.Tx, &hooks, id, h)
}

// DeleteHook deletes a hook with its deliveries.
func (t tx) DeleteHook(id string) error {
	h, err := t.Hook(id)
	if err != nil {
		return err
	}
	for k := range t.Ascend(indexDeliveriesLog, logKey(notice.Log{Organization: h.Organization, Hook: h.ID}, "")) {
		if err := t.deleteAt(k); err != nil {
			return err
		}
	}
	key, _ := sortid.Parse(id) // cannot fail: Hook parsed it
	return hooks.Delete(t.Tx, key, h)
}

// Delivery returns a delivery.
func (t tx) Delivery(id string) (*notice.Delivery, error) {
	key, err := sortid.Parse(id)
	if err != nil {
		return nil, noDelivery(id)
	}
	return readDelivery(t.Tx, key)
}

func readDelivery(t *kv.Tx, id sortid.ID) (*notice.Delivery, error) {
	value := t.Bucket(bucketDeliveries).Get(id[:])
	if value == nil {
		return nil, noDelivery(id.String())
	}
	return decodedRecord[notice.Delivery]("delivery", id, value)
}

func noDelivery(id string) error { return fault.Errorf(fault.NotFound, "there is no delivery %s", id) }

// PutDelivery inserts or replaces a delivery, within the limits of its log.
func (t tx) PutDelivery(d *notice.Delivery) error {
	id, err := sortid.Parse(d.ID)
	if err != nil {
		return fmt.Errorf("put delivery %q: %w", d.ID, err)
	}
	waiting := countAt(t.Tx, countDeliveries, logKey(d.Log(), logPending))
	if d.State == notice.Pending && waiting >= notice.MaxPending && t.Bucket(bucketDeliveries).Get(id[:]) == nil {
		d.Abandon(fmt.Sprintf("abandoned: %d other deliveries are pending for this receiver", waiting), d.CreatedAt.Time)
	}
	if err := putRecord(t.Tx, &deliveries, id, d); err != nil {
		return err
	}
	return t.trim(d)
}

// trim deletes the oldest finished deliveries of a log that exceeds its limit.
func (t tx) trim(d *notice.Delivery) error {
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
func (t tx) DeleteDelivery(id string) error {
	d, err := t.Delivery(id)
	if err != nil {
		return err
	}
	key, _ := sortid.Parse(id) // cannot fail: Delivery parsed it
	return deliveries.Delete(t.Tx, key, d)
}

// deleteAt deletes the delivery of an index entry. A delivery can have two entries in the
// log, so it might already be deleted.
func (t tx) deleteAt(k kv.Key) error {
	id, err := k.LastID()
	if err != nil {
		return err
	}
	d, err := present(readDelivery(t.Tx, id))
	if err != nil || d == nil {
		return err
	}
	return deliveries.Delete(t.Tx, id, d)
}

// Deliveries iterates over a log, newest first.
func (t tx) Deliveries(of notice.Log) iter.Seq2[*notice.Delivery, error] {
	return t.deliveriesAt(indexDeliveriesLog, logKey(of, logAll))
}

// DeliveriesOf iterates over the deliveries requested when a job was submitted, newest
// first.
func (t tx) DeliveriesOf(job string) iter.Seq2[*notice.Delivery, error] {
	return t.deliveriesAt(indexDeliveriesJob, kv.Key{}.Text(job))
}

func (t tx) deliveriesAt(index string, prefix kv.Key) iter.Seq2[*notice.Delivery, error] {
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

// PendingDeliveries visits the pending deliveries, queue by queue.
func (t tx) PendingDeliveries(visit func(notice.Due) notice.Visit) error {
	w := t.Walk(indexDeliveriesDue)
	for w.Seek(nil); w.Key != nil; {
		d, err := readDue(w.Key)
		if err != nil {
			return fmt.Errorf("%s: %w", indexDeliveriesDue, err)
		}
		switch visit(d) {
		case notice.EndVisit:
			return nil
		case notice.NextQueue:
			queue := kv.Key{}.Text(d.Queue)
			w.Seek(append(queue, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)) // above all times of this queue
		default:
			w.Next()
		}
	}
	return nil
}

const (
	indexHooksList     = "hooks.list"
	indexDeliveriesLog = "deliveries.log"
	indexDeliveriesJob = "deliveries.job"
	indexDeliveriesDue = "deliveries.due"
	countDeliveries    = "deliveries.count"
)

// hookList indexes hooks by organization and id.
func hookList(id sortid.ID, h *notice.Hook) []kv.Entry {
	return []kv.Entry{{Key: kv.Key{}.Text(h.Organization).ID(id)}}
}

// Parts of a log.
const (
	logAll     = "*"
	logPending = "p"
	logEnded   = "e"
)

// deliveryLog indexes deliveries by organization, hook, part of the log and id.
func deliveryLog(id sortid.ID, d *notice.Delivery) []kv.Entry {
	all := []kv.Entry{{Key: logKey(d.Log(), logAll).ID(id)}}
	if d.State != notice.Pending {
		all = append(all, kv.Entry{Key: logKey(d.Log(), logEnded).ID(id)})
	}
	return all
}

// logKey returns the prefix of a part of a log, or of the whole log if part is "".
func logKey(l notice.Log, part string) kv.Key {
	return append(kv.Key{}.Text(l.Organization).Text(l.Hook), part...)
}

// deliveryJob indexes by job, id the deliveries that were requested when the job was
// submitted.
func deliveryJob(id sortid.ID, d *notice.Delivery) []kv.Entry {
	if d.Hook != "" || d.Job == "" {
		return nil
	}
	return []kv.Entry{{Key: kv.Key{}.Text(d.Job).ID(id)}}
}

// deliveryDue indexes pending deliveries by queue, time of the next attempt and id.
func deliveryDue(id sortid.ID, d *notice.Delivery) []kv.Entry {
	if d.State != notice.Pending {
		return nil
	}
	return []kv.Entry{{Key: kv.Key{}.Text(d.Queue()).Time(d.NextAt.Time).ID(id)}}
}

func readDue(k kv.Key) (d notice.Due, err error) {
	if d.Queue, k, err = k.CutText(); err != nil {
		return d, err
	}
	if d.At, k, err = k.CutTime(); err != nil {
		return d, err
	}
	id, err := k.LastID()
	d.ID = id.String()
	return d, err
}

// deliveryLogs returns the key under which a delivery is counted: its log, and whether it
// is pending.
func deliveryLogs(d *notice.Delivery) kv.Key {
	if d.State == notice.Pending {
		return logKey(d.Log(), logPending)
	}
	return logKey(d.Log(), logEnded)
}
