// Package limit bounds concurrent use, so that no holder (an organization, a user, an API
// key, an address) can starve the others. Requests wait for Slots, a Budget rejects them
// when it is spent, and Rates limits how often something happens.
package limit

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Slots is a pool of slots that holders share. Each slot is for one request at a time.
// Waiting holders are served in turn, and the requests of one holder in order of arrival.
// The fields are set before the first use.
type Slots struct {
	All  int // number of slots; 0 means no limit
	Each int // slots per holder; 0 means no limit

	MaxRequests        int   // requests of one holder that wait or have a slot; 0 means no limit
	ErrTooManyRequests error // returned if MaxRequests is exceeded

	mu     sync.Mutex
	taken  int
	held   map[string]int // slots by holder
	queues [3]queue
	closed error
}

// The queues, in order of priority.
const (
	returning = iota // from WithoutSlot
	arriving         // from Arrive, when the holder is not known yet
	entering
)

// queue holds the waiting requests by holder.
type queue struct {
	waiting map[string][]waiter
	order   []string // waiting holders, the next one first
}

// waiter receives one value: nil when it has a slot, or the reason why it never gets one.
type waiter chan error

// ForProcessors returns slots for requests that use the CPU. It leaves free two of the
// processors that run goroutines: one for the store's writer, and one for small requests.
// Go runs goroutines in the order in which they became ready, and polls the network when
// none is left. Without a limit, a page would therefore wait for all submissions that
// came before it.
func ForProcessors() *Slots { return &Slots{All: max(2, runtime.GOMAXPROCS(0)-2)} }

// Take waits for a slot until ctx is done, and then returns the cause.
func (s *Slots) Take(ctx context.Context, holder string) (release func(), err error) {
	if err := s.acquire(ctx, entering, holder); err != nil {
		return nil, err
	}
	return func() { s.release(holder) }, nil
}

// Try is like Take, but does not wait. It reports whether there was a free slot.
func (s *Slots) Try(holder string) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil || !s.hasCapacity(holder) {
		return nil, false
	}
	s.countHeld(holder)
	return func() { s.release(holder) }, true
}

// arrivalTime limits how long a request waits before its user is known. It then continues
// without a slot.
const arrivalTime = 10 * time.Second

// Arrive waits for a slot for a request whose user is not known yet. The caller must call
// leave as soon as the user is known, or when the rest of the request has not arrived.
func (s *Slots) Arrive() (leave func()) {
	ctx, cancel := context.WithTimeout(context.Background(), arrivalTime)
	defer cancel()
	if s.acquire(ctx, arriving, "") != nil {
		return func() {}
	}
	return func() { s.release("") }
}

// Enter waits for a slot until ctx is done. The slot belongs to the returned context
// until leave is called.
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

// Close rejects waiting and later requests with a reason.
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

// acquire takes a slot, or queues for one until ctx is done.
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
	if !s.queues[in].withdraw(holder, w) && <-w == nil { // granted just now
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
	case s.MaxRequests > 0 && s.held[holder]+len(s.queues[in].waiting[holder]) >= s.MaxRequests:
		return nil, s.ErrTooManyRequests
	case s.hasCapacity(holder): // a free slot that no waiter can use
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

// free passes a slot on to the next waiters.
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

// next removes the next request from the queue, among the holders that can have a slot.
// It returns a nil waiter if there is none.
func (q *queue) next(may func(holder string) bool) (string, waiter) {
	i := slices.IndexFunc(q.order, may)
	if i < 0 {
		return "", nil
	}
	holder := q.order[i]
	w := q.waiting[holder][0]
	q.withdraw(holder, w)
	if len(q.waiting[holder]) > 0 { // the holder moves to the end
		q.order = append(slices.Delete(q.order, i, i+1), holder)
	}
	return holder, w
}

// withdraw removes a request from the queue. It reports whether the request was still
// there.
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
