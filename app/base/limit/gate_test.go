package limit

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowd passes a gate, and notes in which order it does.
type crowd struct {
	t    *testing.T
	gate *Gate

	mu     sync.Mutex // requests may be cancelled together
	passed []string
	leave  map[string]func()
	inside map[string]context.Context
}

func newCrowd(t *testing.T, slots int) *crowd {
	return &crowd{t: t, gate: New(slots), leave: map[string]func(){}, inside: map[string]context.Context{}}
}

// enter makes requests wait; each is named by its user and a number.
func (c *crowd) enter(ctx context.Context, names ...string) {
	for _, name := range names {
		go func() {
			inside, leave, err := c.gate.Enter(ctx, name[:1])
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

// outside has a request wait for something else, until the channel is closed.
func (c *crowd) outside(name string) chan struct{} {
	back := make(chan struct{})
	go func() {
		Outside(c.inside[name], func() { <-back })
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

// wantFree checks that so many slots are free, and nobody waits.
func (c *crowd) wantFree(slots int) {
	c.t.Helper()
	if c.gate.free != slots || c.gate.Waiting() != 0 || len(c.gate.order) != 0 || len(c.gate.waiting) != 0 {
		c.t.Errorf("%d slots free, want %d; waiting: %v", c.gate.free, slots, c.gate.waiting)
	}
}

func TestUsersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 2)
		c.enter(t.Context(), "a1", "a2", "a3", "a4", "a5", "b1", "c1")
		c.want("a1 a2")
		for _, name := range strings.Fields("a1 a2 a3 b1 c1 a4 a5") {
			c.end(name)
		}
		c.want("a1 a2 a3 b1 c1 a4 a5")
		c.wantFree(2)
	})
}

func TestWhoWaitsOutsideHoldsNoSlotAndReturnsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		c.enter(t.Context(), "a1", "b1", "b2")
		back := c.outside("a1")
		c.want("a1 b1")
		close(back)
		synctest.Wait()
		c.want("a1 b1") // there is no slot
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
		c := newCrowd(t, 1)
		c.enter(t.Context(), "a1")
		first, second := c.outside("a1"), c.outside("a1")
		c.wantFree(1)
		close(first)
		synctest.Wait()
		c.wantFree(1) // the request still waits
		close(second)
		synctest.Wait()
		c.wantFree(0)
		c.end("a1")
		c.end("a1") // again, which changes nothing
		c.wantFree(1)
	})
}

func TestCancelledRequestLeavesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		c.enter(t.Context(), "a1")
		c.enter(ctx, "b1")
		c.enter(t.Context(), "b2", "c1")
		c.enter(ctx, "d1")
		cancel(errors.New("the client has left"))
		synctest.Wait()
		slices.Sort(c.passed[1:])
		c.want("a1 -b1 -d1")
		if got := c.gate.Waiting(); got != 2 {
			t.Errorf("%d wait, want 2", got)
		}
		c.end("a1")
		c.end("b2")
		c.end("c1")
		c.want("a1 -b1 -d1 b2 c1")
		c.wantFree(1)
	})
}

func TestCancelledRequestDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
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

// TestSlotGrantedToACancelledRequestGoesOn grants a slot to a request that is
// cancelled at the same time: whichever it notices first, nothing is lost.
func TestSlotGrantedToACancelledRequestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			c := newCrowd(t, 1)
			ctx, cancel := context.WithCancel(t.Context())
			c.enter(t.Context(), "a1")
			c.enter(ctx, "b1")
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

func TestArrivalsComeBeforeUsersAndWaitNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		c.enter(t.Context(), "a1", "a2")
		arrived := make(chan func())
		go func() { arrived <- c.gate.Arrive() }()
		synctest.Wait()
		c.end("a1")
		leave := <-arrived
		c.want("a1")
		leave()
		synctest.Wait()
		c.want("a1 a2")

		began := time.Now()
		c.gate.Arrive()() // while a2 stays
		if took := time.Since(began); took != arrivalTime {
			t.Errorf("an arrival waited %v, want %v", took, arrivalTime)
		}
		c.end("a2")
		c.wantFree(1)
	})
}

func TestTwoProcessorsAreLeftToOthers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for procs, want := range map[int]int{1: 2, 2: 2, 4: 2, 5: 3, 16: 14} {
		runtime.GOMAXPROCS(procs)
		if got := ForProcessors().free; got != want {
			t.Errorf("%d processors: %d slots, want %d", procs, got, want)
		}
	}
}

func TestOutsideNeedsNoGate(t *testing.T) {
	ran := false
	Outside(t.Context(), func() { ran = true })
	if !ran {
		t.Error("what waits without a gate was not run")
	}
}
