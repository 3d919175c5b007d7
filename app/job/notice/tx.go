package notice

import (
	"iter"
	"time"
)

// Tx reads and changes the records of notifications. Reading a missing one returns
// NotFound. Changing a job adds its deliveries automatically in the same transaction.
type Tx interface {
	// Hooks returns the hooks of an organization, oldest first.
	Hooks(organization string) ([]*Hook, error)
	Hook(id string) (*Hook, error)
	PutHook(h *Hook) error
	// DeleteHook deletes a hook and all its deliveries.
	DeleteHook(id string) error

	Delivery(id string) (*Delivery, error)
	// PutDelivery inserts or replaces a delivery. A new one that exceeds MaxPending is
	// abandoned; when MaxEnded is exceeded, the oldest is deleted.
	PutDelivery(d *Delivery) error
	DeleteDelivery(id string) error
	// Deliveries walks a log, newest first. It can be used in View only.
	Deliveries(of Log) iter.Seq2[*Delivery, error]
	// DeliveriesOf walks the deliveries requested by a job's submission, newest first. It
	// can be used in View only.
	DeliveriesOf(job string) iter.Seq2[*Delivery, error]
	// PendingDeliveries visits the pending deliveries, queue by queue, each in order of
	// the next attempts.
	PendingDeliveries(visit func(Due) Visit) error
}

// Due is a pending delivery and the time of its next attempt.
type Due struct {
	Queue string
	At    time.Time
	ID    string
}

// Visit says how a walk continues.
type Visit int

// The ways to continue.
const (
	NextDue Visit = iota
	NextQueue
	EndVisit
)
