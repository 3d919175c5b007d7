package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"molrun/app"
	"molrun/app/config"
	"molrun/app/placement"
	"molrun/app/routing"
)

// routed gives a service on two executors.
func (s *site) routed(table routing.Table, definitions ...string) *app.Service {
	s.t.Helper()
	table.Executor = "local"
	table.Machines = map[string]placement.Machine{"local": {CPUs: 4, MemoryBytes: 8 << 30, Local: true}, "slurm": {}}
	service, err := app.NewService(s.store, s.files, s.catalogue(definitions), app.Options{
		Now: s.now, CursorKey: make([]byte, 32), UploadTTL: time.Hour, Routing: table,
	})
	must(s.t, err)
	return service
}

// stored gives the job of a record, with what is private.
func (s *site) stored(rec app.Record) (j *app.Job) {
	s.t.Helper()
	var shown struct {
		ID app.JobID `json:"jobId"`
	}
	must(s.t, json.Unmarshal(rec, &shown))
	must(s.t, s.store.View(context.Background(), func(tx app.Tx) (err error) {
		j, err = tx.Job(shown.ID)
		return err
	}))
	return j
}

// routingOf reads the sections of a configuration.
func routingOf(t *testing.T, text string) routing.Table {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.toml")
	must(t, os.WriteFile(file, []byte("data = \"/data\"\n[slurm]\nshared_dir = \"/shared\"\n"+text), 0o600))
	c, err := config.Load(file, false, nil)
	must(t, err)
	must(t, c.Check())
	return c.Routing()
}

// tied makes the greedy algorithm one that runs on that executor.
func tied(executor, more string) string {
	return strings.Replace(greedyFile, "command =", "executor = \""+executor+"\"\ncommand =", 1) + more
}

func TestFirstRuleThatFitsSaysWhereJobRuns(t *testing.T) {
	const rules = `
partition = "main"
options = "--nice=10"
[[runner.rules]]
user = "bob@lab.example"
executor = "local"
[[runner.rules]]
algorithm = "greedy"
min_cpus = 3
executor = "slurm"
partition = "long"
options = "--nice=5 --exclusive"
[[runner.rules]]
organization = "other"
executor = "slurm"
[[runner.rules]]
min_gpus = 1
min_memory = "4GiB"
executor = "slurm"
account = "gpu"
`
	const table = "\n[slurm]\npartition = \"own\"\nqos = \"high\"\n"
	tests := []struct {
		name       string
		by         app.Caller
		definition string
		settings   string
		executor   string
		placement  placement.Placement
	}{
		{"no rule", ann, greedyFile, `{}`, "local", placement.Placement{}},
		{"too small for one", ann, greedyFile, `{"cores":2}`, "local", placement.Placement{}},
		{"by algorithm and size", ann, greedyFile, `{"cores":3}`, "slurm", placement.Placement{Partition: "long", Options: []string{"--nice=5", "--exclusive"}}},
		{"the first of two", bob, greedyFile, `{"cores":3}`, "local", placement.Placement{}},
		{"by organization", eve, greedyFile, `{}`, "slurm", placement.Placement{Partition: "main", Options: []string{"--nice=10"}}},
		{"by two sizes", ann, greedyFile, `{"cards":1,"memory_gb":4}`, "slurm", placement.Placement{Partition: "main", Account: "gpu", Options: []string{"--nice=10"}}},
		{"one size is not enough", ann, greedyFile, `{"cards":0,"memory_gb":4}`, "local", placement.Placement{}},
		{"the algorithm is of this machine", ann, tied("local", ""), `{"cores":3}`, "local", placement.Placement{}},
		{"the algorithm is of the cluster", bob, tied("slurm", table), `{}`, "slurm", placement.Placement{Partition: "own", QOS: "high", Options: []string{"--nice=10"}}},
		{"a rule stands over the algorithm", ann, tied("slurm", table), `{"cores":3}`, "slurm", placement.Placement{Partition: "long", QOS: "high", Options: []string{"--nice=5", "--exclusive"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			service := s.routed(routingOf(t, rules), tt.definition)
			sub := submission(t, "a", tt.settings)
			sub.Type = "greedy"
			rec, _, err := service.Jobs.Submit(t.Context(), tt.by, sub)
			must(t, err)
			j := s.stored(rec)
			if j.Executor != tt.executor {
				t.Errorf("it runs on %s, want %s", j.Executor, tt.executor)
			}
			got, err := service.Runs.PlacementOf(t.Context(), j)
			must(t, err)
			if diff := cmp.Diff(tt.placement, got); diff != "" {
				t.Errorf("placement, -want +got:\n%s", diff)
			}
		})
	}
}

func TestRowsOfBatchGoWhereTheirSizeSays(t *testing.T) {
	s := newSite(t)
	service := s.routed(routingOf(t, "[[runner.rules]]\nmin_cpus = 2\nexecutor = \"slurm\"\n"), greedyFile)
	for settings, want := range map[string]string{`{"cores":1},{"cores":2}`: "", `{"cores":2},{"cores":3}`: "slurm", `{},{}`: "local"} {
		sub := batchSubmission(t, "b"+want, settings)
		sub.Type = "greedy"
		rec, _, err := service.Jobs.SubmitBatch(t.Context(), ann, sub)
		must(t, err)
		if j := s.stored(rec); j.Executor != want {
			t.Errorf("the batch of %s runs on %q, want %q", settings, j.Executor, want)
		}
	}
	var queued []string
	for _, executor := range []string{"local", "slurm"} {
		n := 0
		must(t, service.Runs.Queue(t.Context(), executor, func(app.Waiting) app.Visit { n++; return app.NextJob }))
		queued = append(queued, fmt.Sprint(executor, " ", n))
	}
	if diff := cmp.Diff([]string{"local 3", "slurm 3"}, queued); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestJobThatNoNodeHoldsIsRefusedWithItsSetting(t *testing.T) {
	routing := routingOf(t, "partition = \"main\"\n[[runner.rules]]\nmin_gpus = 1\nexecutor = \"slurm\"\npartition = \"gpu\"\n[[runner.rules]]\nexecutor = \"slurm\"\n")
	routing.Largest = func(p placement.Placement) (placement.Node, bool) {
		return map[string]placement.Node{"main": {CPUs: 64, MemoryBytes: 256 << 30, Seconds: 3600}}[p.Partition], p.Partition == "main"
	}
	s := newSite(t)
	service := s.routed(routing, greedyFile)
	for settings, want := range map[string][]string{
		`{"cores":64,"memory_gb":256}`: nil,
		`{"cores":65,"memory_gb":257}`: {
			"[body settings cores] the job would need more than any node of the partition main has: 65 CPUs of 64; ask for less",
			"[body settings memory_gb] the job would need more than any node of the partition main has: 257.0 GiB of memory of 256.0 GiB; ask for less",
		},
		`{"cores":999,"cards":9}`: nil, // of that partition nothing is known
	} {
		sub := submission(t, "a", settings)
		sub.Type, sub.MaxRuntime = "greedy", 3600
		if diff := cmp.Diff(want, faultsOf(t, service, sub)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", settings, diff)
		}
	}
	sub := submission(t, "a", `{}`)
	sub.Type, sub.MaxRuntime = "greedy", 3601
	want := []string{"[body settings] the cluster lets jobs run 3600 seconds there; give a maxRuntimeSeconds of at most that, or leave it out"}
	if diff := cmp.Diff(want, faultsOf(t, service, sub)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	sub.MaxRuntime = 0
	rec, _, err := service.Jobs.Submit(t.Context(), ann, sub)
	must(t, err)
	if j := s.stored(rec); j.MaxRuntime != 3600 {
		t.Errorf("a job that asks for no time gets %d s, want the 3600 s of the partition", j.MaxRuntime)
	}
}

func TestAlgorithmThatCannotRunWhereItBelongsIsRefused(t *testing.T) {
	s := newSite(t)
	sub := submission(t, "a", `{}`)
	sub.Type = "greedy"
	for name, tt := range map[string]struct {
		service *app.Service
		want    string
	}{
		"no such executor": {s.with(tied("slurm", "")), `greedy runs on the executor "slurm", which is not configured here`},
		"option that is not allowed": {
			s.routed(routingOf(t, ""), tied("slurm", "[slurm]\noptions = [\"--mail-user=ann\"]\n")),
			"its [slurm] options have --mail-user, which slurm.allow_options does not name",
		},
	} {
		if got := faultsOf(t, tt.service, sub); len(got) != 1 || !strings.HasPrefix(got[0], "[body type] ") || !strings.Contains(got[0], tt.want) {
			t.Errorf("%s: %v, want %s", name, got, tt.want)
		}
		view, err := tt.service.Algorithms.Get(ann, "greedy", "")
		must(t, err)
		if view.Ready || len(view.Missing) == 0 {
			t.Errorf("%s: the catalogue says that it is ready", name)
		}
	}
}

// TestAlgorithmThatRunsSomewhereIsReady has a program that is not on this
// machine: whether a cluster's nodes have it is not known.
func TestAlgorithmThatRunsSomewhereIsReady(t *testing.T) {
	s := newSite(t)
	far := strings.Replace(greedyFile, `["true"]`, `["no-such-program"]`, 1)
	service := s.routed(routingOf(t, "[[runner.rules]]\nmin_cpus = 2\nexecutor = \"slurm\"\n"), far)
	for settings, want := range map[string]string{`{"cores":2}`: "", `{"cores":1}`: "no-such-program is not installed"} {
		sub := submission(t, "a", settings)
		sub.Type = "greedy"
		if got := strings.Join(faultsOf(t, service, sub), "; "); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %s, want %q", settings, got, want)
		}
	}
	view, err := service.Algorithms.Get(ann, "greedy", "")
	must(t, err)
	if !view.Ready {
		t.Errorf("the catalogue says that it is not ready: %v", view.Missing)
	}
}

func TestOptionThatIsNoLongerAllowedStopsItsJobs(t *testing.T) {
	s := newSite(t)
	file := tied("slurm", "[slurm]\noptions = [\"--nice=5\"]\n")
	sub := submission(t, "a", `{}`)
	sub.Type = "greedy"
	rec, _, err := s.routed(routingOf(t, ""), file).Jobs.Submit(t.Context(), ann, sub)
	must(t, err)
	_, err = s.routed(routingOf(t, "allow_options = \"tmp\"\n"), file).Runs.PlacementOf(t.Context(), s.stored(rec))
	if err == nil || !strings.Contains(err.Error(), "--nice, which is no longer allowed") {
		t.Errorf("got %v", err)
	}
}

// faultsOf gives what Validate finds, one text for each fault.
func faultsOf(t *testing.T, service *app.Service, sub app.Submission) (got []string) {
	t.Helper()
	found, err := service.Jobs.Validate(t.Context(), ann, sub)
	must(t, err)
	for _, f := range found.Detail {
		got = append(got, fmt.Sprint(f.Loc, " ", f.Msg))
	}
	return got
}

func TestJobThatWaitsForAnExecutorThatIsGoneSaysSo(t *testing.T) {
	s := newSite(t)
	there := s.routed(routing.Table{}, tied("slurm", ""), echoFile)
	for name, typ := range map[string]string{"far": "greedy", "near": "echo"} {
		sub := submission(t, name, `{}`)
		sub.Type = typ
		_, _, err := there.Jobs.Submit(t.Context(), ann, sub)
		must(t, err)
	}
	reason := func(service *app.Service, name string) string {
		rec, err := service.Jobs.Get(t.Context(), ann, name, 0)
		must(t, err)
		var j app.Job
		must(t, json.Unmarshal(rec, &j))
		return j.StatusReason
	}
	if r := reason(there, "far"); r != "" {
		t.Errorf("%q while the cluster is configured", r)
	}
	without := s.with(tied("slurm", ""), echoFile)
	if r := reason(without, "far"); !strings.Contains(r, "executor slurm is no longer configured") {
		t.Errorf("%q where the cluster is not configured", r)
	}
	if r := reason(without, "near"); r != "" {
		t.Errorf("%q of a job of this machine", r)
	}
}
