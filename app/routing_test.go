package app_test

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/test/must"
)

// slurmFromTwoCPUs routes jobs with two or more CPUs to slurm.
var slurmFromTwoCPUs = routing.Table{
	Rules: []routing.Rule{{Min: placement.Resources{CPUs: 2}, Executor: "slurm"}},
}

// greedyOn returns the greedy algorithm with a fixed executor and additional sections.
func greedyOn(executor, more string) string {
	return strings.Replace(greedyFile, "command =", "executor = \""+executor+"\"\ncommand =", 1) + more
}

func TestJobIsRoutedByItsSubmitterAndNeeds(t *testing.T) {
	table := routing.Table{Rules: []routing.Rule{
		{User: bob.Email, Executor: "slurm", Placement: placement.Placement{Partition: "testing"}},
		{Organization: "other", Executor: "slurm", Placement: placement.Placement{Partition: "guests"}},
		{Min: placement.Resources{CPUs: 3, MemoryBytes: 2 << 30, GPUs: 1}, Executor: "slurm", Placement: placement.Placement{Partition: "large"}},
	}}
	for _, tt := range []struct {
		name      string
		by        app.Caller
		settings  string
		executor  string
		partition string
	}{
		{"by default", ann, `{"cores":3,"memory_gb":2}`, "local", ""},
		{"by size", ann, `{"cores":3,"memory_gb":2,"cards":1}`, "slurm", "large"},
		{"by user", bob, `{}`, "slurm", "testing"},
		{"by organization", eve, `{}`, "slurm", "guests"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			service := s.routed(table, greedyFile)
			rec, _, err := service.Jobs.Submit(t.Context(), tt.by, submissionOf(t, "greedy", "a", tt.settings))
			must.OK(t, err)
			j := s.storedJob(decode(t, rec).ID)
			must.Equal(t, "the job runs on", j.Executor, tt.executor)
			got, err := service.Runs.PlacementOf(t.Context(), j)
			must.OK(t, err)
			must.Equal(t, "placement", got, placement.Placement{Partition: tt.partition})
		})
	}
}

func TestBatchRowsAreRoutedByTheirSize(t *testing.T) {
	s := newSite(t)
	service := s.routed(slurmFromTwoCPUs, greedyFile)
	for _, tt := range []struct {
		name     string
		rows     []string
		executor string // of the batch
	}{
		{"mixed", []string{`{"cores":1}`, `{"cores":2}`}, ""},
		{"large", []string{`{"cores":2}`, `{"cores":3}`}, "slurm"},
		{"small", []string{`{}`, `{}`}, "local"},
	} {
		rec, _, err := service.Jobs.SubmitBatch(t.Context(), ann, batchSubmissionOf(t, "greedy", tt.name, tt.rows...))
		must.OK(t, err)
		must.Equal(t, fmt.Sprintf("the %s batch runs on", tt.name), decode(t, rec).Executor, tt.executor)
	}
	queued := map[string]int{}
	for _, executor := range []string{"local", "slurm"} {
		must.OK(t, service.Runs.Queue(t.Context(), executor, func(app.Waiting) app.Visit {
			queued[executor]++
			return app.NextJob
		}))
	}
	must.Equal(t, "queued rows", queued, map[string]int{"local": 3, "slurm": 3})
}

func TestNeedsBeyondEveryNodeAreFaultsAtTheirSettings(t *testing.T) {
	table := routing.Table{
		Rules: []routing.Rule{
			{Min: placement.Resources{GPUs: 1}, Executor: "slurm", Placement: placement.Placement{Partition: "gpu"}},
			{Executor: "slurm"},
		},
		Placement: placement.Placement{Partition: "main"},
		Largest: func(p placement.Placement) (placement.Node, bool) {
			if p.Partition != "main" {
				return placement.Node{}, false
			}
			return placement.Node{CPUs: 64, MemoryBytes: 256 << 30, Seconds: 3600}, true
		},
		Missing: func(p placement.Placement) string {
			if p.Partition == "old" {
				return "no partition old"
			}
			return ""
		},
	}
	table.Rules = append([]routing.Rule{{Min: placement.Resources{GPUs: 20}, Executor: "slurm", Placement: placement.Placement{Partition: "old"}}}, table.Rules...)
	s := newSite(t)
	service := s.routed(table, greedyFile)
	for _, tt := range []struct {
		name, settings string
		seconds        int64
		want           []string
	}{
		{"a whole node", `{"cores":64,"memory_gb":256}`, 3600, nil},
		{"more than a node", `{"cores":65,"memory_gb":257}`, 3600, []string{
			"[body settings cores] the job would need more than any node of the partition main has: 65 CPUs of 64; request less",
			"[body settings memory_gb] the job would need more than any node of the partition main has: 257.0 GiB of memory of 256.0 GiB; request less",
		}},
		{"a partition of unknown size", `{"cores":999,"cards":9}`, 3600, nil},
		{"a partition that was deleted", `{"cards":20}`, 3600, []string{
			"[body settings] the job's placement is no longer available: the cluster has no partition old; ask an administrator",
		}},
		{"a longer time than the partition's", `{}`, 3601, []string{
			"[body settings] the partition main limits jobs to 3600 seconds; set maxRuntimeSeconds to at most that, or omit it",
		}},
	} {
		sub := submissionOf(t, "greedy", "a", tt.settings)
		sub.MaxRuntime = tt.seconds
		must.Equal(t, tt.name, validate(t, service, sub), tt.want)
	}
	rec, _, err := service.Jobs.Submit(t.Context(), ann, submissionOf(t, "greedy", "a", `{}`))
	must.OK(t, err)
	if got := s.storedJob(decode(t, rec).ID); got.MaxRuntime != 3600 || got.Private.LimitOf != "the partition main" {
		t.Errorf("a job without a time limit may run %d s by %q, want the 3600 s of its partition", got.MaxRuntime, got.Private.LimitOf)
	}
}

func TestAlgorithmIsRefusedIfItsExecutorCannotRunIt(t *testing.T) {
	s := newSite(t)
	for name, tt := range map[string]struct {
		service *app.Service
		want    string
	}{
		"no such executor": {
			s.WithOptions(s.Store, app.Options{}, greedyOn("slurm", "")),
			`greedy runs on the executor "slurm", which is not configured here`,
		},
		"option that is not allowed": {
			s.routed(routing.Table{Allowed: []string{"nice"}}, greedyOn("slurm", "[slurm]\noptions = [\"--mail-user=ann\"]\n")),
			"its [slurm] options include --mail-user, which slurm.allow_options does not allow",
		},
	} {
		got := validate(t, tt.service, submissionOf(t, "greedy", "a", `{}`))
		if len(got) != 1 || !strings.HasPrefix(got[0], "[body type] ") || !strings.Contains(got[0], tt.want) {
			t.Errorf("%s: got faults %v, want %s", name, got, tt.want)
		}
		view, err := tt.service.Algorithms.Get(ann, "greedy", "")
		must.OK(t, err)
		if view.Ready || len(view.Missing) == 0 {
			t.Errorf("%s: the catalogue shows the algorithm as ready", name)
		}
	}
}

// TestAlgorithmIsReadyIfOneExecutorCanRunIt uses a program that is missing on this
// machine. Whether the cluster's nodes have it is unknown, so the cluster counts as
// ready.
func TestAlgorithmIsReadyIfOneExecutorCanRunIt(t *testing.T) {
	s := newSite(t)
	service := s.routed(slurmFromTwoCPUs, strings.Replace(greedyFile, `["true"]`, `["no-such-program"]`, 1))
	must.Equal(t, "faults on the cluster", validate(t, service, submissionOf(t, "greedy", "a", `{"cores":2}`)), nil)
	got := fmt.Sprint(validate(t, service, submissionOf(t, "greedy", "a", `{"cores":1}`)))
	if want := "no-such-program is not installed"; !strings.Contains(got, want) {
		t.Errorf("faults on this machine %s, want %s", got, want)
	}
	view, err := service.Algorithms.Get(ann, "greedy", "")
	must.OK(t, err)
	if !view.Ready {
		t.Errorf("the catalogue shows the algorithm as not ready: %v", view.Missing)
	}
}

func TestOptionThatIsNoLongerAllowedStopsItsJobs(t *testing.T) {
	s := newSite(t)
	definition := greedyOn("slurm", "[slurm]\noptions = [\"--nice=5\"]\n")
	before := s.routed(routing.Table{Allowed: []string{"nice"}}, definition)
	rec, _, err := before.Jobs.Submit(t.Context(), ann, submissionOf(t, "greedy", "a", `{}`))
	must.OK(t, err)
	after := s.routed(routing.Table{Allowed: []string{"tmp"}}, definition)
	_, err = after.Runs.PlacementOf(t.Context(), s.storedJob(decode(t, rec).ID))
	must.Fail(t, "the error", err, "--nice, which is no longer allowed")
}

func TestJobSaysIfItsExecutorIsNoLongerConfigured(t *testing.T) {
	s := newSite(t)
	s.Service = s.routed(routing.Table{}, greedyOn("slurm", ""), echoFile)
	remote := submissionOf(t, "greedy", "remote", `{}`)
	email, executor, note := "x", "local", `"jobEmail":"x","executor":"local"`
	remote.Labels = app.Labels{Tags: map[string]*string{"jobEmail": &email, "executor": &executor}, Note: &note}
	must.OK(t, must.Error3(s.Jobs.Submit(t.Context(), ann, remote)))
	s.submit(ann, "local", `{}`)
	must.Equal(t, "reason while slurm is configured", s.job(ann, "remote").StatusReason, "")

	s.Service = s.WithOptions(s.Store, app.Options{}, greedyOn("slurm", ""), echoFile)
	must.Contain(t, "reason", s.job(ann, "remote").StatusReason, "executor slurm is no longer configured")
	must.Equal(t, "reason of a local job", s.job(ann, "local").StatusReason, "")
}
