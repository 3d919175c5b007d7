package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/executor/local"
	"molrun/app/executor/local/gpu"
	"molrun/app/job/eta"
	"molrun/app/test/must"
	"molrun/app/test/smi"
)

// watchedGPUs is the scripted executor with GPUs that tests make faulty.
type watchedGPUs struct {
	*scripted
	changed chan struct{}

	mu     sync.Mutex
	faults map[string]app.GPUFault
	held   []string
	checks func() // called by a check
	fails  error  // error of a check
}

func watchGPUs(w *world) *watchedGPUs {
	g := &watchedGPUs{scripted: w.executor, changed: make(chan struct{}, 1), faults: map[string]app.GPUFault{}}
	w.front = g
	return g
}

func (g *watchedGPUs) Capacity() (app.Capacity, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.capacity
	c.GPUs, c.FaultyGPUs = nil, nil
	for _, name := range g.capacity.GPUs {
		if f := g.faults[name]; f != "" {
			c.FaultyGPUs = append(c.FaultyGPUs, app.FaultyGPU{Name: name, Fault: f, Text: "is broken (" + string(f) + ")"})
			continue
		}
		c.GPUs = append(c.GPUs, name)
	}
	return c, true
}

func (g *watchedGPUs) GPUsChanged() <-chan struct{} { return g.changed }

func (g *watchedGPUs) HoldGPUs(names []string) {
	g.mu.Lock()
	g.held = slices.Clone(names)
	g.mu.Unlock()
}

func (g *watchedGPUs) CheckGPUs(context.Context) error {
	if g.checks != nil {
		g.checks()
	}
	return g.fails
}

func (g *watchedGPUs) fault(name string) app.GPUFault {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.faults[name]
}

// set makes a GPU faulty, or repairs it.
func (g *watchedGPUs) set(name string, f app.GPUFault) {
	g.mu.Lock()
	g.faults[name] = f
	g.mu.Unlock()
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

func TestJobOnALostGPURunsOnAnother(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		g := watchGPUs(w)
		w.start()
		id := w.submit(ann, "a", `{"steps":1,"gpus":1}`)
		w.until("a", app.Running)
		g.set("GPU-a", app.GPULost)
		time.Sleep(time.Second)
		r := w.until("a", app.Running)
		must.Equal(t, "its second attempt", fmt.Sprint(r.Attempts, w.executor.started(id)), "2 2")
		must.Equal(t, "held", fmt.Sprint(g.held), "[GPU-b]")
		w.submit(bob, "b", `{"steps":1,"gpus":2}`)
		time.Sleep(2 * time.Second)
		must.Equal(t, "why another waits", w.job("b").StatusReason, "waiting for 2 GPUs: 1 of 2 can be used now; GPU-a is broken (lost)")
		must.Equal(t, "blocked by", w.job("b").Queue.BlockedBy, eta.GPU)
		g.set("GPU-b", app.GPULost)
		r = w.finished("a")
		must.Equal(t, "the end", r.Failure.Message, "The job was lost: the GPU GPU-b is broken (lost). Retry it to run it again.")
		must.Equal(t, "code", r.Failure.Code, app.FailedLost)
		g.set("GPU-a", "")
		g.set("GPU-b", "")
		must.Equal(t, "the other, at last", w.finished("b").Status, app.Completed)
	})
}

// TestLostGPUComesBackAtOnce has the fault disappear while the job is being stopped.
func TestLostGPUComesBackAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		g := watchGPUs(w)
		w.play(func(string, int) script { return script{runs: time.Hour, cause: app.CauseDone, stopTakes: time.Minute} })
		w.start()
		w.submit(ann, "a", `{"steps":1,"gpus":2}`)
		w.until("a", app.Running)
		g.set("GPU-a", app.GPULost)
		time.Sleep(time.Second)
		g.set("GPU-a", "")
		must.Equal(t, "attempts", w.until("a", app.Queued).Attempts, 1)
		must.Equal(t, "the end", w.finished("a").Status, app.Completed)
	})
}

func TestFaultsThatLeaveJobsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		g := watchGPUs(w)
		w.start()
		w.submit(ann, "a", `{"steps":1,"gpus":1}`)
		w.until("a", app.Running)
		for _, f := range []app.GPUFault{app.GPUNeedsReset, app.GPUMemoryError, app.GPUUnknown, app.GPUOccupied} {
			g.set("GPU-a", f)
			time.Sleep(time.Second)
		}
		r := w.finished("a")
		must.Equal(t, "the end", fmt.Sprint(r.Status, r.Attempts), "COMPLETED1")
		must.Equal(t, "stops", w.executor.stops, 0)
	})
}

// TestFailureThatAGPUHasCaused has a program fail before the GPU's fault is known.
func TestFailureThatAGPUHasCaused(t *testing.T) {
	for _, tt := range []struct {
		name, settings string
		cause          app.Cause
		fault          app.GPUFault
		fails          error
		want           string
	}{
		{"lost", `{"steps":1,"gpus":1}`, app.CauseExit, app.GPULost, nil, "LOST after 2 attempts"},
		{"memory errors", `{"steps":1,"gpus":1}`, app.CauseSignal, app.GPUMemoryError, nil, "LOST after 2 attempts"},
		{"by itself", `{"steps":1,"gpus":1}`, app.CauseExit, "", nil, "EXIT_STATUS after 1 attempts"},
		{"nothing known", `{"steps":1,"gpus":1}`, app.CauseExit, app.GPUUnknown, errors.New("no answer"), "EXIT_STATUS after 1 attempts"},
		{"another limit", `{"steps":1,"gpus":1}`, app.CauseMemory, app.GPULost, nil, "OUT_OF_MEMORY after 1 attempts"},
		{"without a GPU", `{"steps":1}`, app.CauseExit, app.GPULost, nil, "EXIT_STATUS after 1 attempts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				g := watchGPUs(w)
				g.fails = tt.fails
				g.checks = func() { g.set("GPU-a", tt.fault); g.set("GPU-b", tt.fault) }
				w.play(func(_ string, attempt int) script {
					if attempt == 2 && g.fault("GPU-a") != "" {
						t.Error("the next attempt has a faulty GPU")
					}
					return script{runs: time.Minute, cause: tt.cause, exitCode: 1}
				})
				w.start()
				w.submit(ann, "a", tt.settings)
				if w.until("a", app.Running); tt.fault == app.GPULost || tt.fault == app.GPUMemoryError {
					time.Sleep(2 * time.Minute)
					g.set("GPU-a", "")
				}
				r := w.finished("a")
				must.Equal(t, "the end", fmt.Sprintf("%s after %d attempts", strings.TrimPrefix(string(r.Failure.Code), "JOB_"), r.Attempts), tt.want)
			})
		})
	}
}

// gpuFaultJobs makes a GPU faulty between the claim of a job and the start of its task.
type gpuFaultJobs struct {
	Jobs
	before func(*app.Job)
}

func (f gpuFaultJobs) PlacementOf(ctx context.Context, j *app.Job) (placement.Placement, error) {
	f.before(j)
	return f.Jobs.PlacementOf(ctx, j)
}

func TestJobDoesNotStartOnAFaultyGPU(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		g := watchGPUs(w)
		first := true
		w.jobs = gpuFaultJobs{w.jobs, func(*app.Job) {
			if first {
				first = false
				g.set("GPU-a", app.GPUNeedsReset)
				time.Sleep(time.Second) // so that the loop receives the event
			}
		}}
		w.start()
		id := w.submit(ann, "a", `{"steps":1,"gpus":1}`)
		r := w.finished("a")
		must.Equal(t, "the end", fmt.Sprint(r.Status, r.Attempts, w.executor.started(id)), "COMPLETED1 1")
		for _, task := range w.executor.tasks {
			must.Equal(t, "its GPU", fmt.Sprint(task.Devices.GPUs), "[GPU-b]")
		}
	})
}

// TestLostGPUIsFoundByTheNextRunner loses the GPU while no service runs.
func TestLostGPUIsFoundByTheNextRunner(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		g := watchGPUs(w)
		w.play(func(string, int) script { return script{runs: time.Hour, cause: app.CauseDone} })
		stop := w.start()
		w.submit(ann, "a", `{"steps":1,"gpus":1}`)
		w.until("a", app.Running)
		stop()
		g.set("GPU-a", app.GPULost)
		<-g.changed
		w.start()
		time.Sleep(time.Second)
		r := w.until("a", app.Running)
		must.Equal(t, "attempts", r.Attempts, 2)
		must.Equal(t, "held", fmt.Sprint(g.held), "[GPU-b]")
	})
}

// gpuFile is shFile with GPUs.
const gpuFile = shFile + `
[[parameters]]
name = "gpus"
type = "integer"
minimum = 0
default = 1

[resources]
cpus = 1
gpus = "{settings.gpus}"
memory = "64MiB"
`

// withCards returns a world on this machine with the GPUs listed by a stand-in for
// nvidia-smi.
func withCards(t *testing.T, s *smi.StandIn) (*world, *gpu.Watcher) {
	t.Helper()
	w := onThisMachine(t, 16, nil)
	gpus := gpu.New(gpu.Options{Program: s.Program, Interval: 20 * time.Millisecond, Root: t.TempDir(), Log: zerolog.New(zerolog.NewTestWriter(t))})
	program, err := os.Executable()
	must.OK(t, err)
	e := local.New(local.Options{Program: program, CPUs: 16, MemoryBytes: 4 * gib, GPUs: gpus})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gpus.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must.OK(t, errors.Join(<-done, gpus.Close(), e.Close()))
		if s.Twice() {
			t.Error("two processes of nvidia-smi ran at once")
		}
	})
	w.front = e
	w.Service = w.serviceWith(gpuFile, func() int { return gpus.State().Count() })
	w.jobs = w.Service.Runs
	return w, gpus
}

// TestSevenOfEightCardsWork has one of eight cards lost at the start, and another one
// during a job. Both return. Jobs are real processes, nvidia-smi is a stand-in.
func TestSevenOfEightCardsWork(t *testing.T) {
	s := smi.New(t)
	cards := func(lost int) {
		lines, status := make([]string, 8), 0
		for n := range lines {
			lines[n] = smi.Card(n, fmt.Sprint("GPU-", n))
		}
		if lost >= 0 {
			lines[lost] = fmt.Sprintf("Unable to determine the device handle for GPU0000:%02X:00.0: Unknown Error", lost+16)
			status = 255
		}
		s.Cards(status, lines...)
	}
	cards(3)
	w, gpus := withCards(t, s)
	healthy := func(n int) {
		t.Helper()
		must.Become(t, fmt.Sprint(n, " cards to be healthy"), func() bool { return len(gpus.State().GPUs) == n })
	}
	healthy(7)
	w.start()
	gate := filepath.Join(w.dir, "gate")
	script := func(gpus int) string {
		return fmt.Sprintf(`{"gpus":%d,"script":"echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES; until [ -e %s ]; do sleep 0.05; done"}`, gpus, gate)
	}
	for n := range 8 {
		w.submit(ann, fmt.Sprint("first", n), script(1))
	}
	running := func(prefix string) (n int) {
		for i := range 8 {
			if w.job(fmt.Sprint(prefix, i)).Status == app.Running {
				n++
			}
		}
		return n
	}
	must.Become(t, "seven jobs to run", func() bool { return running("first") == 7 })
	must.Equal(t, "the other", w.job("first7").Status, app.Queued)
	cards(-1) // it returns
	must.Become(t, "the eighth job to run", func() bool { return running("first") == 8 })
	cards(5) // lost during a job
	must.Become(t, "that job to lose its card", func() bool { return running("first") == 7 })
	must.Equal(t, "count", fmt.Sprint(len(gpus.State().GPUs), gpus.State().Faulty), "7 [{GPU-5 lost is lost (Unknown Error)}]")
	must.OK(t, os.WriteFile(gate, nil, 0o600))
	used := map[string]int{}
	for n := range 8 {
		r := w.finished(fmt.Sprint("first", n))
		if r.Status != app.Completed {
			t.Fatalf("job %d: %+v", n, r.Failure)
		}
		log := strings.TrimSpace(w.checkResult(r.ID)["log.txt"])
		name, visible, _ := strings.Cut(log, " ")
		must.Equal(t, "what containers see", visible, name)
		used[name]++
		if (name == "GPU-5") || r.Attempts > 2 {
			t.Errorf("job %d ran on %s at its attempt %d", n, name, r.Attempts)
		}
	}
	w.submit(ann, "all", script(8))
	must.Become(t, "why the job for all cards waits", func() bool {
		return strings.Contains(w.job("all").StatusReason, "waiting for 8 GPUs: 7 of 8 can be used now; GPU-5 is lost")
	})
	cards(-1)
	must.Equal(t, "the job for all cards", w.finished("all").Status, app.Completed)
}
