package outbox

import (
	"molrun/app/base/sortid"
	"molrun/app/job/notice"
	"molrun/storage/kv"
)

// Buckets of notices.
const (
	BucketHooks      = "hooks"
	BucketDeliveries = "deliveries"
)

// Hooks is the table of webhooks.
var Hooks = kv.Table[notice.Hook]{
	Bucket: BucketHooks,
	Read:   readHook,
	Derived: []kv.Derived[notice.Hook]{
		kv.Index[notice.Hook]{Bucket: indexHooksList, Entries: hookList},
		kv.Checksums[notice.Hook]{Bucket: "hooks.checksum", Parts: []string{BucketHooks}},
	},
}

// Deliveries is the table of deliveries.
var Deliveries = kv.Table[notice.Delivery]{
	Bucket: BucketDeliveries,
	Read:   readDelivery,
	Derived: []kv.Derived[notice.Delivery]{
		kv.Index[notice.Delivery]{Bucket: indexDeliveriesLog, Entries: deliveryLog},
		kv.Index[notice.Delivery]{Bucket: indexDeliveriesJob, Entries: deliveryJob},
		kv.Index[notice.Delivery]{Bucket: indexDeliveriesDue, Entries: deliveryDue},
		count[notice.Delivery]{countDeliveries, deliveryLogs},
		kv.Checksums[notice.Delivery]{Bucket: "deliveries.checksum", Parts: []string{BucketDeliveries}},
	},
}

const (
	indexHooksList     = "hooks.list"
	indexDeliveriesLog = "deliveries.log"
	indexDeliveriesJob = "deliveries.job"
	indexDeliveriesDue = "deliveries.due"
	countDeliveries    = "deliveries.count"
)

// hookList: organization, id.
func hookList(id sortid.ID, h *notice.Hook) []kv.Entry {
	return []kv.Entry{{Key: kv.Key{}.Text(h.Organization).ID(id)}}
}

// Parts of a log.
const (
	logAll     = "*"
	logPending = "p"
	logEnded   = "e"
)

// deliveryLog: organization, hook, part of the log, id.
func deliveryLog(id sortid.ID, d *notice.Delivery) []kv.Entry {
	all := []kv.Entry{{Key: logKey(d.Log(), logAll).ID(id)}}
	if d.State != notice.Pending {
		all = append(all, kv.Entry{Key: logKey(d.Log(), logEnded).ID(id)})
	}
	return all
}

// logKey returns the prefix of a part of a log, or with "" of all parts.
func logKey(l notice.Log, part string) kv.Key {
	return append(kv.Key{}.Text(l.Organization).Text(l.Hook), part...)
}

// deliveryJob: job, id; only what its submission asked for.
func deliveryJob(id sortid.ID, d *notice.Delivery) []kv.Entry {
	if d.Hook != "" || d.Job == "" {
		return nil
	}
	return []kv.Entry{{Key: kv.Key{}.Text(d.Job).ID(id)}}
}

// deliveryDue: lane, time of the next attempt, id; only pending ones.
func deliveryDue(id sortid.ID, d *notice.Delivery) []kv.Entry {
	if d.State != notice.Pending {
		return nil
	}
	return []kv.Entry{{Key: kv.Key{}.Text(d.Lane()).Time(d.NextAt.Time).ID(id)}}
}

func readDue(k kv.Key) (d notice.Due, err error) {
	if d.Lane, k, err = k.CutText(); err != nil {
		return d, err
	}
	if d.At, k, err = k.CutTime(); err != nil {
		return d, err
	}
	id, err := k.LastID()
	d.ID = id.String()
	return d, err
}

// deliveryLogs returns the part of a log in which a delivery counts.
func deliveryLogs(d *notice.Delivery) kv.Key {
	if d.State == notice.Pending {
		return logKey(d.Log(), logPending)
	}
	return logKey(d.Log(), logEnded)
}
