package slurm_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/executor/slurm"
	"molrun/app/test/cluster"
	"molrun/app/test/must"
)

// limitedWorld is a world with its own cluster, whose slurmctld enforces account limits.
func limitedWorld(t *testing.T) *world {
	t.Helper()
	const enforce = "AccountingStorageEnforce=associations,limits\n"
	w := worldOn(t, cluster.New(t, cluster.Knobs{Nodes: 1, NoGPUs: true, BatchStart: 120, Extra: enforce + "MaxArraySize=1001\n"}))
	w.options.Path = os.Getenv("PATH")
	return w
}

// setMaxArraySize restarts the controller with another MaxArraySize.
func (w *world) setMaxArraySize(size string) {
	w.Helper()
	file := filepath.Join(filepath.Dir(w.cluster.Conf), "..", "..", "extra.conf")
	text := strings.Replace(w.text(file), "MaxArraySize=1001", "MaxArraySize="+size, 1)
	must.OK(w, os.WriteFile(file, []byte(text), 0o644))
	w.cluster.Stop(w, cluster.Controller)
	w.cluster.Up(w, cluster.Controller)
}

// startEach starts tasks concurrently and returns how many were accepted, and the errors
// of the others.
func (w *world) startEach(e *slurm.Executor, tasks []app.Task) (taken int, refused []error) {
	w.Helper()
	var mu sync.Mutex
	var callers sync.WaitGroup
	for i := range tasks {
		callers.Go(func() {
			h, err := e.Start(w.Context(), tasks[i])
			tasks[i].Handle = h
			mu.Lock()
			defer mu.Unlock()
			if taken++; err != nil {
				taken--
				refused = append(refused, err)
			}
		})
	}
	callers.Wait()
	return taken, refused
}

// TestArraysFitTheLimitsOfTheCluster lowers the limits while an executor runs.
func TestArraysFitTheLimitsOfTheCluster(t *testing.T) {
	w := limitedWorld(t)
	calls := w.standIn("sbatch", `echo >>$calls; exec $real "$@"`)
	e := w.executor()
	w.ended(e, w.start(e, w.task("exit 0"))) // so that it caches the first MaxArraySize
	t.Run("MaxArraySize", func(t *testing.T) {
		w.setMaxArraySize("16")
		before := w.lines(calls)
		tasks := w.tasks40()
		if taken, refused := w.startEach(e, tasks); taken != len(tasks) {
			t.Fatalf("%d of %d tasks were taken: %v", taken, len(tasks), errors.Join(refused...))
		}
		if n := w.lines(calls) - before; n > 8 {
			t.Errorf("%d calls of sbatch for 40 tasks in arrays of 15", n)
		}
		for _, a := range tasks {
			w.ends(e, a, app.CauseDone)
		}
	})
	t.Run("MaxTime of a minute", func(t *testing.T) {
		w.cluster.Run(t, "scontrol", "create", "PartitionName=short", "Nodes=ALL", "MaxTime=1")
		e := w.executor()
		short := placement.Placement{Partition: "short"}
		must.Become(t, "the partition is known", func() bool { n, known := e.Largest(short); return known && n.Seconds == 30 })
		a := w.task("exit 0")
		a.Placement = short
		w.ends(e, w.start(e, a), app.CauseDone)
	})
	t.Run("MaxSubmitJobs", func(t *testing.T) {
		w.cluster.Run(t, "sacctmgr", "-i", "modify", "user", "root", "set", "MaxSubmitJobs=10")
		w.finds(slurm.Doubtful, "is limited to 10 jobs at once in account root (MaxSubmitJobs, GrpSubmitJobs), less than slurm.max_jobs = 5000", placement.Placement{})
		w.finds(slurm.Wrong, "sacctmgr add user root account=nobodys cluster=test", placement.Placement{Account: "nobodys"})
		w.cluster.Run(t, "scontrol", "update", "PartitionName=main", "State=DOWN")
		before := w.lines(calls)
		tasks := w.tasks40()
		taken, refused := w.startEach(e, tasks)
		for _, err := range refused {
			if no, ok := errors.AsType[*fault.Error](err); !ok || no.Code != fault.Unavailable || !strings.Contains(no.Message, "(AssocMaxSubmitJobLimit)") {
				t.Fatalf("error %v, want one that passes, with the limit", err)
			}
		}
		must.Equal(t, "tasks were taken", taken, 10)
		if n := w.lines(calls) - before; n > 30 {
			t.Errorf("%d calls of sbatch", n)
		}
		w.cluster.Run(t, "scontrol", "update", "PartitionName=main", "State=UP")
		for _, a := range tasks {
			if a.Handle == "" {
				continue
			}
			w.ends(e, a, app.CauseDone)
		}
	})
}

func (w *world) tasks40() []app.Task {
	tasks := make([]app.Task, 40)
	for i := range tasks {
		tasks[i] = w.task("exit 0")
	}
	return tasks
}
