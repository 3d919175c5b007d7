package simulation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// errDead is what a process that has died gets for whatever it still tries.
var errDead = errors.New("this process is dead")

// visit is a call of the world that waits at a door. It is called the same in
// every run of a seed.
type visit struct {
	label  label
	leaves bool       // the call was made, its answer is on the way
	enters bool       // into the store
	looks  bool       // it only wants to know how things stand
	change *change    // that the store has made
	due    time.Time  // when it may go on; zero until it was seen
	open   chan error // what it gets
}

// label says what is asked for: a verb and a name.
type label struct{ verb, of string }

func (l label) String() string { return l.verb + " " + l.of }

func (v *visit) String() string {
	if v.leaves {
		return v.label.String() + ", answer"
	}
	return v.label.String()
}

type labelKey struct{}

// called gives a context by which the store knows who asks.
func called(ctx context.Context, l label) context.Context {
	return context.WithValue(ctx, labelKey{}, l)
}

func labelOf(ctx context.Context) label {
	l, _ := ctx.Value(labelKey{}).(label)
	return l
}

// door is where the calls of one process wait to be let through.
type door struct {
	arrived chan struct{} // holds one; somebody came
	stall   func()        // what a slow machine does to whoever goes through

	mu      sync.Mutex
	waiting []*visit
	dead    bool
}

func newDoor(stall func()) *door { return &door{arrived: make(chan struct{}, 1), stall: stall} }

// knock waits to be let through. An error says that the process has died.
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

// look waits until nothing else happens at this moment. Whoever asks how things
// stand has to: otherwise the speed of the machine would say what has happened
// before and what has not, and not the seed.
func (d *door) look(verb string) error { return d.knock(&visit{label: label{verb: verb}, looks: true}) }

// around makes a call between two doors.
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

// visited reports whether somebody waits there for the sake of a job.
func (d *door) visited(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.waiting, func(v *visit) bool { return v.label.of == name })
}

// visits gives those who wait, in an order that does not depend on who came
// first.
func (d *door) visits() []*visit {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.SortStableFunc(d.waiting, func(a, b *visit) int {
		return cmp.Or(cmp.Compare(a.label.verb, b.label.verb), cmp.Compare(a.label.of, b.label.of))
	})
	return slices.Clone(d.waiting)
}

// admit lets one through.
func (d *door) admit(v *visit) {
	d.mu.Lock()
	d.waiting = slices.DeleteFunc(d.waiting, func(w *visit) bool { return w == v })
	d.mu.Unlock()
	v.open <- nil
}

// die turns away all who wait and all who come.
func (d *door) die() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
	for _, v := range d.waiting {
		v.open <- errDead
	}
	d.waiting = nil
}
