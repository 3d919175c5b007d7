package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
)

// gathering is a gatherer whose submissions are noted.
type gathering struct {
	*gatherer
	t       *testing.T
	end     context.Context
	mu      sync.Mutex
	sizes   []int
	answers func([]app.Task) ([]app.Handle, error)
}

func gather(t *testing.T, test func(t *testing.T, g *gathering)) {
	synctest.Test(t, func(t *testing.T) {
		end, cancel := context.WithCancel(context.Background())
		g := &gathering{t: t, end: end}
		g.answers = func(tasks []app.Task) ([]app.Handle, error) {
			handles := make([]app.Handle, len(tasks))
			for i, a := range tasks {
				handles[i] = app.Handle(a.Token)
			}
			return handles, nil
		}
		g.gatherer = newGatherer(func(_ context.Context, _ request, tasks []app.Task) ([]app.Handle, error) {
			g.mu.Lock()
			g.sizes = append(g.sizes, len(tasks))
			g.mu.Unlock()
			return g.answers(tasks)
		}, func(context.Context) int { return 1000 })
		done := make(chan struct{})
		go func() { defer close(done); g.run(end) }()
		test(t, g)
		cancel()
		<-done
	})
}

// start adds a task and checks the answer.
func (g *gathering) start(r request, token string) {
	h, known, err := g.add(context.Background(), g.end, r, app.Task{Token: token})
	if string(h) != token || !known || err != nil {
		g.t.Errorf("task %s: handle %q, known: %v, %v", token, h, known, err)
	}
}

func TestLoneTaskHardlyWaits(t *testing.T) {
	gather(t, func(t *testing.T, g *gathering) {
		begin := time.Now()
		g.start(request{}, "a")
		if took := time.Since(begin); took != lonelyFor {
			t.Errorf("it took %v", took)
		}
	})
}

func TestTenThousandTasksAreTenSubmissions(t *testing.T) {
	gather(t, func(t *testing.T, g *gathering) {
		var callers sync.WaitGroup
		for i := range 10_000 {
			time.Sleep(time.Millisecond) // as fast as directories are laid out
			callers.Go(func() { g.start(request{}, fmt.Sprint(i)) })
		}
		callers.Wait()
		want := slices.Repeat([]int{1000}, 10)
		if !slices.Equal(g.sizes, want) {
			t.Errorf("submissions of %v tasks, want %v", g.sizes, want)
		}
	})
}

func TestSlowStreamIsGatheredForSomeSeconds(t *testing.T) {
	gather(t, func(t *testing.T, g *gathering) {
		var callers sync.WaitGroup
		longest := time.Duration(0)
		for i := range 300 {
			time.Sleep(streamFor / 5)
			callers.Go(func() {
				begin := time.Now()
				g.start(request{}, fmt.Sprint(i))
				g.mu.Lock()
				longest = max(longest, time.Since(begin))
				g.mu.Unlock()
			})
		}
		callers.Wait()
		if longest > gatheredFor || len(g.sizes) > 8 {
			t.Errorf("submissions of %v tasks; one waited for %v", g.sizes, longest)
		}
	})
}

func TestDifferentRequestsStayApart(t *testing.T) {
	gather(t, func(t *testing.T, g *gathering) {
		var callers sync.WaitGroup
		for i := range 30 {
			callers.Go(func() { g.start(request{limit: time.Duration(i % 3)}, fmt.Sprint(i)) })
		}
		callers.Wait()
		if !slices.Equal(g.sizes, []int{10, 10, 10}) {
			t.Errorf("submissions of %v tasks", g.sizes)
		}
	})
}

func TestFailureIsThatOfEveryTask(t *testing.T) {
	gather(t, func(t *testing.T, g *gathering) {
		no := errors.New("no")
		g.answers = func([]app.Task) ([]app.Handle, error) { return nil, no }
		var callers sync.WaitGroup
		for i := range 3 {
			callers.Go(func() {
				if _, known, err := g.add(t.Context(), g.end, request{}, app.Task{Token: fmt.Sprint(i)}); !known || !errors.Is(err, no) {
					t.Errorf("known: %v, error %v", known, err)
				}
			})
		}
		callers.Wait()
	})
}

func TestWhoGivesUpBeforeTheSubmissionIsNoPartOfIt(t *testing.T) {
	gather(t, func(t *testing.T, g *gathering) {
		ctx, cancel := context.WithTimeout(t.Context(), lonelyFor/2)
		defer cancel()
		_, known, err := g.add(ctx, g.end, request{}, app.Task{Token: "a"})
		if !known || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("known: %v, error %v", known, err)
		}
		time.Sleep(time.Minute)
		if len(g.sizes) != 0 {
			t.Errorf("submissions of %v tasks", g.sizes)
		}
	})
}

func TestWhoGivesUpDuringTheSubmissionDoesNotKnow(t *testing.T) {
	gather(t, func(t *testing.T, g *gathering) {
		g.answers = func([]app.Task) ([]app.Handle, error) {
			time.Sleep(time.Hour)
			return []app.Handle{"a"}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, known, err := g.add(ctx, g.end, request{}, app.Task{Token: "a"})
		if known || err != nil || !g.underway("a") {
			t.Errorf("known: %v, error %v, under way: %v", known, err, g.underway("a"))
		}
		time.Sleep(2 * time.Hour)
		if g.underway("a") {
			t.Error("it is under way for ever")
		}
	})
}

func TestFewSubmissionsAtOnce(t *testing.T) {
	gather(t, func(t *testing.T, g *gathering) {
		var mu sync.Mutex
		now, most := 0, 0
		g.answers = func(tasks []app.Task) ([]app.Handle, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Minute)
			mu.Lock()
			now--
			mu.Unlock()
			return []app.Handle{app.Handle(tasks[0].Token)}, nil
		}
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() { g.start(request{limit: time.Duration(i)}, fmt.Sprint(i)) })
		}
		callers.Wait()
		if most != submitsAtOnce {
			t.Errorf("%d submissions at once, want %d", most, submitsAtOnce)
		}
	})
}

func TestServiceThatStopsTurnsTasksAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, cancel := context.WithCancel(t.Context())
		g := newGatherer(nil, func(context.Context) int { return 10 })
		done := make(chan struct{})
		go func() { defer close(done); g.run(end) }()
		result := make(chan error)
		go func() {
			_, _, err := g.add(t.Context(), end, request{}, app.Task{})
			result <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-result; !errors.Is(err, errClosed) {
			t.Errorf("error %v", err)
		}
		<-done
		if _, _, err := g.add(t.Context(), end, request{}, app.Task{}); !errors.Is(err, errClosed) {
			t.Errorf("error %v", err)
		}
	})
}
