package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"molrun/app/algorithm"
	"molrun/app/executor/local"
	"molrun/storage/kv/boltfile"
)

// clockSlack is how far clocks may differ without anybody's noticing.
const clockSlack = time.Minute

func lookAtClock(_ context.Context, p *patient) []finding {
	if p.now.Year() < 2025 || p.now.Year() > 2100 {
		return say(wrong, "it says %s; set it, since links and retention go by it", p.now.Format(time.DateTime))
	}
	if last, err := boltfile.ReadCommits(p.database); err == nil && last.At.After(p.now.Add(clockSlack)) {
		return say(wrong, "it says %s, but records were written at %s: it went back, or was wrong then; set it right before the service starts",
			p.now.UTC().Format(time.DateTime), last.At.UTC().Format(time.DateTime))
	}
	if synchronized, known := clockSynchronized(); known && !synchronized {
		return say(doubtful, "nothing keeps it in step; switch on time synchronisation, such as timedatectl set-ntp true")
	}
	return say(fine, "it says %s and is not behind the records", p.now.UTC().Format(time.DateTime))
}

// clockSynchronized asks the kernel whether something keeps its clock in step.
func clockSynchronized() (synchronized, known bool) {
	const unsynchronized = 0x40 // STA_UNSYNC
	var t syscall.Timex
	if _, err := syscall.Adjtimex(&t); err != nil {
		return false, false
	}
	return t.Status&unsynchronized == 0, true
}

// How many open files the service is happy with: one for each connection and
// transfer, and a few for each job.
const (
	fewFiles  = 8192
	leastOpen = 1024
)

func lookAtLimits(_ context.Context, p *patient) []finding {
	limit, whose, err := p.openFiles()
	switch {
	case err != nil:
		return say(doubtful, "how many files may be open can't be found out: %v", err)
	case limit < leastOpen:
		return say(wrong, "%s may open only %d files; set LimitNOFILE=65536 in its unit, or run ulimit -n 65536 before it starts", whose, limit)
	case limit < fewFiles:
		return say(doubtful, "%s may open %d files, which many connections at once can use up; set LimitNOFILE=65536 in its unit, or run ulimit -n 65536 before it starts", whose, limit)
	}
	return say(fine, "%s may open %d files", whose, limit)
}

// openFiles gives the limit of the service or, where none runs, of one that
// would be started here. Go raises the soft limit to the hard one.
func (p *patient) openFiles() (limit uint64, whose string, err error) {
	if p.running && p.held {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", p.holder.PID))
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

// hardLimit reads a line such as "Max open files  1024  4096  files".
func hardLimit(limits string) (uint64, error) {
	_, rest, _ := strings.Cut(limits, "Max open files")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0, errors.New("the system does not tell")
	}
	return strconv.ParseUint(fields[1], 10, 64)
}

func lookAtGPUs(_ context.Context, p *patient) []finding {
	wanted := p.config.Runner.GPUs
	if !wanted.Auto() && len(wanted) == 0 {
		return say(fine, "jobs get none: runner.gpus says so")
	}
	there, err := local.Detect("")
	if err != nil {
		return say(wrong, "%v; mend the driver, or set runner.gpus to \"\"", err)
	}
	_, driver := os.Stat("/proc/driver/nvidia/version")
	_, smi := exec.LookPath("nvidia-smi")
	switch {
	case wanted.Auto() && driver == nil && smi != nil:
		return say(doubtful, "there is an NVIDIA driver, but nvidia-smi is not on PATH, so jobs get no GPU; install it")
	case wanted.Auto() && len(there.GPUs) == 0:
		return say(fine, "there are none")
	case wanted.Auto():
		return say(fine, "%d: %s", len(there.GPUs), strings.Join(there.GPUs, ", "))
	}
	for _, gpu := range wanted {
		if !hasGPU(there.GPUs, gpu) {
			return say(wrong, "runner.gpus names %s, but nvidia-smi lists %d: [%s]; name those, or set runner.gpus to \"auto\"", gpu, len(there.GPUs), strings.Join(there.GPUs, ", "))
		}
	}
	return say(fine, "%s, as configured", strings.Join(wanted, ", "))
}

// hasGPU knows a device by its UUID or its number.
func hasGPU(there []string, wanted string) bool {
	if n, err := strconv.Atoi(wanted); err == nil {
		return n >= 0 && n < len(there)
	}
	for _, uuid := range there {
		if uuid == wanted {
			return true
		}
	}
	return false
}

func lookAtAlgorithms(_ context.Context, p *patient) []finding {
	var found []finding
	catalogue, err := loadCatalogue(p.config.Algorithms, func(m algorithm.Mistake) {
		found = append(found, say(wrong, "%s", m)...)
	})
	if err != nil {
		return say(wrong, "%s", message(err))
	}
	here, ready := placesHere(p.config), 0
	for _, typ := range catalogue.Types() {
		for _, a := range catalogue.Versions(typ) {
			missing := here.missing(a)
			if len(missing) == 0 {
				ready++
				continue
			}
			found = append(found, say(wrong, "%s %s is not ready: %s", a.Type, a.Version, strings.Join(missing, "; "))...)
		}
	}
	if found == nil {
		return say(fine, "%d are ready", ready)
	}
	return found
}
