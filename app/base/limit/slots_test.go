package limit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app/test/must"
)

// crowd takes slots, and records the order.
type crowd struct {
	t     *testing.T
	slots *Slots

	mu     sync.Mutex // requests can be canceled concurrently
	passed []string
	leave  map[string]func()
	inside map[string]context.Context
}

func newCrowd(t *testing.T, slots *Slots) *crowd {
	return &crowd{t: t, slots: slots, leave: map[string]func(){}, inside: map[string]context.Context{}}
}

// enter starts waiting requests, each named by its holder and a number.
func (c *crowd) enter(ctx context.Context, names ...string) {
	for _, name := range names {
		go func() {
			inside, leave, err := c.slots.Enter(ctx, name[:1])
			c.mu.Lock()
			defer c.mu.Unlock()
			if err != nil {
				c.passed = append(c.passed, "-"+name)
				return
			}
			c.passed, c.leave[name], c.inside[name] = append(c.passed, name), leave, inside
		}()
		synctest.Wait()
	}
}

// outside has a request wait for something else without its slot, until the channel is
// closed.
func (c *crowd) outside(name string) chan struct{} {
	back := make(chan struct{})
	go func() {
		WithoutSlot(c.inside[name], func() { <-back })
		c.passed = append(c.passed, name)
	}()
	synctest.Wait()
	return back
}

func (c *crowd) end(name string) {
	c.leave[name]()
	synctest.Wait()
}

func (c *crowd) want(names string) {
	c.t.Helper()
	if !slices.Equal(c.passed, strings.Fields(names)) {
		c.t.Errorf("passed %v, want %s", c.passed, names)
	}
}

// wantFree checks that this many slots are free, no request waits and no holder without
// slots is kept.
func (c *crowd) wantFree(slots int) {
	c.t.Helper()
	remembered := len(c.slots.held)
	for _, q := range c.slots.queues {
		remembered += len(q.order) + len(q.waiting)
	}
	free := c.slots.All - c.slots.taken
	if free != slots || c.slots.Waiting() != 0 || remembered > c.slots.taken {
		c.t.Errorf("%d slots free, want %d; %d wait, %d holders are remembered", free, slots, c.slots.Waiting(), remembered)
	}
}

func TestHoldersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, &Slots{All: 2})
		c.enter(t.Context(), "a1", "a2", "a3", "a4", "a5", "b1", "c1")
		c.want("a1 a2")
		for _, name := range strings.Fields("a1 a2 a3 b1 c1 a4 a5") {
			c.end(name)
		}
		c.want("a1 a2 a3 b1 c1 a4 a5")
		c.wantFree(2)
	})
}

func TestNoHolderHasMoreThanItsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, &Slots{All: 3, Each: 2})
		c.enter(t.Context(), "a1", "a2", "a3", "a4", "a5", "a6", "b1", "b2", "b3", "c1")
		c.want("a1 a2 b1") // the last slot is for other holders
		for _, step := range []struct{ ends, begins string }{
			{"a1", "a3"}, {"b1", "b2"}, {"a2", "c1"}, {"c1", "a4"}, {"b2", "b3"}, {"a3", "a5"}, {"b3", ""}, {"a4", "a6"},
		} {
			before := len(c.passed)
			c.end(step.ends)
			must.Equal(t, fmt.Sprintf("after %s", step.ends), strings.Join(c.passed[before:], " "), step.begins)
		}
		c.end("a5")
		c.end("a6")
		c.wantFree(3)
	})
}

func TestSlotsWithoutBoundAreBoundByHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, &Slots{Each: 1})
		c.enter(t.Context(), "a1", "a2", "b1", "c1", "c2")
		c.want("a1 b1 c1")
		c.end("b1")
		c.want("a1 b1 c1")
		c.end("a1")
		c.want("a1 b1 c1 a2")
	})
}

func TestCrowdLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowded := errors.New("crowded")
		c := newCrowd(t, &Slots{All: 2, Each: 1, MaxRequests: 3, ErrTooManyRequests: crowded})
		ctx, cancel := context.WithCancel(t.Context())
		c.enter(t.Context(), "a1", "b1")
		c.enter(ctx, "a2")
		c.enter(t.Context(), "a3", "c1", "c2", "c3")
		for _, holder := range []string{"a", "c"} { // a has a slot and two waiting requests; c has three waiting
			if _, err := c.slots.Take(t.Context(), holder); !errors.Is(err, crowded) {
				t.Errorf("one more of %s: %v", holder, err)
			}
		}
		c.enter(t.Context(), "b2")
		cancel()
		synctest.Wait()
		c.enter(t.Context(), "a4") // replaces a2
		for _, name := range strings.Fields("b1 a1 c1 a3 b2 c2 a4 c3") {
			c.end(name)
		}
		c.want("a1 b1 -a2 c1 a3 b2 c2 a4 c3")
		c.wantFree(2)
	})
}

func TestClosedSlotsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, &Slots{All: 1})
		c.enter(t.Context(), "a1", "a2", "b1")
		closed := errors.New("closed")
		c.slots.Close(closed)
		synctest.Wait()
		slices.Sort(c.passed[1:])
		c.want("a1 -a2 -b1")
		c.end("a1") // a1 keeps its slot until then
		if _, err := c.slots.Take(t.Context(), "c"); !errors.Is(err, closed) {
			t.Errorf("a request that comes later: %v", err)
		}
		c.wantFree(1)
	})
}

func TestTakeReturnsContextCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Slots{All: 1}
		release, err := s.Take(t.Context(), "a")
		must.OK(t, err)
		busy := errors.New("busy")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, busy)
		defer cancel()
		if _, err := s.Take(ctx, "b"); !errors.Is(err, busy) {
			t.Errorf("a wait of a minute ends with %v", err)
		}
		release()
		_, err = s.Take(t.Context(), "b")
		must.OK(t, err)
	})
}

func TestWithoutSlotReleasesAndReacquiresFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, &Slots{All: 1})
		c.enter(t.Context(), "a1", "b1", "b2")
		back := c.outside("a1")
		c.want("a1 b1")
		close(back)
		synctest.Wait()
		c.want("a1 b1") // there is no free slot
		c.end("b1")
		c.want("a1 b1 a1")
		c.end("a1")
		c.want("a1 b1 a1 b2")
		c.end("b2")
		c.wantFree(1)
	})
}

func TestSeveralMayWaitOutsideForOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, &Slots{All: 1})
		c.enter(t.Context(), "a1")
		first, second := c.outside("a1"), c.outside("a1")
		c.wantFree(1)
		close(first)
		synctest.Wait()
		c.wantFree(1) // the request is still waiting
		close(second)
		synctest.Wait()
		c.wantFree(0)
		c.end("a1")
		c.end("a1") // a second call has no effect
		c.wantFree(1)
	})
}

func TestCancelledRequestLeavesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, &Slots{All: 1})
		ctx, cancel := context.WithCancelCause(t.Context())
		c.enter(t.Context(), "a1")
		c.enter(ctx, "b1")
		c.enter(t.Context(), "b2", "c1")
		c.enter(ctx, "d1")
		cancel(errors.New("the client has left"))
		synctest.Wait()
		slices.Sort(c.passed[1:])
		c.want("a1 -b1 -d1")
		must.Equal(t, "wait", c.slots.Waiting(), 2)
		c.end("a1")
		c.end("b2")
		c.end("c1")
		c.want("a1 -b1 -d1 b2 c1")
		c.wantFree(1)
	})
}

func TestCancelledRequestDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, &Slots{All: 1})
		ctx, cancel := context.WithCancel(t.Context())
		c.enter(ctx, "a1")
		back := c.outside("a1")
		c.enter(t.Context(), "b1")
		close(back)
		synctest.Wait()
		cancel()
		synctest.Wait()
		c.want("a1 b1 a1")
		c.end("a1") // has no slot to release
		c.wantFree(0)
		c.end("b1")
		c.wantFree(1)
	})
}

// TestSlotGrantedToACancelledRequestGoesOn grants a slot to a request that is canceled at
// the same time: whichever it notices first, the slot is not lost.
func TestSlotGrantedToACancelledRequestGoesOn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the request runs after both
	synctest.Test(t, func(t *testing.T) {
		for i := range 10 {
			c := newCrowd(t, &Slots{All: 1})
			ctx, cancel := context.WithCancel(t.Context())
			c.enter(t.Context(), "a1")
			c.enter(ctx, "b1")
			if i%2 == 0 {
				cancel()
			}
			c.leave["a1"]()
			cancel()
			synctest.Wait()
			if leave := c.leave["b1"]; leave != nil {
				leave()
			}
			c.wantFree(1)
		}
	})
}

func TestArrivalsHavePriorityAndTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, &Slots{All: 1})
		c.enter(t.Context(), "a1", "a2")
		arrived := make(chan func())
		go func() { arrived <- c.slots.Arrive() }()
		synctest.Wait()
		c.end("a1")
		leave := <-arrived
		c.want("a1")
		leave()
		synctest.Wait()
		c.want("a1 a2")

		began := time.Now()
		c.slots.Arrive()() // while a2 keeps its slot
		must.Equal(t, "an arrival waited", time.Since(began), arrivalTime)
		c.end("a2")
		c.wantFree(1)
	})
}

func TestTwoProcessorsAreLeftToOthers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for procs, want := range map[int]int{1: 2, 2: 2, 4: 2, 5: 3, 16: 14} {
		runtime.GOMAXPROCS(procs)
		must.Equal(t, fmt.Sprintf("%d processors", procs), ForProcessors().All, want)
	}
}

func TestOutsideNeedsNoSlot(t *testing.T) {
	ran := false
	WithoutSlot(t.Context(), func() { ran = true })
	if !ran {
		t.Error("what waits without a slot was not run")
	}
}
