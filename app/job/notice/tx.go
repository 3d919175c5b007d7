package notice

import (
	"iter"
	"time"
)

// Tx reads and changes the records of notices. A missing one is NotFound. Changes of
// jobs add deliveries by themselves, in the transaction that stores them.
type Tx interface {
	// Hooks returns the hooks of an organization, oldest first.
	Hooks(organization string) ([]*Hook, error)
	Hook(id string) (*Hook, error)
	PutHook(h *Hook) error
	// DeleteHook deletes a hook with all of its deliveries.
	DeleteHook(id string) error

	Delivery(id string) (*Delivery, error)
	// PutDelivery inserts or replaces a delivery. Beyond MaxPending a new one is given
	// up; beyond MaxEnded the oldest is deleted.
	PutDelivery(d *Delivery) error
	DeleteDelivery(id string) error
	// Deliveries walks a log, newest first. It is for View only.
	Deliveries(of Log) iter.Seq2[*Delivery, error]
	// DeliveriesOf walks the deliveries that a job's submission asked for, newest first.
	// It is for View only.
	DeliveriesOf(job string) iter.Seq2[*Delivery, error]
	// PendingDeliveries visits the pending deliveries, queue by queue, each in order of the
	// next attempts.
	PendingDeliveries(visit func(Due) Visit) error
}

// Due is when a delivery is to be tried next.
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
