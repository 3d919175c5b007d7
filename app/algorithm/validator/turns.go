package validator

import (
	"context"
	"slices"
	"sync"
	"time"

	"molrun/app/base/fault"
)

// turns bounds how many checks run at once. Users take turns; the checks of one
// are first come, first served. No user takes the last slot, so that the slow
// checks of one alone never hold up another's.
type turns struct {
	slots int
	wait  time.Duration // how long a check may wait for a slot

	mu      sync.Mutex
	closed  bool
	running map[string]int           // slots by user
	waiting map[string][]chan<- bool // by user; true grants a slot
	order   []string                 // of waiting, whose turn is next first
}

func newTurns(slots int, wait time.Duration) *turns {
	return &turns{slots: slots, wait: wait, running: map[string]int{}, waiting: map[string][]chan<- bool{}}
}

var (
	errBusy     = fault.Errorf(fault.Unavailable, "too many settings are being checked; send the request again in a few seconds")
	errStopping = fault.Errorf(fault.Unavailable, "the service is stopping; send the request again when it is back")
)

// take waits for a slot until ctx ends, the wait is too long or the service
// stops. The caller must release the slot.
func (t *turns) take(ctx context.Context, user string) (release func(), err error) {
	release = func() { t.release(user) }
	granted := t.enter(user)
	timer := time.NewTimer(t.wait)
	defer timer.Stop()
	select {
	case ok := <-granted:
		if !ok {
			return nil, errStopping
		}
		return release, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = errBusy
	}
	if !t.leave(user, granted) && <-granted { // it was granted just now
		release()
	}
	return nil, err
}

// enter queues a check of the user. The channel says once whether it has a slot.
func (t *turns) enter(user string) chan bool {
	granted := make(chan bool, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		granted <- false
		return granted
	}
	if len(t.waiting[user]) == 0 {
		t.order = append(t.order, user)
	}
	t.waiting[user] = append(t.waiting[user], granted)
	t.grant()
	return granted
}

// leave takes a check out of the queue, unless it is no longer there.
func (t *turns) leave(user string, granted chan<- bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting[user], granted)
	if i < 0 {
		return false
	}
	t.waiting[user] = slices.Delete(t.waiting[user], i, i+1)
	if len(t.waiting[user]) == 0 {
		delete(t.waiting, user)
		t.order = slices.DeleteFunc(t.order, func(u string) bool { return u == user })
	}
	return true
}

func (t *turns) release(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[user]--; t.running[user] == 0 {
		delete(t.running, user)
	}
	t.grant()
}

// grant gives the free slots to those whose turn it is.
func (t *turns) grant() {
	for t.taken() < t.slots {
		next := slices.IndexFunc(t.order, func(user string) bool { return t.running[user] < max(1, t.slots-1) })
		if next < 0 {
			return
		}
		user := t.order[next]
		t.waiting[user][0] <- true
		t.running[user]++
		t.waiting[user] = t.waiting[user][1:]
		t.order = slices.Delete(t.order, next, next+1)
		if len(t.waiting[user]) > 0 {
			t.order = append(t.order, user)
		} else {
			delete(t.waiting, user)
		}
	}
}

func (t *turns) taken() (n int) {
	for _, slots := range t.running {
		n += slots
	}
	return n
}

// close refuses the checks that wait, and those that come later.
func (t *turns) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, user := range t.order {
		for _, granted := range t.waiting[user] {
			granted <- false
		}
	}
	t.order, t.waiting = nil, map[string][]chan<- bool{}
}
