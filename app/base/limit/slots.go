// Package limit bounds what is used at once, so that no holder (an organization, a user,
// an API key, an address) keeps others out: Slots are waited for, a Budget refuses when it
// is spent, and Rates bound how often something happens.
package limit

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Slots are shared by holders: each slot is for one request at a time. Holders that wait
// take turns; the requests of one are first come, first served. The fields are set before
// the first use.
type Slots struct {
	All  int // slots there are; 0 is without bound
	Each int // slots that one holder may have; 0 is without bound

	Crowd   int   // requests of one holder that wait or have a slot; 0 is without bound
	Crowded error // what one more gets

	mu     sync.Mutex
	taken  int
	held   map[string]int // slots, by holder
	queues [3]queue
	closed error
}

// The queues, in the order in which they get slots.
const (
	returning = iota // from Outside
	arriving         // of holders that are not known yet
	entering
)

// queue has the requests that wait, by holder.
type queue struct {
	waiting map[string][]waiter
	order   []string // of waiting, whose turn is next first
}

// waiter receives once that it has a slot, or why it never gets one.
type waiter chan error

// ForProcessors returns slots for requests that compute. It leaves two of the processors
// that run goroutines to others: one to the store's writer, and one to requests that need
// little. Go runs goroutines in the order in which they became ready, and looks for what
// has arrived on the network when none is left: without a bound, a page waits for all
// submissions that came before it.
func ForProcessors() *Slots { return &Slots{All: max(2, runtime.GOMAXPROCS(0)-2)} }

// Take waits for a slot until ctx ends, and returns the cause of its end.
func (s *Slots) Take(ctx context.Context, holder string) (release func(), err error) {
	if err := s.acquire(ctx, entering, holder); err != nil {
		return nil, err
	}
	return func() { s.release(holder) }, nil
}

// Try is Take for who can't wait: it reports whether there was a slot.
func (s *Slots) Try(holder string) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil || !s.hasCapacity(holder) {
		return nil, false
	}
	s.countHeld(holder)
	return func() { s.release(holder) }, true
}

// arrivalTime bounds how long a request waits before anything is known of it. It then
// continues without a slot.
const arrivalTime = 10 * time.Second

// Arrive waits for a slot for a request whose user is not known yet. The caller must
// call leave as soon as the user is, or when the rest of the request has not arrived.
func (s *Slots) Arrive() (leave func()) {
	ctx, cancel := context.WithTimeout(context.Background(), arrivalTime)
	defer cancel()
	if s.acquire(ctx, arriving, "") != nil {
		return func() {}
	}
	return func() { s.release("") }
}

// Enter waits for a slot until ctx ends. The slot belongs to the context that it
// returns, until leave is called.
func (s *Slots) Enter(ctx context.Context, holder string) (inside context.Context, leave func(), err error) {
	if err := s.acquire(ctx, entering, holder); err != nil {
		return nil, nil, err
	}
	p := &heldSlot{slots: s, holder: holder, held: true}
	return context.WithValue(ctx, slotKey{}, p), p.leave, nil
}

// Waiting returns how many requests wait for a slot.
func (s *Slots) Waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.queues {
		for _, waiters := range s.queues[i].waiting {
			n += len(waiters)
		}
	}
	return n
}

// Close refuses the requests that wait, and those that come later, for a reason.
func (s *Slots) Close(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = reason
	for i := range s.queues {
		for _, waiters := range s.queues[i].waiting {
			for _, w := range waiters {
				w <- reason
			}
		}
		s.queues[i] = queue{}
	}
}

// acquire takes a slot, or queues for one until ctx ends.
func (s *Slots) acquire(ctx context.Context, in int, holder string) error {
	w, err := s.acquireOrQueue(in, holder)
	if w == nil {
		return err
	}
	select {
	case err := <-w:
		return err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.queues[in].withdraw(holder, w) && <-w == nil { // it was granted just now
		s.free(holder)
	}
	return context.Cause(ctx)
}

// acquireOrQueue takes a slot or joins a queue.
func (s *Slots) acquireOrQueue(in int, holder string) (waiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed != nil:
		return nil, s.closed
	case s.Crowd > 0 && s.held[holder]+len(s.queues[in].waiting[holder]) >= s.Crowd:
		return nil, s.Crowded
	case s.hasCapacity(holder): // so no other waiter could have it
		s.countHeld(holder)
		return nil, nil
	}
	w := make(waiter, 1)
	s.queues[in].join(holder, w)
	return w, nil
}

func (s *Slots) hasCapacity(holder string) bool {
	return (s.All == 0 || s.taken < s.All) && (s.Each == 0 || s.held[holder] < s.Each)
}

func (s *Slots) countHeld(holder string) {
	if s.held == nil {
		s.held = map[string]int{}
	}
	s.taken++
	s.held[holder]++
}

func (s *Slots) release(holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free(holder)
}

// free passes a slot on to those whose turn it is.
func (s *Slots) free(holder string) {
	s.taken--
	if s.held[holder]--; s.held[holder] == 0 {
		delete(s.held, holder)
	}
	for i := range s.queues {
		for {
			next, w := s.queues[i].next(s.hasCapacity)
			if w == nil {
				break
			}
			s.countHeld(next)
			w <- nil
		}
	}
}

func (q *queue) join(holder string, w waiter) {
	if q.waiting == nil {
		q.waiting = map[string][]waiter{}
	}
	if len(q.waiting[holder]) == 0 {
		q.order = append(q.order, holder)
	}
	q.waiting[holder] = append(q.waiting[holder], w)
}

// next takes the request out of the queue whose turn it is among the holders that may
// have a slot, nil if there is none.
func (q *queue) next(may func(holder string) bool) (string, waiter) {
	i := slices.IndexFunc(q.order, may)
	if i < 0 {
		return "", nil
	}
	holder := q.order[i]
	w := q.waiting[holder][0]
	q.withdraw(holder, w)
	if len(q.waiting[holder]) > 0 { // it is the last one's turn now
		q.order = append(slices.Delete(q.order, i, i+1), holder)
	}
	return holder, w
}

// withdraw takes a request out of the queue, unless it is no longer there.
func (q *queue) withdraw(holder string, w waiter) bool {
	i := slices.Index(q.waiting[holder], w)
	if i < 0 {
		return false
	}
	if len(q.waiting[holder]) > 1 {
		q.waiting[holder] = slices.Delete(q.waiting[holder], i, i+1)
		return true
	}
	delete(q.waiting, holder)
	q.order = slices.DeleteFunc(q.order, func(h string) bool { return h == holder })
	return true
}
