package slurm_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/executor/slurm"
	"molrun/app/test/cluster"
	"molrun/app/test/must"
)

// findings returns the findings of CheckCluster, one per line.
func (w *world) findings(places ...placement.Placement) (text string, worst slurm.Grade) {
	w.Helper()
	var lines []string
	for _, f := range slurm.CheckCluster(w.Context(), w.options, places...) {
		lines = append(lines, fmt.Sprint(f.Grade, " ", f.Text))
		worst = max(worst, f.Grade)
	}
	return strings.Join(lines, "\n"), worst
}

func (w *world) finds(worst slurm.Grade, want string, places ...placement.Placement) {
	w.Helper()
	text, got := w.findings(places...)
	if got != worst || !strings.Contains(text, want) {
		w.Errorf("worst is %d, want %d with %q in\n%s", got, worst, want, text)
	}
}

func TestCheckUsesSharedDirectoryFromBothSides(t *testing.T) {
	w := newWorld(t)
	w.finds(slurm.Fine, "exchanged files with this machine", placement.Placement{Partition: "main"})
	left, err := filepath.Glob(filepath.Join(w.options.SharedDir, ".probe-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

// TestCheckNamesTheProblem breaks one thing at a time.
func TestCheckNamesTheProblem(t *testing.T) {
	tests := []struct {
		name  string
		worst slurm.Grade
		want  string
		place placement.Placement
		plant func(*world)
	}{
		{"no commands", slurm.Wrong, "has no sbatch, squeue", placement.Placement{}, func(w *world) { w.options.Path = w.options.SharedDir }},
		{"no such slurm.conf", slurm.Wrong, "the controller does not respond", placement.Placement{}, func(w *world) {
			w.options.SlurmConf = filepath.Join(w.options.SharedDir, "slurm.conf")
		}},
		{"no such partition", slurm.Wrong, "there is no partition nowhere", placement.Placement{Partition: "main,nowhere"}, func(*world) {}},
		{"nodes of a kind that there is not", slurm.Wrong, "could not submit the test job", placement.Placement{Constraint: "nowhere"}, func(*world) {}},
		{"no shared folder", slurm.Wrong, "the shared folder is not writable", placement.Placement{}, func(w *world) {
			w.options.SharedDir = filepath.Join(w.options.SharedDir, "absent")
		}},
		{"more jobs than the cluster holds", slurm.Doubtful, "(MaxJobCount)", placement.Placement{}, func(w *world) { w.options.MaxTasks = 20000 }},
		{"a program that nodes can't run", slurm.Wrong, "this program does not run on node", placement.Placement{}, func(w *world) {
			w.options.Program = filepath.Join(w.options.SharedDir, "broken")
			must.OK(w, os.WriteFile(w.options.Program, []byte("no program"), 0o700))
		}},
		{"a clock that is behind", slurm.Doubtful, "s ahead of this machine's", placement.Placement{}, func(w *world) {
			w.options.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		}},
		{"a clock that is ahead", slurm.Doubtful, "s behind this machine's", placement.Placement{}, func(w *world) {
			w.options.Now = func() time.Time { return time.Now().Add(time.Hour) }
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.plant(w)
			w.finds(tt.worst, tt.want, tt.place)
		})
	}
}

// TestCheckSparesAJobThatGotTheNumberOfItsOwn makes sbatch print the ID of a foreign job,
// as after a crash of the controller.
func TestCheckSparesAJobThatGotTheNumberOfItsOwn(t *testing.T) {
	w := newWorld(t)
	other := w.other()
	w.standIn("sbatch", `[ "$1" = --version ] && exec "$real" "$@"; cat >/dev/null; echo `+other)
	ends := w.standIn("scancel", `"$real" "$@"; code=$?; echo >>"$calls"; exit $code`)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // limits the wait for the test job's answer
	defer cancel()
	slurm.CheckCluster(ctx, w.options)
	if w.lines(ends) == 0 {
		t.Error("the job without an answer is not cancelled")
	}
	if !w.runs(other) {
		t.Errorf("the other job, %s, is gone: %v", other, w.jobs("other"))
	}
}

func TestCheckReportsDownController(t *testing.T) {
	w := newWorld(t)
	w.cluster.Kill(t, cluster.Controller)
	w.finds(slurm.Wrong, "slurmctld")
	w.cluster.Up(t)
}

func TestCheckReportsMissingAccounting(t *testing.T) {
	w := worldOn(t, cluster.New(t, cluster.Knobs{Nodes: 1, NoAccounting: true, MinJobAge: 20}))
	w.options.Poll = 10 * time.Second
	w.finds(slurm.Wrong, "set MinJobAge to 100 or more")
	w.options.Poll = time.Second
	w.finds(slurm.Doubtful, "counts as lost")
}

func TestAnswersReportsTheController(t *testing.T) {
	w := newWorld(t)
	e := w.executor()
	must.Become(t, "the cluster's nodes are known", func() bool { _, known := e.Largest(placement.Placement{}); return known })
	since, err := e.Answers()
	if err != nil || since.IsZero() {
		t.Errorf("last answer of the controller at %v, %v; want an answer", since, err)
	}
	got, known := e.Largest(placement.Placement{Partition: "main"})
	if want := (placement.Node{CPUs: 4, MemoryBytes: (4000 - 64) << 20, GPUs: 2, Seconds: 7*24*3600 - 62}); got != want || !known {
		t.Errorf("the largest node is %+v, want %+v", got, want)
	}
	if _, known := e.Largest(placement.Placement{Partition: "nowhere"}); known {
		t.Error("a node is known in a partition that does not exist")
	}
	w.cluster.Kill(t, cluster.Controller)
	if _, err := e.Status(t.Context(), []app.Task{{Token: "none", Dir: w.dir()}}); err == nil {
		t.Error("Status succeeds although the controller was killed")
	}
	if again, err := e.Answers(); err == nil || !again.After(since) {
		t.Errorf("last answer of the controller at %v, %v; want an error and a later time", again, err)
	}
	w.cluster.Up(t)
}
