package validator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app/base/fault"
)

// crowd takes turns, and notes in which order they come.
type crowd struct {
	t     *testing.T
	turns *turns
	came  []string
	ends  map[string]func() // release a slot
	left  chan error        // of those that got none
}

func newCrowd(t *testing.T, slots int) *crowd {
	return &crowd{t: t, turns: newTurns(slots, time.Minute), ends: map[string]func(){}, left: make(chan error, 100)}
}

// join makes checks wait for their turns; each is named by its user and a number.
func (c *crowd) join(ctx context.Context, names ...string) {
	for _, name := range names {
		go func() {
			end, err := c.turns.take(ctx, name[:1])
			if err != nil {
				c.left <- err
				return
			}
			c.came, c.ends[name] = append(c.came, name), end
		}()
		synctest.Wait()
	}
}

func (c *crowd) end(name string) {
	c.ends[name]()
	synctest.Wait()
}

func (c *crowd) want(names string) {
	c.t.Helper()
	if !slices.Equal(c.came, strings.Fields(names)) {
		c.t.Errorf("came %q, want %q", c.came, names)
	}
}

func TestUsersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 3)
		c.join(t.Context(), "a1", "a2", "a3", "a4", "a5", "a6")
		c.want("a1 a2") // none takes the last slot
		c.join(t.Context(), "b1", "b2", "b3", "c1")
		c.want("a1 a2 b1")
		c.end("a1")
		c.want("a1 a2 b1 a3")
		c.end("b1")
		c.want("a1 a2 b1 a3 b2")
		c.end("a2")
		c.want("a1 a2 b1 a3 b2 c1")
		for _, name := range []string{"c1", "b2", "a3"} {
			c.end(name)
		}
		c.want("a1 a2 b1 a3 b2 c1 a4 b3 a5")
		for _, name := range []string{"a4", "b3", "a5", "a6"} {
			c.end(name)
		}
		if n := len(c.turns.order) + len(c.turns.waiting) + len(c.turns.running); n > 0 || len(c.came) != 10 {
			t.Errorf("%d came, %d users are remembered", len(c.came), n)
		}
	})
}

func TestOneSlotIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		c.join(t.Context(), "a1", "a2", "b1")
		c.want("a1")
		c.end("a1")
		c.end("a2")
		c.want("a1 a2 b1")
	})
}

func TestWaitForATurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1)
		c.join(t.Context(), "a1")
		gone, cancel := context.WithCancel(t.Context())
		c.join(gone, "a2")
		c.join(t.Context(), "b1")
		cancel()
		if err := <-c.left; !errors.Is(err, context.Canceled) {
			t.Errorf("a client that went away: %v", err)
		}
		start := time.Now()
		if err := <-c.left; fault.CodeOf(err) != fault.Unavailable || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		c.join(t.Context(), "a3")
		c.turns.close()
		if err := <-c.left; fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("when the service stops: %v", err)
		}
		c.join(t.Context(), "a4")
		if err := <-c.left; fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("after that: %v", err)
		}
		c.end("a1")
		c.want("a1")
	})
}
