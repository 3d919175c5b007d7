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
	"molrun/app/test/must"
)

// gathering is a gatherer that records its submissions.
type gathering struct {
	*gatherer
	t       *testing.T
	end     context.Context
	mu      sync.Mutex
	sizes   []int
	answers func([]app.Task) ([]app.Handle, error)
}

func withGatherer(t *testing.T, test func(t *testing.T, g *gathering)) {
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
		}, func(context.Context) int { return 1000 }, submitsAtOnce)
		done := make(chan struct{})
		go func() { defer close(done); g.Run(end) }()
		test(t, g)
		cancel()
		<-done
	})
}

// start adds a task and checks its handle.
func (g *gathering) start(r request, token string) {
	h, known, err := g.SubmitTogether(context.Background(), g.end, r, app.Task{Token: token})
	if string(h) != token || !known || err != nil {
		g.t.Errorf("task %s: handle %q, known: %v, %v", token, h, known, err)
	}
}

// startAll adds n tasks, each after a pause, and waits for their handles. of returns the
// request of the i-th task.
func (g *gathering) startAll(n int, pause time.Duration, of func(i int) request) {
	var callers sync.WaitGroup
	for i := range n {
		time.Sleep(pause)
		callers.Go(func() { g.start(of(i), fmt.Sprint(i)) })
	}
	callers.Wait()
}

// sameRequest returns the same request for all tasks.
func sameRequest(int) request { return request{} }

func TestLoneTaskHardlyWaits(t *testing.T) {
	withGatherer(t, func(t *testing.T, g *gathering) {
		begin := time.Now()
		g.start(request{}, "a")
		must.Equal(t, "it took", time.Since(begin), loneWait)
	})
}

func TestTenThousandTasksAreTenSubmissions(t *testing.T) {
	withGatherer(t, func(t *testing.T, g *gathering) {
		g.startAll(10_000, time.Millisecond, sameRequest) // as fast as directories are prepared
		if want := slices.Repeat([]int{1000}, 10); !slices.Equal(g.sizes, want) {
			t.Errorf("submissions of %v tasks, want %v", g.sizes, want)
		}
	})
}

func TestSlowStreamIsGatheredForSeconds(t *testing.T) {
	withGatherer(t, func(t *testing.T, g *gathering) {
		var callers sync.WaitGroup
		longest := time.Duration(0)
		for i := range 300 {
			time.Sleep(streamWait / 5)
			callers.Go(func() {
				begin := time.Now()
				g.start(request{}, fmt.Sprint(i))
				g.mu.Lock()
				longest = max(longest, time.Since(begin))
				g.mu.Unlock()
			})
		}
		callers.Wait()
		if longest > maxGatherWait || len(g.sizes) > 8 {
			t.Errorf("submissions of %v tasks; one waited for %v", g.sizes, longest)
		}
	})
}

func TestTwoTasksAreAStream(t *testing.T) {
	withGatherer(t, func(t *testing.T, g *gathering) {
		var callers sync.WaitGroup
		for n, pause := range []time.Duration{0, loneWait / 2, streamWait / 2} {
			time.Sleep(pause)
			callers.Go(func() { g.start(request{}, fmt.Sprint(n)) })
		}
		callers.Wait()
		if !slices.Equal(g.sizes, []int{3}) {
			t.Errorf("submissions of %v tasks", g.sizes)
		}
	})
}

func TestFullGroupIsSentAtOnce(t *testing.T) {
	withGatherer(t, func(t *testing.T, g *gathering) {
		begin := time.Now()
		g.startAll(1000, 0, sameRequest)
		if waited := time.Since(begin); waited > 0 {
			t.Errorf("it waits for %v more", waited)
		}
	})
}

func TestDifferentRequestsStayApart(t *testing.T) {
	withGatherer(t, func(t *testing.T, g *gathering) {
		g.startAll(30, 0, func(i int) request { return request{placement: fmt.Sprint(i % 3)} })
		if !slices.Equal(g.sizes, []int{10, 10, 10}) {
			t.Errorf("submissions of %v tasks", g.sizes)
		}
	})
}

func TestFailureFailsEveryTask(t *testing.T) {
	withGatherer(t, func(t *testing.T, g *gathering) {
		no := errors.New("no")
		g.answers = func([]app.Task) ([]app.Handle, error) { return nil, no }
		var callers sync.WaitGroup
		for i := range 3 {
			callers.Go(func() {
				if _, known, err := g.SubmitTogether(t.Context(), g.end, request{}, app.Task{Token: fmt.Sprint(i)}); !known || !errors.Is(err, no) {
					t.Errorf("known: %v, error %v", known, err)
				}
			})
		}
		callers.Wait()
	})
}

func TestTaskWithdrawnBeforeSubmissionIsNotSubmitted(t *testing.T) {
	withGatherer(t, func(t *testing.T, g *gathering) {
		ctx, cancel := context.WithTimeout(t.Context(), loneWait/2)
		defer cancel()
		_, known, err := g.SubmitTogether(ctx, g.end, request{}, app.Task{Token: "a"})
		if !known || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("known: %v, error %v", known, err)
		}
		time.Sleep(time.Minute)
		if len(g.sizes) != 0 {
			t.Errorf("submissions of %v tasks", g.sizes)
		}
	})
}

func TestResultIsUnknownAfterGivingUpDuringSubmission(t *testing.T) {
	withGatherer(t, func(t *testing.T, g *gathering) {
		g.answers = func([]app.Task) ([]app.Handle, error) {
			time.Sleep(time.Hour)
			return []app.Handle{"a"}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, known, err := g.SubmitTogether(ctx, g.end, request{}, app.Task{Token: "a"})
		if known || err != nil || !g.Underway("a") {
			t.Errorf("known: %v, error %v, under way: %v", known, err, g.Underway("a"))
		}
		time.Sleep(2 * time.Hour)
		if g.Underway("a") {
			t.Error("still marked as being submitted")
		}
	})
}

func TestFewSubmissionsAtOnce(t *testing.T) {
	withGatherer(t, func(t *testing.T, g *gathering) {
		now, most := 0, 0
		count := func(by int) {
			g.mu.Lock()
			now += by
			most = max(most, now)
			g.mu.Unlock()
		}
		g.answers = func(tasks []app.Task) ([]app.Handle, error) {
			count(1)
			time.Sleep(time.Minute)
			count(-1)
			return []app.Handle{app.Handle(tasks[0].Token)}, nil
		}
		g.startAll(20, 0, func(i int) request { return request{placement: fmt.Sprint(i)} })
		must.Equal(t, "submissions at once", most, submitsAtOnce)
	})
}

func TestStoppingTurnsTasksAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, cancel := context.WithCancel(t.Context())
		g := newGatherer(nil, func(context.Context) int { return 10 }, 4)
		done := make(chan struct{})
		go func() { defer close(done); g.Run(end) }()
		result := make(chan error)
		go func() {
			_, _, err := g.SubmitTogether(t.Context(), end, request{}, app.Task{})
			result <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-result; !errors.Is(err, errStopping) {
			t.Errorf("error %v", err)
		}
		<-done
		if _, _, err := g.SubmitTogether(t.Context(), end, request{}, app.Task{}); !errors.Is(err, errStopping) {
			t.Errorf("error %v", err)
		}
	})
}
