// Package schedule decides which waiting job of an executor is next and which slot it
// gets, and forecasts queue positions and start times. It does no I/O and has no clock:
// the queue and the time are passed in.
//
// A higher priority goes first. Among users of the same priority, the one with the fewest
// running jobs is next, then the one who least recently started a job. A job that does
// not fit when it is next is passed over; after some time it reserves the resources that
// become free.
package schedule

import (
	"maps"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/job/eta"
)

// User is a person in an organization. Users get equal shares, regardless of how many
// jobs each has queued.
type User struct{ Organization, Email string }

func userOf(w app.Waiting) User { return User{w.Organization, w.Email} }

// Lease is the slot of a claimed job.
type Lease struct {
	User  User
	Needs placement.Resources
	placement.Devices
	Work eta.Work
}

// FairShare decides which job is next on one executor.
type FairShare struct {
	slots        slots
	running      map[User]int    // jobs holding a slot
	started      map[User]uint64 // value of starts when the user last started a job
	starts       uint64
	passed       map[app.JobID]*passedOver // all were waiting at the last deep scan
	reserveAfter time.Duration
	mute         bool
	limits       *Limits
	limited      map[app.JobID]*limited // as for passed
}

// NewFairShare returns the fair share of an executor on which nothing runs. An executor
// that is not bounded has its own queue and accepts any number of jobs. A job passed over
// for reserveAfter reserves its slot.
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

// Bounded reports whether the executor has slots; otherwise it has its own queue.
func (t *FairShare) Bounded() bool { return t.slots.bounded }

// SetGPUs replaces the state of the executor's GPUs. Jobs keep the GPUs they hold.
func (t *FairShare) SetGPUs(c app.Capacity) {
	own := &t.slots.capacity
	own.GPUs, own.Cards, own.FaultyGPUs, own.GPUsUnknown = c.GPUs, c.Cards, c.FaultyGPUs, c.GPUsUnknown
	t.slots.countGPUs()
}

// HeldGPUs returns the GPUs held by jobs, sorted.
func (t *FairShare) HeldGPUs() []string { return slices.Sorted(maps.Keys(t.slots.leased)) }

// CountRunning counts a running job that Next did not start, as after a restart.
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
