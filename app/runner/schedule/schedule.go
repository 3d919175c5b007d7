// Package schedule decides which waiting job is next on an executor and which
// slot it gets, and forecasts: at which position of the queue a job is, and when
// it starts. It does no I/O and has no clock: the queue and the time are passed in.
//
// A higher priority goes first. Among users of the same priority it is the turn
// of the one with the fewest running jobs, then of the one who started a job
// least recently. A job that does not fit when it is next is passed over;
// after some time of that it reserves what becomes free.
package schedule

import (
	"maps"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/job/eta"
)

// User is a person in an organization. Users get equal shares, however many jobs
// each of them has queued.
type User struct{ Organization, Email string }

func userOf(w app.Waiting) User { return User{w.Organization, w.Email} }

// Lease is the slot of a claimed job.
type Lease struct {
	User  User
	Needs placement.Resources
	placement.Devices
	Work eta.Work
}

// FairShare decides who is next on one executor.
type FairShare struct {
	slots        slots
	running      map[User]int    // jobs that have a slot
	started      map[User]uint64 // when the user last started a job, counted in starts
	starts       uint64
	passed       map[app.JobID]*passedOver // all of them were waiting at the last deep scan
	reserveAfter time.Duration
	mute         bool
	limits       *Limits
	limited      map[app.JobID]*limited // likewise
}

// NewFairShare returns the fair share of an executor on which nothing runs. An executor that
// is not bounded queues by itself and takes anything. A job that has been passed
// over for reserveAfter reserves its slot.
func NewFairShare(capacity app.Capacity, bounded bool, reserveAfter time.Duration) *FairShare {
	return &FairShare{
		slots:        newSlots(capacity, bounded),
		running:      map[User]int{},
		started:      map[User]uint64{},
		passed:       map[app.JobID]*passedOver{},
		reserveAfter: reserveAfter,
		limits:       NewLimits(nil),
		limited:      map[app.JobID]*limited{},
	}
}

// Bounded reports whether the executor has slots; another queues by itself.
func (t *FairShare) Bounded() bool { return t.slots.bounded }

// SetGPUs replaces what is known of the executor's GPUs. Jobs keep those that they have.
func (t *FairShare) SetGPUs(c app.Capacity) {
	own := &t.slots.capacity
	own.GPUs, own.Cards, own.FaultyGPUs, own.GPUsUnknown = c.GPUs, c.Cards, c.FaultyGPUs, c.GPUsUnknown
	t.slots.countGPUs()
}

// HeldGPUs returns the GPUs that jobs have, sorted.
func (t *FairShare) HeldGPUs() []string { return slices.Sorted(maps.Keys(t.slots.leased)) }

// CountRunning counts a job as running that Next did not start, as after a restart.
func (t *FairShare) CountRunning(l Lease) {
	t.running[l.User]++
	t.slots.take(l.Needs, l.Devices)
	t.limits.addUse(l.User, l.Needs)
}

// ReleaseSlot releases the slot of a job.
func (t *FairShare) ReleaseSlot(l Lease) {
	t.slots.release(l.Needs, l.Devices)
	t.limits.addUse(l.User, minus(placement.Resources{}, l.Needs))
	if t.running[l.User]--; t.running[l.User] == 0 {
		delete(t.running, l.User)
	}
}
