package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/base/unit"
	"molrun/app/executor/local"
	"molrun/app/executor/local/gpu"
	"molrun/app/server/config"
	"molrun/app/server/host"
	"molrun/storage/kv/boltfile"
)

// clockSlack is the largest clock difference that is considered harmless.
const clockSlack = time.Minute

func checkClock(_ context.Context, in *installation) []Finding {
	if in.now.Year() < 2025 || in.now.Year() > 2100 {
		return finding(Problem, "it shows %s; set it, because links and retention depend on it", in.now.Format(time.DateTime))
	}
	if last, err := boltfile.ReadCommits(in.database); err == nil && last.At.After(in.now.Add(clockSlack)) {
		return finding(Problem, "it shows %s, but records were written at %s: it was set back, or was wrong then; correct it before the service starts",
			in.now.UTC().Format(time.DateTime), last.At.UTC().Format(time.DateTime))
	}
	if synchronized, known := clockSynchronized(); known && !synchronized {
		return finding(Warning, "it is not synchronized; enable time synchronization, for example with timedatectl set-ntp true")
	}
	return finding(OK, "it shows %s and is not behind the records", in.now.UTC().Format(time.DateTime))
}

// clockSynchronized reports whether the kernel considers its clock synchronized.
func clockSynchronized() (synchronized, known bool) {
	const unsynchronized = 0x40 // STA_UNSYNC
	var t syscall.Timex
	if _, err := syscall.Adjtimex(&t); err != nil {
		return false, false
	}
	return t.Status&unsynchronized == 0, true
}

// Limits on open files: the service needs one for each connection and transfer, and a few
// for each job.
const (
	goodFiles = 8192
	minFiles  = 1024
)

func checkLimits(_ context.Context, in *installation) []Finding {
	limit, whose, err := in.openFiles()
	switch {
	case err != nil:
		return finding(Warning, "the limit of open files is unknown: %v", err)
	case limit < minFiles:
		return finding(Problem, "%s can open only %d files; set LimitNOFILE=65536 in its unit, or run ulimit -n 65536 before it starts", whose, limit)
	case limit < goodFiles:
		return finding(Warning, "%s can open %d files, which many concurrent connections can use up; set LimitNOFILE=65536 in its unit, or run ulimit -n 65536 before it starts", whose, limit)
	}
	return finding(OK, "%s can open %d files", whose, limit)
}

// checkCPUs reports whether each job gets its own CPUs.
func checkCPUs(_ context.Context, in *installation) []Finding {
	cpus := in.config.Runner.CPUs
	if cpus == 0 {
		cpus = runtime.GOMAXPROCS(0)
	}
	if !in.config.Runner.PinCPUs {
		return finding(OK, "jobs can use %s, and run on any of them, because runner.pin_cpus is false", unit.Count(cpus, "CPU"))
	}
	if _, why := local.Cores(cpus); why != "" {
		return finding(Warning, "jobs can use %s, but are not pinned: %s", unit.Count(cpus, "CPU"), why)
	}
	return finding(OK, "jobs can use %s; each is pinned to its own", unit.Count(cpus, "CPU"))
}

// openFiles returns the open-file limit of the running service or, if none is running, of
// one started here. Go raises the soft limit to the hard limit.
func (in *installation) openFiles() (limit uint64, whose string, err error) {
	if in.running && in.held {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", in.holder.PID))
		if err != nil {
			return 0, "", err
		}
		limit, err := hardLimit(string(text))
		return limit, "the service", err
	}
	var r syscall.Rlimit
	err = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r)
	return r.Max, "a service started here", err
}

// hardLimit parses a line such as "Max open files 1024 4096 files".
func hardLimit(limits string) (uint64, error) {
	_, rest, _ := strings.Cut(limits, "Max open files")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0, errors.New("the system does not report it")
	}
	return strconv.ParseUint(fields[1], 10, 64)
}

func checkGPUs(ctx context.Context, in *installation) []Finding {
	wanted := in.config.Runner.GPUs
	if !wanted.Auto() && len(wanted) == 0 {
		return finding(OK, "jobs get none, because runner.gpus is empty")
	}
	gpus := host.WatchGPUs(in.config, zerolog.Nop())
	defer gpus.Close() // errors don't matter once detection has finished
	if err := gpus.Check(ctx); err != nil {
		return finding(Problem, "%v; fix the driver, or set runner.gpus to \"\"", err)
	}
	_, driver := os.Stat("/proc/driver/nvidia/version")
	if wanted.Auto() && driver == nil && !gpus.Present() {
		return finding(Warning, "there is an NVIDIA driver, but nvidia-smi is not on PATH, so jobs get no GPU; install it")
	}
	return gpuFindings(gpus.State(), wanted)
}

// gpuFindings reports which GPUs are available to jobs, and what is wrong with the
// others.
func gpuFindings(s gpu.State, wanted config.GPUList) (all []Finding) {
	switch configured := strings.Join(s.GPUs, ", "); {
	case len(s.GPUs) == 0 && len(s.Faulty) == 0 && len(s.Notes) > 0:
		return finding(Problem, "nvidia-smi: %s; fix the driver, or set runner.gpus to \"\"", strings.Join(s.Notes, "; "))
	case len(s.GPUs) == 0 && len(s.Faulty) == 0:
		return finding(OK, "there are none")
	case wanted.Auto():
		all = finding(OK, "%d: %s", len(s.GPUs), configured)
	default:
		all = finding(OK, "%d, as configured: %s", len(s.GPUs), configured)
	}
	for _, g := range s.Faulty {
		all = append(all, finding(Problem, "%s %s, so jobs can't use it; %s", g.Name, g.Text, remedy(g, wanted))...)
	}
	if len(s.Notes) > 0 {
		all = append(all, finding(Warning, "nvidia-smi: %s", strings.Join(s.Notes, "; "))...)
	}
	return all
}

// remedy returns advice for a faulty GPU.
func remedy(g app.FaultyGPU, wanted config.GPUList) string {
	switch {
	case slices.Contains(wanted, g.Name):
		return "name GPUs in runner.gpus that nvidia-smi -L lists, or set it to \"auto\""
	case g.Fault == app.GPUUndivided:
		return "create instances, or turn MIG mode off"
	case g.Fault == app.GPUNeedsReset || g.Fault == app.GPUMemoryError:
		return "reset it (nvidia-smi --gpu-reset), or restart the machine"
	}
	return "fix it, or restart the machine"
}
