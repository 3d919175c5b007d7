package routing_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/server/config"
	"molrun/app/test/must"
)

// configured returns a router for the [slurm] and [runner] settings of a configuration
// file.
func configured(t *testing.T, settings string) *routing.Router {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.toml")
	must.OK(t, os.WriteFile(file, []byte("data = \"/data\"\n[slurm]\nshared_dir = \"/shared\"\n"+settings), 0o600))
	c, err := config.Load(file, false, nil)
	must.OK(t, err)
	must.OK(t, c.Check())
	table := c.Routing()
	table.Executor = "local"
	table.Machines = map[string]placement.Machine{"local": {CPUs: 4, MemoryBytes: 8 << 30, Local: true}, "slurm": {}}
	return routing.New(table)
}

// greedy returns an algorithm with additional lines in its file.
func greedy(t *testing.T, lines ...string) *algorithm.File {
	t.Helper()
	text := "format = 1\ntype = \"greedy\"\nversion = \"1\"\ncommand = [\"true\"]\n" + strings.Join(lines, "\n")
	a, mistakes := algorithm.Parse("greedy.toml", []byte(text))
	for _, m := range mistakes {
		t.Fatal(m)
	}
	return a
}

func TestFirstMatchingRuleDecides(t *testing.T) {
	router := configured(t, `
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
`)
	ann := routing.User{Organization: "lab", Email: "ann@lab.example"}
	bob := routing.User{Organization: "lab", Email: "bob@lab.example"}
	eve := routing.User{Organization: "other", Email: "ann@lab.example"}
	anywhere := greedy(t)
	local := greedy(t, `executor = "local"`)
	slurm := greedy(t, `executor = "slurm"`, `[slurm]`, `partition = "own"`, `qos = "high"`)

	for _, tt := range []struct {
		name      string
		by        routing.User
		algorithm *algorithm.File
		needs     placement.Resources
		executor  string
		placement placement.Placement
	}{
		{"no rule matches", ann, anywhere, placement.Resources{CPUs: 1}, "local", placement.Placement{}},
		{"too few CPUs for a rule", ann, anywhere, placement.Resources{CPUs: 2}, "local", placement.Placement{}},
		{"algorithm and CPUs", ann, anywhere, placement.Resources{CPUs: 3}, "slurm", placement.Placement{Partition: "long", Options: []string{"--nice=5", "--exclusive"}}},
		{"two rules match", bob, anywhere, placement.Resources{CPUs: 3}, "local", placement.Placement{}},
		{"organization", eve, anywhere, placement.Resources{CPUs: 1}, "slurm", placement.Placement{Partition: "main", Options: []string{"--nice=10"}}},
		{"GPUs and memory", ann, anywhere, placement.Resources{GPUs: 1, MemoryBytes: 4 << 30}, "slurm", placement.Placement{Partition: "main", Account: "gpu", Options: []string{"--nice=10"}}},
		{"enough memory but no GPU", ann, anywhere, placement.Resources{MemoryBytes: 4 << 30}, "local", placement.Placement{}},
		{"the algorithm stays local", ann, local, placement.Resources{CPUs: 3}, "local", placement.Placement{}},
		{"the algorithm stays on slurm", bob, slurm, placement.Resources{CPUs: 1}, "slurm", placement.Placement{Partition: "own", QOS: "high", Options: []string{"--nice=10"}}},
		{"a rule overrides the algorithm's partition", ann, slurm, placement.Resources{CPUs: 3}, "slurm", placement.Placement{Partition: "long", QOS: "high", Options: []string{"--nice=5", "--exclusive"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			executor := router.Executor(tt.algorithm, tt.by, tt.needs)
			must.Equal(t, "executor", executor, tt.executor)
			got := router.Placement(tt.algorithm, executor, tt.by, tt.needs)
			must.Equal(t, "placement", got, tt.placement)
		})
	}
}

func TestForbiddenOptionsAreThoseNotConfigured(t *testing.T) {
	for _, tt := range []struct{ name, settings, option, want string }{
		{"allowed by default", ``, "--nice=5", ""},
		{"not allowed by default", ``, "--mail-user=ann", "--mail-user"},
		{"no longer allowed", `allow_options = "tmp"`, "--nice=5", "--nice"},
	} {
		a := greedy(t, `executor = "slurm"`, `[slurm]`, `options = ["`+tt.option+`"]`)
		if got := configured(t, tt.settings).Forbidden(a); got != tt.want {
			t.Errorf("%s: forbidden option %q of %s, want %q", tt.name, got, tt.option, tt.want)
		}
	}
}

func TestAlgorithmsThatCannotRunSayWhy(t *testing.T) {
	router := configured(t, ``)
	by := routing.User{Organization: "lab", Email: "ann@lab.example"}
	for range 2 { // the second result can come from the cache
		if why, nowhere := router.Unready(greedy(t, `executor = "local"`), by); len(why) > 0 || nowhere != "" {
			t.Errorf("a ready algorithm: %v, %q", why, nowhere)
		}
	}
	refused := greedy(t, `executor = "slurm"`, `[slurm]`, `options = ["--mail-user=ann"]`)
	for range 2 {
		const want = "greedy is not ready on this server: its [slurm] options include --mail-user, which slurm.allow_options does not allow"
		if why, nowhere := router.Unready(refused, by); len(why) != 1 || why["slurm"] != want || nowhere != want {
			t.Errorf("an algorithm with a forbidden option: %v, %q", why, nowhere)
		}
	}
}

// TestMemoryForAJob requests more memory than most machines have.
func TestMemoryForAJob(t *testing.T) {
	const gib = 1 << 30
	table := routing.Table{
		Machines: map[string]placement.Machine{"local": {CPUs: 4, MemoryBytes: 8 * gib, Local: true}, "slurm": {}},
		Rules:    []routing.Rule{{Min: placement.Resources{MemoryBytes: 20 * gib}, Placement: placement.Placement{Partition: "big"}}},
		Largest: func(p placement.Placement) (placement.Node, bool) {
			if p.Partition == "big" {
				return placement.Node{CPUs: 2, MemoryBytes: 64 * gib, Seconds: 3600}, true
			}
			return placement.Node{CPUs: 4, MemoryBytes: 16 * gib, Seconds: 7200}, true
		},
	}
	router, unknown := routing.New(table), table
	unknown.Largest = nil
	a, by := greedy(t), routing.User{Organization: "lab", Email: "ann@lab.example"}
	for _, tt := range []struct {
		name           string
		router         *routing.Router
		executor       string
		cpus           int
		needs, seconds int64
		want           int64
	}{
		{"this machine has it", router, "local", 1, 8, 3600, 8},
		{"this machine has less", router, "local", 1, 12, 3600, 8},
		{"this machine lacks CPUs", router, "local", 5, 4, 3600, 0},
		{"a node has it", router, "slurm", 1, 16, 3600, 16},
		{"nodes have less", router, "slurm", 1, 18, 3600, 16},
		{"a rule sends it to larger nodes", router, "slurm", 1, 32, 3600, 32},
		{"larger nodes have less", router, "slurm", 1, 100, 3600, 64},
		{"larger nodes have too few CPUs", router, "slurm", 4, 32, 3600, 0},
		{"larger nodes allow less time", router, "slurm", 1, 32, 7200, 0},
		{"unknown nodes", routing.New(unknown), "slurm", 1, 100, 3600, 100},
	} {
		needs := placement.Resources{CPUs: tt.cpus, MemoryBytes: tt.needs * gib}
		if got := tt.router.MemoryFor(a, tt.executor, by, needs, tt.seconds); got != tt.want*gib {
			t.Errorf("%s: %d GiB, want %d", tt.name, got/gib, tt.want)
		}
	}
}
