package simulation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// errDead is the error of every call after the process has died.
var errDead = errors.New("this process is dead")

// visit is a call that waits at a door. Its label is the same in every run of a seed.
type visit struct {
	label   label
	leaves  bool       // the call was made, and now its response waits
	enters  bool       // the call will run the store's Update
	polls   bool       // it is a poll
	change  *change    // the change that the call makes to the store, if any
	posting *posting   // the message that the call sends, if any
	due     time.Time  // time from which it can proceed; zero until the simulation has first seen it
	open    chan error // receives the result of knock
}

// label identifies a call by a verb and the name of the object.
type label struct{ verb, of string }

func (l label) String() string { return l.verb + " " + l.of }

func (v *visit) String() string {
	if v.leaves {
		return v.label.String() + ", answer"
	}
	return v.label.String()
}

type labelKey struct{}

// called returns a context that passes the call's label to the store.
func called(ctx context.Context, l label) context.Context {
	return context.WithValue(ctx, labelKey{}, l)
}

func labelOf(ctx context.Context) label {
	l, _ := ctx.Value(labelKey{}).(label)
	return l
}

// door is where the calls of one process wait until they are admitted.
type door struct {
	arrived chan struct{} // capacity of one; signals a new visit
	stall   func()        // sleeps after each call, to imitate a slow machine

	mu      sync.Mutex
	waiting []*visit
	dead    bool
}

func newDoor(stall func()) *door { return &door{arrived: make(chan struct{}, 1), stall: stall} }

// knock waits until the call is admitted. It returns an error if the process has died.
func (d *door) knock(v *visit) error {
	v.open = make(chan error, 1)
	d.mu.Lock()
	if d.dead {
		d.mu.Unlock()
		return errDead
	}
	d.waiting = append(d.waiting, v)
	d.mu.Unlock()
	select {
	case d.arrived <- struct{}{}:
	default:
	}
	err := <-v.open
	d.stall()
	return err
}

// poll waits until no other call is ready. Otherwise the speed of the machine, rather
// than the seed, would determine what a poll sees.
func (d *door) poll(verb string) error { return d.pollFor(verb, "") }

// pollFor is like poll, for polls that can be made several times at the same moment. name
// distinguishes them.
func (d *door) pollFor(verb, name string) error {
	return d.knock(&visit{label: label{verb, name}, polls: true})
}

// around makes a call between two visits.
func (d *door) around(l label, call func() error) error {
	if err := d.knock(&visit{label: l}); err != nil {
		return err
	}
	err := call()
	if dead := d.knock(&visit{label: l, leaves: true}); dead != nil {
		return dead
	}
	return err
}

// isDead reports whether the process has died.
func (d *door) isDead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

// visited reports whether a call for the named job, other than a poll, is waiting.
func (d *door) visited(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.waiting, func(v *visit) bool { return v.label.of == name && !v.polls })
}

// visits returns the waiting calls, in an order that does not depend on the order of
// their arrival.
func (d *door) visits() []*visit {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.SortStableFunc(d.waiting, func(a, b *visit) int {
		return cmp.Or(cmp.Compare(a.label.verb, b.label.verb), cmp.Compare(a.label.of, b.label.of))
	})
	return slices.Clone(d.waiting)
}

// admit lets one call proceed.
func (d *door) admit(v *visit) {
	d.mu.Lock()
	d.waiting = slices.DeleteFunc(d.waiting, func(w *visit) bool { return w == v })
	d.mu.Unlock()
	v.open <- nil
}

// die makes all waiting and later calls fail.
func (d *door) die() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
	for _, v := range d.waiting {
		v.open <- errDead
	}
	d.waiting = nil
}
