// Package host applies a configuration to this machine: the capacity for jobs, the
// available algorithms, the options of executors, the TLS certificate, the connections
// that its open-file limit allows, and the data directory: the names in it that several
// packages use, its ownership, and whether a service runs on it.
package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/algorithm/validator"
	"molrun/app/executor/local"
	"molrun/app/executor/local/gpu"
	"molrun/app/server/config"
)

// Host describes what this machine provides under a configuration.
type Host struct {
	Capacity app.Capacity // capacity for jobs: as configured, otherwise as detected

	config    config.Config
	noSandbox func() string
	gpus      *gpu.Watcher
	places    *runtimes
}

// detectTimeout limits the wait for detecting GPUs. If detection takes longer, they are
// used once detected.
const detectTimeout = 10 * time.Second

// WatchGPUs returns a watcher of the GPUs configured for jobs. The caller must close it.
func WatchGPUs(c config.Config, log zerolog.Logger) *gpu.Watcher {
	o := gpu.Options{Log: log}
	if !c.Runner.GPUs.Auto() {
		o.Selected = append([]string{}, c.Runner.GPUs...)
	}
	return gpu.New(o)
}

// Inspect inspects this machine. Along with an error it returns a Host on which
// everything that could not be detected counts as absent.
func Inspect(c config.Config) (Host, error) {
	gpus := WatchGPUs(c, zerolog.Nop())
	h, err := InspectWith(c, gpus)
	return h, errors.Join(err, gpus.Close())
}

// InspectWith is Inspect with a watcher of the GPUs that stays open while the Host is
// used.
func InspectWith(c config.Config, gpus *gpu.Watcher) (Host, error) {
	capacity, err := local.Detect()
	r := c.Runner
	if r.CPUs > 0 {
		capacity.CPUs = r.CPUs
	}
	if r.Memory > 0 {
		capacity.MemoryBytes = int64(r.Memory)
	}
	ctx, cancel := context.WithTimeout(context.Background(), detectTimeout)
	defer cancel()
	_ = gpus.Check(ctx) // the watcher's state reports what was not detected
	gpus.State().AddTo(&capacity)
	if r.PinCPUs {
		capacity.Cores, _ = local.Cores(capacity.CPUs) // molrun doctor reports why there are none
	}
	return Host{Capacity: capacity, config: c, noSandbox: sync.OnceValue(func() string { return noSandbox(c) }), gpus: gpus, places: newPlaces(c)}, err
}

// Machine returns this host as a machine on which algorithms can run.
func (h Host) Machine() placement.Machine {
	return placement.Machine{
		CPUs: h.Capacity.CPUs, MemoryBytes: h.Capacity.MemoryBytes, Local: true,
		Site: h.config.Site.Paths, NoSandbox: h.noSandbox, MissingEnvironment: h.places.missing,
		CountGPUs: func() int { return h.gpus.State().Count() },
		GPUMemory: func() int64 { return h.gpus.State().Smallest },
	}
}

// Versions returns a prober that queries programs for their versions, in a sandbox like
// that of jobs.
func (h Host) Versions(ctx context.Context) (p *validator.Prober, end func() error, err error) {
	options, err := IsolationOptions(h.config)
	if err != nil {
		return nil, nil, err
	}
	isolation, err := local.ProbeSandbox(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	e := local.New(local.Options{Isolation: isolation, ConfinedMemory: int64(h.config.Validators.Memory)})
	return validator.NewProber(e.Confine, validator.SearchPath()), e.Close, nil
}

// Probe runs the self-test command of an algorithm's program, in a sandbox like that of
// jobs. The error is a sentence about what is missing. Requirements that only a cluster
// or a job can meet are not checked. program is the path of this program.
func (h Host) Probe(ctx context.Context, a *algorithm.File, program string) error {
	probe, ok := a.SelfTestProbe(program, h.config.Site.Paths)
	if !ok || !h.RunsHere(a) {
		return nil
	}
	prober, end, err := h.Versions(ctx)
	if err != nil {
		return err
	}
	return errors.Join(prober.SelfTest(ctx, probe), end())
}

// noSandbox returns the reason why programs run here without a sandbox, or "" if they
// have one.
func noSandbox(c config.Config) string {
	options, err := IsolationOptions(c)
	if err != nil {
		return err.Error()
	}
	isolation, err := local.ProbeSandbox(context.Background(), options) // has its own timeout
	switch {
	case err != nil:
		return err.Error()
	case isolation.Bubblewrap == "":
		return strings.Join(isolation.Missing, "; ")
	}
	return ""
}

// Machines returns the machine of each executor. Cluster nodes can have any size.
func (h Host) Machines() map[string]placement.Machine {
	machines := map[string]placement.Machine{placement.Local: h.Machine()}
	if h.config.Slurm.On() {
		machines[placement.Slurm] = placement.Machine{Site: h.config.Site.Paths, NoSandbox: func() string { return noClusterSandbox(h.config) }}
	}
	return machines
}

// noClusterSandbox returns the reason if sandboxes are disabled on nodes by
// configuration, or "". Whether the nodes support them is only determined there.
func noClusterSandbox(c config.Config) string {
	if c.Runner.Sandbox == local.SandboxOff {
		return "runner.sandbox is off"
	}
	return ""
}

// Missing lists what an algorithm needs but lacks, or nothing if its jobs can run on an
// executor that they are allowed to use. The nodes of a cluster are not inspected.
func (h Host) Missing(a *algorithm.File) []string {
	router, machines := h.router()
	missing := router.MissingFor(a, routing.User{})
	cluster, configured := machines[placement.Slurm]
	if len(missing) > 0 && configured && !slices.Contains(router.Executors(a, routing.User{}), placement.Slurm) && len(a.Missing(cluster)) == 0 {
		missing = append(missing, "no rule in [[runner.rules]] routes its jobs to the cluster")
	}
	return missing
}

// RunsHere reports whether jobs of an algorithm can run on this machine.
func (h Host) RunsHere(a *algorithm.File) bool {
	router, _ := h.router()
	why, _ := router.Unready(a, routing.User{})
	return why[placement.Local] == "" && slices.Contains(router.Executors(a, routing.User{}), placement.Local)
}

func (h Host) router() (*routing.Router, map[string]placement.Machine) {
	table := h.config.Routing()
	table.Machines = h.Machines()
	return routing.New(table), table.Machines
}
