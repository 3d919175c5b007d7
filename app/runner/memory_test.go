package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/base/fault"
	"molrun/app/task"
	"molrun/app/test/must"
)

const mib = 1 << 20

// retryFile is the end of an algorithm file whose jobs are retried with more memory.
const retryFile = `
[retry]
on = ["OUT_OF_MEMORY"]
`

// growing makes the world's jobs retry with more memory. It returns a function that lists
// the memory of each task of a job, in MiB.
func (w *world) growing(keys string) (memory func(app.JobID) string) {
	w.t.Helper()
	w.Service = w.service(simFile + retryFile + keys)
	w.jobs = w.Service.Runs
	var mu sync.Mutex
	had := map[app.JobID][]string{}
	play := w.executor.play
	w.executor.play = func(t app.Task) script {
		spec, err := task.ReadSpec(t.Dir)
		if err != nil || spec.MemoryBytes != t.Needs.MemoryBytes {
			w.t.Errorf("task.json has %d bytes, %v, want %d", spec.MemoryBytes, err, t.Needs.MemoryBytes)
		}
		mu.Lock()
		had[t.Job] = append(had[t.Job], fmt.Sprint(t.Needs.MemoryBytes/mib))
		mu.Unlock()
		return play(t)
	}
	return func(id app.JobID) string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(had[id], " ")
	}
}

// pastMemory returns the memory of a job's past attempts in MiB.
func pastMemory(j app.Job) string {
	var all []string
	for _, p := range j.PastAttempts {
		all = append(all, fmt.Sprint(p.MemoryBytes/mib))
	}
	return strings.Join(all, " ")
}

func TestJobGetsMoreMemoryUntilItFits(t *testing.T) {
	killed := script{cause: app.CauseMemory}
	said := script{cause: app.CauseExit, exitCode: 1, log: "MemoryError\n"}
	lost, done := script{}, script{cause: app.CauseDone}
	known := script{cause: app.CauseExit, exitCode: 1, log: "No more columns\n"}
	gpu := script{cause: app.CauseExit, exitCode: 1, log: "RuntimeError: CUDA out of memory.\n"}
	incomplete := script{cause: app.CauseDone, overMemory: true, out: map[string]string{}}
	const end = " Give the job more memory, or a smaller input."
	for _, tt := range []struct {
		name, keys   string
		scripts      []script
		memory, past string
		code         app.FailureCode
		message      string
	}{
		{"twice too little", "", []script{killed, killed, done}, "1 2 4", "1 2", "", ""},
		{"by its words", "", []script{said, known, done}, "1 2 4", "1 2", "", ""},
		{"lost in between", "", []script{killed, lost, done}, "1 2 2", "1", "", ""},
		{"lost before", "", []script{lost, killed, done}, "1 1 2", "1", "", ""},
		{"without a result", "[[outputs]]\nname = \"by\"\nfile = \"by\"\nrequired = true\n", []script{incomplete, done}, "1 2", "1", "", ""},
		{
			"at the most", "most = \"3MiB\"\n",
			[]script{killed, killed, said},
			"1 2 3", "1 2", app.FailedMemory,
			"The program ran out of memory." + end + " Last output: MemoryError. It had 3.0 MiB; the maximum for sim is 3.0 MiB.",
		},
		{
			"often enough", "attempts = 1\n",
			[]script{killed, killed},
			"1 2", "1", app.FailedMemory,
			"The program used more than its 2.0 MiB of memory." + end + " Its memory was raised once, the maximum for sim.",
		},
		{
			"another failure then", "",
			[]script{killed, {cause: app.CauseExit, exitCode: 1, log: "oops"}},
			"1 2", "1", app.FailedExit,
			"The program ended with exit status 1. Last output: oops",
		},
		{
			"memory of a GPU", "",
			[]script{gpu},
			"1", "", app.FailedMemory,
			"The program ran out of GPU memory. Use a smaller input or a GPU with more memory; more main memory does not help. Last output: RuntimeError: CUDA out of memory.",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.options.KeepFailed = 0 // the next attempt's input is retained anyway
				w.play(func(_ string, attempt int) script {
					s := tt.scripts[attempt-1]
					s.runs = time.Minute
					if s.out == nil {
						s.out = map[string]string{"by": "x", fmt.Sprint("by-", attempt): "x"}
					}
					s.log = fmt.Sprintf("attempt %d\n%s", attempt, s.log)
					return s
				})
				memory := w.growing(tt.keys)
				w.jobs = slowFinish{w.jobs}
				w.start()
				id := w.submit(ann, "a", `{}`)
				r := w.finished("a")
				must.Equal(t, "memory of the tasks", memory(id), tt.memory)
				must.Equal(t, "memory of past attempts", pastMemory(r.Job), tt.past)
				if n := len(tt.scripts); r.Attempts != n || w.executor.started(id) != n || (r.Status == app.Completed) != (tt.code == "") {
					t.Fatalf("%s after %d attempts and %d tasks: %+v", r.Status, r.Attempts, w.executor.started(id), r.Failure)
				}
				for n := 1; n <= r.Attempts; n++ {
					must.Contain(t, "the log of an attempt", w.text(w.path(id, fmt.Sprint(n), task.LogFile)), fmt.Sprintf("attempt %d\n", n))
				}
				time.Sleep(2 * time.Minute) // slowFinish responds late
				if _, err := os.Stat(w.path(id, "1", task.WorkDir)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the first attempt's work directory is still there: %v", err)
				}
				if tt.code != "" {
					must.Equal(t, "failure", fmt.Sprint(r.Failure.Code, ": ", r.Failure.Message), fmt.Sprint(tt.code, ": ", tt.message))
					return
				}
				// The algorithm is resumable: an attempt finds the output of earlier
				// ones.
				got := w.checkResult(id)
				for n := 1; n <= r.Attempts; n++ {
					if got[fmt.Sprint("by-", n)] != "x" && tt.name != "without a result" {
						t.Errorf("nothing of attempt %d is in the result: %v", n, got)
					}
				}
			})
		})
	}
}

// TestMemoryThatGrowsStaysWithinTheMachine has a job wait for memory in use by another
// job, and fail when the machine has no more.
func TestMemoryThatGrowsStaysWithinTheMachine(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(name string, _ int) script {
			if name == "other" {
				return script{runs: 3 * time.Minute, cause: app.CauseDone}
			}
			return script{runs: time.Minute, cause: app.CauseMemory}
		})
		memory := w.growing("memory = 16\nattempts = 10\n")
		w.start()
		w.submit(ann, "other", `{}`)
		id := w.submit(ann, "a", `{}`)
		r := w.finished("a")
		must.Equal(t, "memory of the tasks", memory(id), "1 16 256 1024") // the executor fails the test if this exceeds the free memory
		must.Contain(t, "the last failure", r.Failure.Message, "It had 1.0 GiB, and no suitable machine has more.")
	})
}

// TestMemoryGrowsOnceTheStoreWorksAgain has an attempt end while the store fails.
func TestMemoryGrowsOnceTheStoreWorksAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.play(func(_ string, attempt int) script {
			return script{runs: time.Minute, cause: []app.Cause{app.CauseMemory, app.CauseDone}[attempt-1]}
		})
		memory := w.growing("")
		begin := time.Now()
		w.jobs = &awayAlgorithms{Jobs: w.jobs, from: begin.Add(30 * time.Second), until: begin.Add(time.Hour)}
		w.start()
		id := w.submit(ann, "a", `{}`)
		if r := w.finished("a"); r.Status != app.Completed || memory(id) != "1 2" {
			t.Errorf("%s with %s: %+v", r.Status, memory(id), r.Failure)
		}
	})
}

// awayAlgorithms fails to find algorithm files for a while.
type awayAlgorithms struct {
	Jobs
	from, until time.Time
}

func (j *awayAlgorithms) AlgorithmOf(ctx context.Context, of *app.Job) (*algorithm.File, error) {
	if now := time.Now(); now.After(j.from) && now.Before(j.until) {
		return nil, fault.Errorf(fault.Unavailable, "try later")
	}
	return j.Jobs.AlgorithmOf(ctx, of)
}

// TestRestartAtEveryStepOfMemory has a runner die at each of its calls while a job runs
// out of memory twice: each end raises the memory once, and each attempt runs once.
func TestRestartAtEveryStepOfMemory(t *testing.T) {
	t.Parallel()
	restartEverywhere(t, restartGrowingAt, func(w *world) { w.options.KeepFailed = 0 })
}

func restartGrowingAt(t *testing.T, w *world, at int, after bool) (over bool) {
	w.play(func(_ string, attempt int) script {
		return script{
			runs: 40 * time.Millisecond, cause: []app.Cause{app.CauseMemory, app.CauseMemory, app.CauseDone}[min(attempt, 3)-1],
			out: map[string]string{fmt.Sprint("by-", attempt): ""},
		}
	})
	memory := w.growing("")
	id := w.submit(ann, "a", `{}`)
	c, wait := w.startToCrash(at, after)
	time.Sleep(time.Minute)
	wait()
	w.start()
	r := w.finished("a")
	if r.Status != app.Completed || r.Attempts != 3 || memory(id) != "1 2 4" || pastMemory(r.Job) != "1 2" {
		t.Errorf("%s after %d attempts with %s MiB, past ones with %s: %+v", r.Status, r.Attempts, memory(id), pastMemory(r.Job), r.Failure)
	}
	if got := w.checkResult(id); len(got) != 5 { // files of three attempts, the record and the log
		t.Errorf("the result is %v", got)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls < at
}

// TestRowsOfAWorkerGetMoreMemory has every third job of a batch that shares processes run
// out of memory twice. It then runs alone.
func TestRowsOfAWorkerGetMoreMemory(t *testing.T) {
	w := withWorkers(t, 2)
	w.Service = w.service(shFile + "[resources]\nmemory = \"100MiB\"\n" + retryFile)
	w.jobs = w.Service.Runs
	var scripts []string
	for n := range 9 {
		ran := filepath.Join(w.dir, fmt.Sprint("ran", n))
		script := fmt.Sprintf("echo x >>%s", ran)
		if n%3 == 1 {
			script += fmt.Sprintf("; [ $(wc -l <%s) -eq 3 ] || { echo MemoryError; exit 1; }", ran)
		}
		scripts = append(scripts, script)
	}
	w.batch(ann, "b", scripts...)
	w.start()
	if r := w.finished("b"); r.Status != app.Completed {
		t.Fatalf("%+v", r.Counts)
	}
	for n := range 9 {
		r, want, ran := w.row("b", n+1), "", 1
		if n%3 == 1 {
			want, ran = "100 200", 3
		}
		if got := strings.Count(w.text(filepath.Join(w.dir, fmt.Sprint("ran", n))), "x"); got != ran || r.Attempts != ran || pastMemory(r.Job) != want {
			t.Errorf("row %d ran %d times in %d attempts, past ones with %s MiB; want %d, %q", n+1, got, r.Attempts, pastMemory(r.Job), ran, want)
		}
	}
	w.noWorkers()
}
